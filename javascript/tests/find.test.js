import assert from 'node:assert/strict';
import { test } from 'node:test';
import { find } from '../find.js';
import { encode, layout, presets } from '../snowflake.js';

const BEGIN_US = Date.UTC(2026, 0) * 1_000;
const DAY_US = 86_400_000_000;

/** The same numbers from 0 to 1 in every run. */
function randomFrom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/**
 * A table of rows since 2026-01-01: the server's clock is up to two seconds off, and one row in ten was inserted up to ten days
 * late. `idOf` is passed the time in microseconds, the number of the row in its shard, and the shard.
 */
function rows(idOf, { count = 3000, shards = [5], apartUs = 3_000_000_000, first = 0 } = {}) {
  const random = randomFrom(1);
  const counters = new Map(shards.map((shard) => [shard, first]));
  let unixUs = BEGIN_US;
  return Array.from({ length: count }, () => {
    unixUs += Math.trunc(random() * 2 * apartUs);
    const shard = shards[Math.trunc(random() * shards.length)];
    counters.set(shard, counters.get(shard) + 1);
    const lateUs = random() < 0.1 ? random() * 10 * DAY_US : (random() - 0.5) * 4_000_000;
    return [idOf(unixUs, counters.get(shard), shard), unixUs + Math.trunc(lateUs)];
  });
}

/** A copy of Instagram's function. */
const copy = ({ epochMs, shift, shardShift, modulo, unitUs = 1_000 }) => (unixUs, counter, shard) =>
  (BigInt(Math.trunc((unixUs - epochMs * 1_000) / unitUs)) << BigInt(shift)) |
  (shardShift === undefined ? 0n : BigInt(shard) << BigInt(shardShift)) |
  BigInt(modulo === undefined ? counter : counter % modulo);

test('the layouts of ten copies of Instagram’s function are found', () => {
  const copies = [
    [{ epochMs: 1_314_220_021_721, shift: 23, shardShift: 10, modulo: 1024 }, 'time:41 shard:13 seq:10'],
    [{ epochMs: 1_620_213_659_000, shift: 23, shardShift: 10, modulo: 1024 }, 'time:41 shard:13 seq:10', [0]],
    [{ epochMs: 1_735_689_600_000, shift: 23, modulo: 8_388_608 }, 'time:41 shard:0 seq:23'],
    [{ epochMs: 0, shift: 21, shardShift: 15, modulo: 32_768 }, 'time:43 shard:6 seq:15', [1]],
    [{ epochMs: 1_451_624_400_000, shift: 23, shardShift: 10, modulo: 1024 }, 'time:41 shard:13 seq:10', [0]],
    [{ epochMs: 1_288_834_974_657, shift: 22, shardShift: 12, modulo: 4096 }, 'time:41 shard:10 seq:12', [1]],
    [{ epochMs: 1_713_484_069_680, shift: 22, shardShift: 12, modulo: 4096 }, 'time:42 shard:10 seq:12', [1]],
    [{ epochMs: 1_451_606_400_000, shift: 21, shardShift: 11, modulo: 2048 }, 'time:43 shard:10 seq:11', [3]],
    // Its author took seconds for milliseconds, and its shard is on the highest bit of the counter.
    [{ epochMs: 1_577_836_800, shift: 22, shardShift: 9, modulo: 1024 }, 'time:42 shard:13 seq:9', [1]],
    [{ epochMs: 1_609_459_200_000, shift: 15, shardShift: 14, modulo: 16_384 }, 'time:48 shard:1 seq:14', [1]],
    [{ epochMs: 1_420_070_400_000, shift: 31, shardShift: 16, modulo: 65_536, unitUs: 1_000_000 }, 'time:33 shard:15 seq:16', [7]],
    [{ epochMs: 1_420_070_400_000, shift: 23, shardShift: 10, modulo: 1024 }, 'time:41 shard:13 seq:10', [3, 4, 900]],
  ];
  for (const [parameters, fields, shards] of copies) {
    const count = 3000;
    // The counter begins again in the middle.
    const found = find(rows(copy(parameters), { count, shards, first: 2 * parameters.modulo - 500 }));
    const name = JSON.stringify(parameters);
    assert.equal(found.layout.spec.split(' epoch')[0], fields, name);
    assert.ok(Math.abs(found.layout.epochMs - parameters.epochMs) < 2_000, `${name} ${found.layout}`);
    assert.deepEqual([found.isDivisionCertain, found.countsIntoShard, found.otherTicksUs], [true, false, []], name);
    assert.deepEqual(found.shards, shards ?? (parameters.shardShift === undefined ? [0] : [5]), name);
    assert.ok(found.misfits.length > count / 20 && found.misfits.length < count / 9, `${found.misfits.length} of ${count}`);
  }
});

test('a doubt is named', () => {
  const [epochMs, shift] = [1_314_220_021_721, 23];
  const unused = find(rows(copy({ epochMs, shift, shardShift: 10, modulo: 1024 }), { count: 300 }));
  assert.deepEqual([String(unused.layout), unused.isDivisionCertain], ['instagram', false]);
  const noModulo = find(rows(copy({ epochMs, shift, shardShift: 10, modulo: 2 ** 40 }), { shards: [1], first: 700 }));
  assert.equal(noModulo.countsIntoShard, true);
});

test('every preset is found', () => {
  for (const [name, of] of Object.entries(presets)) {
    const idOf = (unixUs, counter) => encode({ createdAt: BigInt(unixUs), shardId: of.shardBits > 0 ? 3 : 0, seq: counter % 2 ** of.seqBits }, of);
    const { layout: found, shards } = find(rows(idOf, { first: 2 ** of.seqBits - 1500 + 2 ** 12 }));
    assert.deepEqual([String(found), shards], [name, [of.shardBits > 0 ? 3 : 0]]);
  }
});

test('a shard that is XORed with bits above 2^53 is found', () => {
  const of = layout('time:33 seq:4 shard_xor_above:27 epoch:2024-01-01 unit:1s');
  const found = find(rows((unixUs, counter) => encode({ createdAt: BigInt(unixUs), shardId: 3, seq: counter % 16 }, of)));
  assert.deepEqual([String(found.layout), found.shards, found.isDivisionCertain], [String(of), [3], true]);
});

test('what has no layout is refused with the reason', () => {
  const at = BEGIN_US;
  assert.throws(() => find([[1n, at], [2n, at + 1]]), /^RangeError: At least 3 different IDs/);
  assert.throws(() => find([[1n, at], [2n, at], [3n, at]]), /^RangeError: The rows have the same time/);
  const random = randomFrom(2);
  const ids = Array.from({ length: 500 }, (_, n) => [BigInt(Math.trunc(random() * 2 ** 62)), at + n * 3_600_000_000]);
  assert.throws(() => find(ids), /^RangeError: The IDs do not rise/);
});
