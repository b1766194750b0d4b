// Compares the layouts that the module finds with those that the extension finds: a line of JSON for each table, on standard input.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { find } from '../find.js';

let tables = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { copy, rows, layout, shards, misfits, doubt } = JSON.parse(line);
  const found = find(rows.map(([id, unixUs]) => [BigInt(id), unixUs]));
  assert.deepEqual(
    [String(found.layout), found.shards, found.misfits.length, !found.isDivisionCertain, found.countsIntoShard, !found.fitsMostOfTheTime],
    [layout, shards, misfits, /where the counter ends/.test(doubt), /counter restarts/.test(doubt), /Most IDs do not fit/.test(doubt)],
    copy,
  );
  const ticks = found.otherTicksUs.map((us) => (us % 1_000 === 0 ? `${us / 1_000}ms` : `${us}us`).replace(/(\d+)000ms/, '$1s'));
  const otherTicks = ticks.join(' or ') || (found.isUnitCertain ? undefined : 'longer or shorter');
  assert.equal(/A tick may also last ([^:]*):/.exec(doubt)?.[1], otherTicks, copy);
  const candidates = found.candidates.map(({ layout, shards }) => `, or ${layout} (${shards.length === 1 ? 'shard' : 'shards'} ${shards.slice(0, 5).join(', ')}`);
  assert.equal(doubt.split('), or ').length - 1, candidates.length, `${copy}: ${doubt}`);
  for (const candidate of candidates) assert.ok(doubt.includes(candidate), `${copy}: ${candidate} in ${doubt}`);
  tables += 1;
}
console.log(`${tables} tables`);
