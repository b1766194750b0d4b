/**
 * Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
 *
 * The module `find` of the Rust crate `pg_snowflake_ids` is the original, and explains how; the tests compare both.
 */

import { UNIT_US, decode, layout, presets, specOf } from './snowflake.js';

const UNITS = Object.entries(UNIT_US).map(([unit, us]) => [unit, Number(us)]);
const PLACES = ['above_seq', 'lowest', 'lowest_xored'];
const MIN_SAMPLES = 3;
const TIME_SAMPLES = 1000;
const [LEAST_LOW_BITS, MOST_LOW_BITS] = [8, 48];
const MAX_TIME_BITS = 48;
const MAX_OTHER_BITS = 31;
const SNAP_US = 60_000_000;
const DAY_US = 86_400_000_000;

/**
 * The layout of samples `[id, time]`, in any order. Throws a RangeError with the reason if there is none.
 * @param {[bigint, number][]} samples IDs, and their times in microseconds since 1970
 */
export function find(samples) {
  // An ID that is there twice has its first time.
  const byId = new Map();
  for (const [id, unixUs] of samples) {
    if (id > 0n && !(byId.get(id) <= unixUs)) byId.set(id, unixUs);
  }
  const sorted = [...byId].sort(([a], [b]) => (a < b ? -1 : 1));
  if (sorted.length < MIN_SAMPLES) throw new RangeError(`At least ${MIN_SAMPLES} different IDs with their times are needed.`);
  const time = timeOf(fewOf(sorted));
  const ids = sorted.map(([id]) => id);
  const { division, isCertain } = divide(ids.map((id) => halvesOf(id, time.lowBits)), time);
  const of = layoutOf(time, division);
  const toleranceUs = Math.max(time.spreadUs * 10, 10_000_000);
  return {
    layout: of,
    measuredEpochUs: time.measuredEpochUs,
    spreadUs: time.spreadUs,
    toleranceUs,
    otherUnits: time.otherUnits,
    isDivisionCertain: isCertain,
    countsIntoShard: countsIntoShard(ids, of),
    shards: [...new Set(ids.map((id) => decode(id, of).shardId))].sort((a, b) => a - b),
    misfits: sorted.filter(([id, unixUs]) => Math.abs(Number(decode(id, of).unixUs) - unixUs) > toleranceUs).map(([id]) => id),
  };
}

/** Some of the samples, spread over all of them by multiples of the golden ratio: every tenth row, say, might be a late one. */
function fewOf(samples) {
  if (samples.length <= TIME_SAMPLES) return samples;
  return Array.from({ length: TIME_SAMPLES }, (_, n) => samples[Math.floor(((Math.imul(n + 1, 0x9e3779b9) >>> 0) * samples.length) / 2 ** 32)]);
}

/** The width of what is below the time, the unit and the epoch. */
function timeOf(samples) {
  const times = samples.map(([, unixUs]) => unixUs).sort((a, b) => a - b);
  const spanUs = middle(times);
  if (spanUs === 0) throw new RangeError('The rows have the same time. IDs of different times are needed.');
  const readings = [];
  for (let lowBits = LEAST_LOW_BITS; lowBits <= MOST_LOW_BITS; lowBits++) {
    for (const [unit, unitUs] of UNITS) readings.push({ lowBits, unit, unitUs, spread: middle(epochs(samples, lowBits, unitUs)) });
  }
  const best = Math.min(...readings.map(({ spread }) => spread));
  if (best > Math.trunc(spanUs / 10)) throw new RangeError('The IDs do not rise with the time of their rows.');
  const possible = readings
    .filter(({ spread, unitUs }) => spread <= Math.max(best * 3, unitUs) && spread <= Math.trunc(spanUs / 10))
    .map((reading) => withEpoch(samples, reading))
    .filter(({ epochMs }) => epochMs >= 0);
  if (possible.length === 0) throw new RangeError('The IDs do not rise with the time of their rows.');
  const rank = (time) => [presetOf(time) ? 0 : 1, time.unit === '1ms' ? 0 : 1, time.spreadUs];
  const time = least(possible, rank);
  return { ...time, otherUnits: possible.map(({ unit }) => unit).filter((unit) => unit !== time.unit) };
}

function withEpoch(samples, { lowBits, unit, unitUs, spread }) {
  const sorted = epochs(samples, lowBits, unitUs);
  const half = Math.trunc(sorted.length / 2);
  // The shortest interval with half of the rows: late rows and wrong clocks are outside.
  const starts = sorted.slice(0, sorted.length - half).map((_, start) => start);
  const start = least(starts, (start) => [sorted[start + half] - sorted[start]]);
  const measuredEpochUs = sorted[start + Math.trunc(half / 2)];
  const spreadUs = Math.min(spread, sorted[start + half] - sorted[start]);
  const time = { lowBits, unit, unitUs, measuredEpochUs, spreadUs, epochMs: Math.floor(measuredEpochUs / 1_000) };
  const midnightUs = Math.floor((measuredEpochUs + DAY_US / 2) / DAY_US) * DAY_US;
  const preset = presetOf(time);
  if (preset) time.epochMs = preset.epochMs;
  else if (Math.abs(midnightUs - measuredEpochUs) <= SNAP_US) time.epochMs = midnightUs / 1_000;
  return time;
}

const lowBitsOf = ({ shardBits, seqBits }) => shardBits + seqBits;

function presetOf({ lowBits, unit, measuredEpochUs }) {
  return Object.values(presets).find(
    (preset) => lowBitsOf(preset) === lowBits && preset.unit === unit && Math.abs(preset.epochMs * 1_000 - measuredEpochUs) <= SNAP_US,
  );
}

function layoutOf(time, { place, shardBits, seqBits }) {
  const preset = presetOf(time);
  if (preset && preset.shardPlace === place && preset.shardBits === shardBits && preset.seqBits === seqBits) return preset;
  const timeBits = Math.min(64 - time.lowBits, MAX_TIME_BITS);
  const { unit, epochMs } = time;
  return layout(specOf({ timeBits, shardBits, seqBits, shardPlace: place, unit, epochMs }));
}

const epochs = (samples, lowBits, unitUs) =>
  samples.map(([id, unixUs]) => unixUs - Number(id >> BigInt(lowBits)) * unitUs).sort((a, b) => a - b);

/** How far the middle half of sorted values reaches; of fewer than eight, all. */
function middle(sorted) {
  const last = sorted.length - 1;
  const quarter = sorted.length < 8 ? 0 : Math.trunc(sorted.length / 4);
  return sorted[last - quarter] - sorted[quarter];
}

/** The first item whose rank, a list of numbers, is the least. */
function least(items, rank) {
  const before = (a, b) => {
    const index = a.findIndex((value, index) => value !== b[index]);
    return index >= 0 && a[index] < b[index];
  };
  return items.map((item) => [rank(item), item]).reduce((best, next) => (before(next[0], best[0]) ? next : best))[1];
}

/** The place and the widths of shard and seq. */
function divide(ids, time) {
  const divisions = [];
  for (const place of PLACES) {
    for (let shardBits = place === 'above_seq' ? 0 : 1; shardBits <= time.lowBits; shardBits++) {
      const seqBits = time.lowBits - shardBits;
      if (shardBits > MAX_OTHER_BITS || seqBits > MAX_OTHER_BITS) continue;
      const division = { place, shardBits, seqBits };
      divisions.push({ ...division, cost: costOf(ids, division) });
    }
  }
  const leastCost = Math.min(...divisions.map(({ cost }) => cost));
  // A counter rises by one and not by two, as it would if its lowest bit were the shard's.
  const stepping = divisions.filter(({ cost }) => cost === leastCost).map((division) => ({ ...division, step: medianStep(ids, division) }));
  const leastStep = Math.min(...stepping.map(({ step }) => step));
  const best = stepping.filter(({ step }) => step === leastStep);
  const usual =
    presetOf(time) ?? Object.values(presets).find((preset) => lowBitsOf(preset) === time.lowBits && preset.unit === time.unit);
  const isUsual = ({ place, shardBits }) => usual !== undefined && usual.shardPlace === place && usual.shardBits === shardBits;
  // The bits above a counter that are never set are the counter's, too, if the shard is 0.
  const width = (division) => (ids.every((id) => split(id, division).shard === 0) ? -division.seqBits : division.seqBits);
  const rank = (division) => [isUsual(division) ? 0 : 1, width(division)];
  return { division: least(best, rank), isCertain: best.length === 1 };
}

/** Whether the shard changes, and only where the counter begins again. */
function countsIntoShard(ids, of) {
  const fields = ids.map((id) => decode(id, of));
  const changes = fields.slice(1).map((next, index) => [fields[index], next]).filter(([one, next]) => one.shardId !== next.shardId);
  return changes.length > 0 && changes.every(([one, next]) => next.seq < one.seq);
}

/** The shards, and the rows at which the counter of a shard neither rises by a small step nor begins again. */
function costOf(ids, division) {
  const shards = new Map();
  const most = Math.min(Math.max(Math.trunc(2 ** division.seqBits / 4), 1), 64);
  let [rising, resetting] = [0, 0];
  for (const id of ids) {
    const { shard, tick, seq } = split(id, division);
    const last = shards.get(shard);
    shards.set(shard, { tick, seq });
    if (last === undefined) continue;
    const step = stepOf(last.seq, seq, division);
    const isSmall = step >= 1 && step <= most;
    rising += isSmall ? 0 : 1;
    const beginsAgain = tick !== last.tick && seq <= 3;
    resetting += beginsAgain || (tick === last.tick && isSmall) ? 0 : 1;
  }
  return shards.size + Math.min(rising, resetting);
}

function medianStep(ids, division) {
  const shards = new Map();
  const steps = [];
  for (const id of ids) {
    const { shard, seq } = split(id, division);
    if (shards.has(shard)) steps.push(stepOf(shards.get(shard), seq, division));
    shards.set(shard, seq);
  }
  return steps.sort((a, b) => a - b)[Math.trunc(steps.length / 2)] ?? 0;
}

/** How far the counter has risen, modulo its size. */
const stepOf = (from, to, { seqBits }) => (to - from + 2 ** seqBits) % 2 ** seqBits;

/** An ID as two numbers of 32 bits, which are faster than a `bigint`, with its tick. */
const halvesOf = (id, lowBits) => ({ high: Number(id >> 32n), low: Number(id & 0xffff_ffffn), tick: Number(id >> BigInt(lowBits)) });

function split({ high, low, tick }, { place, shardBits, seqBits }) {
  const field = (shift, width) => {
    const shifted = shift >= 32 ? high >>> (shift - 32) : shift === 0 ? low : (high << (32 - shift)) | (low >>> shift);
    return shifted & (2 ** width - 1);
  };
  if (place === 'above_seq') return { shard: field(seqBits, shardBits), tick, seq: field(0, seqBits) };
  const above = place === 'lowest_xored' ? field(shardBits, shardBits) : 0;
  return { shard: field(0, shardBits) ^ above, tick, seq: field(shardBits, seqBits) };
}
