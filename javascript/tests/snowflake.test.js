import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode, info, layout, minId, presets, readings, shardFormula } from '../snowflake.js';

const ID = 2235219950664999947n; // of the README
const NOW = Date.UTC(2026, 10, 25);

test('an ID has a time, a shard and a seq', () => {
  const { createdAt, shardId, seq, tick, unixUs } = decode(ID);
  assert.deepEqual([createdAt.toISOString(), shardId, seq], ['2026-11-21T00:46:04.617Z', 5, 14]);
  assert.deepEqual([tick, unixUs], [532_917_964_617n, 1_795_221_964_617_000n]);
  assert.deepEqual(decode('2235219950664999947'), decode(ID));
  assert.equal(encode({ createdAt, shardId, seq }), ID);
});

test('a time finer than a millisecond is kept in microseconds', () => {
  const fine = 'time:48 seq:4 shard:4 epoch:2024-01-01 unit:10us';
  const id = encode({ createdAt: 1_704_067_200_000_010n, shardId: 3, seq: 2 }, fine);
  assert.deepEqual([id, decode(id, fine).unixUs, decode(id, fine).createdAt.getTime()], [(1n << 8n) | (2n << 4n) | 3n, 1_704_067_200_000_010n, 1_704_067_200_000]);
});

test('the smallest ID of a time is a bound', () => {
  const noon = Date.UTC(2022, 5, 28, 12);
  const id = 1541815603606036480n; // of Twitter, 16:07
  assert.ok(minId(noon, 'twitter') <= id && id < minId(noon + 5 * 3_600_000, 'twitter'));
  assert.deepEqual([minId(0, 'twitter'), minId(Date.UTC(3000, 0), 'twitter'), minId(Date.UTC(3000, 0), 'instagram')], [0n, 2n ** 63n - 1n, 2n ** 63n - 1n]);
  assert.equal(minId(Date.UTC(3000, 0), 'js53'), 2n ** 53n);
});

test('a layout is parsed and printed as in PostgreSQL', () => {
  for (const [name, preset] of Object.entries(presets)) {
    assert.equal(String(layout(name)), name);
    assert.equal(layout(preset.spec).spec, preset.spec);
    assert.equal(String(layout(preset.spec)), name);
  }
  const spec = 'time:41 seq:8 shard_xor_above:14 epoch:2024-01-01 unit:1ms';
  assert.equal(String(layout(`  ${spec}\n`)), spec);
  assert.equal(layout('time:41 shard:8 seq:14 epoch:2024-01-01T00:00:00.120Z unit:1s').spec, 'time:41 shard:8 seq:14 epoch:2024-01-01T00:00:00.12Z unit:1s');
});

test('what is not a layout is refused with what is allowed', () => {
  const spec = (parts) => Object.entries({ time: 41, shard: 8, seq: 14, epoch: '2024-01-01', unit: '1ms', ...parts }).map(([name, value]) => `${name}:${value}`).join(' ');
  const refused = {
    twiter: /^unrecognized layout "twiter"\. A layout is one of postgres, /,
    'time:41 x': /^layout part "x" has no value\. /,
    'time:41 bits:3': /^unrecognized layout part "bits"\. /,
    'time:41 time:41': /^layout part "time" is specified more than once\. /,
    'time:41': /^layout part "shard" is missing\. /,
    [spec({ time: 49 })]: /^invalid layout part "time:49"\. The time field has 1 to 48 bits/,
    [spec({ seq: '014' })]: /^invalid layout part "seq:014"\. /,
    [spec({ shard: 32 })]: /^invalid layout part "shard:32"\. /,
    [spec({ shard: 31, seq: 31 })]: /^layout fields have 103 bits in total\. An ID has 64 bits\./,
    [spec({ epoch: '2024-02-30' })]: /^invalid layout part "epoch:2024-02-30"\. /,
    [spec({ epoch: '2100-01-01' })]: /^layout part "epoch:2100-01-01" is in the future\. /,
    [spec({ unit: '2ms' })]: /^invalid layout part "unit:2ms"\. The unit is one of 10us, /,
    'seq:1 time:2 shard:3 epoch:2024-01-01 unit:1ms': /^invalid order of layout fields: seq, time, shard\. /,
    ['x'.repeat(1001)]: /^layout "x{100}\.\.\." is too long\. /,
  };
  for (const [text, message] of Object.entries(refused)) {
    assert.throws(() => layout(text, NOW), (error) => error instanceof SyntaxError && message.test(error.message), text);
  }
});

test('what is not an ID is refused with a sentence', () => {
  const refused = [
    ['letters', TypeError, /^"letters" is not an ID: an ID is a whole number/],
    ['', TypeError, /is not an ID/],
    ['1.5', TypeError, /is not an ID/],
    ['12345678901234567890', RangeError, /^12345678901234567890 is not an ID: the highest bigint of PostgreSQL is 9223372036854775807/],
    ['123456789012345678901', RangeError, /at most 19 digits/],
    [2235219950664999947, TypeError, /may be rounded: pass an ID above 2\^53 as a string/],
    [null, TypeError, /an ID is a bigint/],
    ['-1', RangeError, /^-1 is not an ID of layout "postgres": it has more than 63 bits/],
  ];
  for (const [id, kind, message] of refused) {
    assert.throws(() => decode(id), (error) => error.constructor === kind && message.test(error.message), String(id));
  }
});

test('fields outside a layout are refused', () => {
  const createdAt = new Date(NOW);
  assert.throws(() => encode({ createdAt: new Date(0), shardId: 5 }), /^RangeError: the time is not in layout "postgres", which begins on 2010-01-01/);
  const end = Date.UTC(2046, 5, 27, 17, 0, 49, 497);
  assert.equal(encode({ createdAt: end - 1, shardId: 8191, seq: 1023 }, 'instagram'), 2n ** 63n - 1n);
  assert.throws(() => encode({ createdAt: end, shardId: 5 }, 'instagram'), /^RangeError: the time is not in layout "instagram"/);
  assert.throws(() => encode({ createdAt, shardId: 4096 }), /^RangeError: shardId 4096 is not in layout "postgres": it is from 0 to 4095/);
  assert.throws(() => encode({ createdAt, shardId: 5, seq: 1024 }), /^RangeError: seq 1024/);
  assert.throws(() => encode({ createdAt, shardId: 1.5 }), /^RangeError: shardId 1\.5/);
  assert.throws(() => encode({ createdAt: new Date(NaN), shardId: 5 }), /^TypeError: a time is a valid Date/);
});

test('presets are listed with the likely one first', () => {
  const [first, second] = readings(1541815603606036480n, Date.UTC(2022, 5, 29));
  assert.deepEqual([first.name, first.shardId, first.doubt, second.name], ['twitter', 378, null, 'postgres']);
  const last = readings(1541815603606036480n, Date.UTC(2022, 5, 29)).at(-1);
  assert.deepEqual(last, { name: 'js53', doubt: 'not an ID' });
  assert.equal(readings(1_000_000, NOW).at(0).doubt, 'first days');
  assert.ok(readings(-1n, NOW).every(({ doubt }) => doubt === 'not an ID'));
});

test('the figures of a layout', () => {
  const { shards, idsPerSecond, endsAt, distinctFolds, isExactInJavaScript } = info();
  assert.deepEqual([shards, idsPerSecond, endsAt.toISOString().slice(0, 10), distinctFolds, isExactInJavaScript], [4096, 1_024_000, '2079-09-07', 614_400_000, false]);
  assert.deepEqual([info('instagram').distinctFolds, info('js53').isExactInJavaScript], [1_048_576, true]);
  assert.deepEqual(['postgres', 'twitter', 'sonyflake', 'mastodon'].map((name) => shardFormula(name, 'javascript')), [
    '(id ^ (id >> 12n)) & 4095n',
    '(id >> 12n) & 1023n',
    'id & 65535n',
    '0n',
  ]);
});
