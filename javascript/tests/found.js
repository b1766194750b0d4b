// Compares the layouts that the module finds with those that the extension finds: a line of JSON for each table, on standard input.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { find } from '../find.js';

let tables = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { copy, rows, layout, shards, misfits, doubt } = JSON.parse(line);
  const found = find(rows.map(([id, unixUs]) => [BigInt(id), unixUs]));
  assert.deepEqual(
    [String(found.layout), found.shards, found.misfits.length, !found.isDivisionCertain, found.countsIntoShard],
    [layout, shards, misfits, /where the counter ends/.test(doubt), /no modulo/.test(doubt)],
    copy,
  );
  tables += 1;
}
console.log(`${tables} tables`);
