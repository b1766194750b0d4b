import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { candidates, generators } from '../generators.js';
import { decode, encode, layout, presets } from '../snowflake.js';

// What other generators returned at known times, or what their published formulas give.
const data = process.env.GENERATORS ?? new URL('../../pg_test/data/generators.csv', import.meta.url);
const [, ...lines] = readFileSync(data, 'utf8').trimEnd().split('\n');
const rows = lines.map((line) => {
  const [generator, , spec, id, unixMs, shard] = line.split(',');
  return { generator, of: layout(spec), id, unixMs: Number(unixMs), shard: Number(shard) };
});
const NOW = Date.UTC(2026, 10, 28, 18);

test('IDs of other generators have the time and the shard of their generator', () => {
  for (const { generator, of, id, unixMs, shard } of rows) {
    const { unixUs, shardId, seq } = decode(id, of);
    assert.equal(shardId, shard, `${generator}: ${id}`);
    // The time of an ID is the beginning of its tick.
    assert.equal(String(encode({ createdAt: unixMs, shardId: shard, seq }, of)), id, `${generator}: ${id}`);
    assert.ok(unixUs <= BigInt(unixMs) * 1000n, `${generator}: ${id}`);
  }
});

test('the generators are those whose IDs were seen', () => {
  const seen = new Set(rows.map(({ of }) => of.spec));
  for (const { name, spec } of generators) assert.ok(layout(spec).spec === spec && seen.has(spec), name);
  const time = ({ bits, timeBits, epochMs, unit }) => `${bits - timeBits} ${epochMs} ${unit}`;
  const listed = generators.map(({ spec }) => time(layout(spec)));
  const listedPresets = ['discord', 'twitter', 'mastodon', 'sonyflake'].map((name) => time(layout(name)));
  const isOver = ({ spec }) => spec.startsWith('time:28 shard:22 seq:13');
  const expected = rows.filter(({ of }) => !isOver(of)).map(({ of }) => time(of)).filter((of) => !listedPresets.includes(of));
  assert.deepEqual(new Set(listed), new Set(expected));
});

test('the layout of a recent ID comes first', () => {
  const first = (of, shardId, seq) => candidates(encode({ createdAt: NOW - 1000, shardId, seq }, of), NOW).candidates[0].name;
  for (const { name, spec, firstSeq } of generators) assert.equal(first(spec, 0, firstSeq), name);
  for (const name of Object.keys(presets)) assert.equal(first(name, 0, 0), name);
  assert.deepEqual([5, 6, 31].map((seq) => first('time:41 shard:6 seq:6 epoch:2020-01-01 unit:1ms', 41, seq)), Array(3).fill('simple-flakeid'));
});

test('an ID may be of none of the layouts', () => {
  for (const id of [-1n, 0n, 1_000_000n, 1541815603606036480n, 2n ** 63n - 1n]) assert.equal(candidates(id, NOW).fits, false, String(id));
  assert.equal(candidates(2235219950664999947n, NOW).fits, true);
});
