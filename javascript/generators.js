/**
 * The layouts of other ID generators, of docs/generators.md, and what an ID may be of.
 *
 * The Rust crate `pg_snowflake_ids` is the original of this table; the tests compare both with the IDs that the generators returned,
 * or that their published formulas give.
 */

import { decode, layout, readings } from './snowflake.js';

const DAY_US = 86_400_000_000n;

/** Name and layout of each, and the lowest value of its counter. Of those that read the same time in the same number of bits, one. */
export const generators = Object.freeze([
  { name: 'tsid', spec: 'time:42 shard:10 seq:12 epoch:2020-01-01 unit:1ms', firstSeq: 0 },
  { name: 'yitter', spec: 'time:41 shard:6 seq:6 epoch:2020-02-19T18:20:02Z unit:1ms', firstSeq: 5 },
  { name: 'simple-flakeid', spec: 'time:41 shard:6 seq:6 epoch:2020-01-01 unit:1ms', firstSeq: 5 },
  { name: 'idgenerator', spec: 'time:41 shard:8 seq:8 epoch:2020-02-19T18:20:02Z unit:1ms', firstSeq: 5 },
  { name: 'cockroachdb', spec: 'time:48 shard:15 seq:0 epoch:2015-01-01 unit:10us', firstSeq: 0 },
  { name: 'flake-idgen', spec: 'time:42 shard:10 seq:12 epoch:1970-01-01 unit:1ms', firstSeq: 0 },
  { name: 'snowflake-uuid', spec: 'time:42 shard:10 seq:12 epoch:2021-01-01 unit:1ms', firstSeq: 0 },
  { name: 'akashrajpurohit', spec: 'time:42 shard:10 seq:12 epoch:2020-08-10 unit:1ms', firstSeq: 0 },
  { name: 'shardingsphere', spec: 'time:41 shard:10 seq:12 epoch:2016-10-31T16:00:00Z unit:1ms', firstSeq: 0 },
  { name: 'hipopayflake', spec: 'time:41 shard:13 seq:9 epoch:2020-09-20T04:08:00Z unit:1ms', firstSeq: 0 },
  { name: 'simpleflakes', spec: 'time:41 shard:0 seq:23 epoch:2000-01-01 unit:1ms', firstSeq: 0 },
  { name: 'simpleflake', spec: 'time:41 shard:0 seq:23 epoch:2000-01-01T05:00:00Z unit:1ms', firstSeq: 0 },
  { name: 'ferroid', spec: 'time:41 shard:13 seq:10 epoch:2011-01-01 unit:1ms', firstSeq: 0 },
  { name: 'fity3', spec: 'time:41 shard:8 seq:4 epoch:2014-10-15T11:00:00Z unit:1ms', firstSeq: 0 },
  { name: 'ulid-flake', spec: 'time:43 shard:0 seq:20 epoch:2024-01-01 unit:1ms', firstSeq: 0 },
  { name: 'npm-sonyflake', spec: 'time:39 seq:8 shard:16 epoch:2020-01-01 unit:1ms', firstSeq: 0 },
  { name: 'toolkit-sony', spec: 'time:39 shard:8 seq:16 epoch:1970-01-01 unit:10ms', firstSeq: 0 },
  { name: 'nocobase', spec: 'time:32 shard:5 seq:16 epoch:2020-11-10T16:00:00Z unit:1s', firstSeq: 0 },
  { name: 'uid-generator', spec: 'time:29 shard:21 seq:13 epoch:2016-09-19T16:00:00Z unit:1s', firstSeq: 0 },
  { name: 'weibo', spec: 'time:31 shard:4 seq:18 epoch:1986-05-03T05:51:03Z unit:1s', firstSeq: 0 },
]);

/**
 * The ID as every preset reads it, and as the generators do in whose layout it is of the last 90 days: the latter have a `spec`. The most
 * likely first. `fits` is whether any of them reads a time of the last 90 days.
 */
export function candidates(id, now = Date.now()) {
  const all = readings(id, now);
  const nowUs = BigInt(now) * 1_000n;
  const distance = ({ unixUs }) => (unixUs > nowUs ? unixUs - nowUs : nowUs - unixUs);
  const isRecent = ({ doubt, unixUs }) => doubt === null && unixUs >= nowUs - 90n * DAY_US && unixUs <= nowUs + DAY_US;
  for (const { name, spec, firstSeq } of generators) {
    const of = layout(spec);
    if (BigInt(id) < 0n || BigInt(id) >> BigInt(of.bits) !== 0n) continue;
    const reading = { name, spec, ...decode(id, of), doubt: null };
    const isInFirstDays = reading.unixUs < BigInt(of.epochMs) * 1_000n + 90n * DAY_US;
    if (!isRecent(reading) || isInFirstDays) continue;
    // At the same time, as of Yitter and js53: the layout in which fewer IDs of the tick precede.
    const precedes = (other) =>
      other.doubt !== null ||
      distance(reading) < distance(other) ||
      (distance(reading) === distance(other) && reading.seq >= firstSeq && reading.seq - firstSeq < other.seq);
    const place = all.findIndex(precedes);
    all.splice(place < 0 ? all.length : place, 0, reading);
  }
  return { candidates: all, fits: all.some(isRecent) };
}
