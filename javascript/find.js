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
const CLOCK_ERROR_US = 10_000_000;
const BITS_OF_A_SHARD = 32;
const BITS_OF_A_STRIDE = 32;
const SHARDS_OF_A_BLOCK = 8;
const CERTAIN_BITS = 8;
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
  const toleranceUs = Math.max(time.spreadUs * 10, CLOCK_ERROR_US);
  // Rows that came late, or whose ID is from elsewhere, say nothing about shard and counter.
  const isNear = (sample) => Math.abs(epochOf(sample, time.lowBits, time.unitUs) - time.epochMs * 1_000) <= toleranceUs;
  const ids = sorted.filter(isNear).map(([id]) => id);
  if (ids.length < MIN_SAMPLES) throw new RangeError('The IDs do not rise with the time of their rows.');
  if (isSerial(ids, time)) throw new RangeError('The IDs are consecutive numbers, as of a sequence.');
  const { division, isCertain } = divide(ids.map((id) => halvesOf(id, time.lowBits)), time);
  const of = layoutOf(time, division);
  return {
    layout: of,
    measuredEpochUs: time.measuredEpochUs,
    spreadUs: time.spreadUs,
    toleranceUs,
    otherUnits: time.otherUnits,
    isDivisionCertain: isCertain,
    countsIntoShard: division.countsOn,
    shards: [...new Set(ids.map((id) => decode(id, of).shardId))].sort((a, b) => a - b),
    isSure: isCertain && !division.countsOn && time.otherUnits.length === 0 && ids.length * 10 >= sorted.length * 9,
    newest: ids.at(-1),
    misfits: sorted.filter((sample) => !isNear(sample)),
  };
}

/** Whether the low bits count on from tick to tick, as those of consecutive numbers do: from their highest number to 0. */
function isSerial(ids, { lowBits }) {
  const shift = BigInt(lowBits);
  const halfATick = 1n << (shift - 1n);
  let [ticks, small] = [0, 0];
  for (let index = 1; index < ids.length; index++) {
    if (ids[index] >> shift === ids[index - 1] >> shift) continue;
    ticks++;
    if (ids[index] - ids[index - 1] < halfATick) small++;
  }
  return 2 * small > ticks;
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
  // The error of clocks can be a large part of a short span, but not of a long one: a wrong unit leaves at least 2.3 %.
  const mostUs = Math.min(Math.trunc(spanUs / 10), Math.max(CLOCK_ERROR_US, Math.trunc(spanUs / 100)));
  if (best > mostUs) throw new RangeError('The IDs do not rise with the time of their rows.');
  const possible = readings
    .filter(({ spread, unitUs }) => spread <= Math.max(best * 3, unitUs) && spread <= mostUs)
    .map((reading) => withEpoch(samples, reading))
    .filter(({ epochMs }) => epochMs >= 0 && epochMs <= Date.now());
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

const epochOf = ([id, unixUs], lowBits, unitUs) => unixUs - Number(id >> BigInt(lowBits)) * unitUs;

const epochs = (samples, lowBits, unitUs) => samples.map((sample) => epochOf(sample, lowBits, unitUs)).sort((a, b) => a - b);

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
  const ticks = ofTicks(ids);
  for (const place of PLACES) {
    for (let shardBits = place === 'above_seq' ? 0 : 1; shardBits <= time.lowBits; shardBits++) {
      const seqBits = time.lowBits - shardBits;
      if (shardBits > MAX_OTHER_BITS || seqBits > MAX_OTHER_BITS) continue;
      const division = { place, shardBits, seqBits };
      divisions.push({ ...division, ...lengthOf(ticks, ids.length, division) });
    }
  }
  const shortest = Math.min(...divisions.map(({ total }) => total));
  const usual =
    presetOf(time) ?? Object.values(presets).find((preset) => lowBitsOf(preset) === time.lowBits && preset.unit === time.unit);
  const isOf = (preset, { place, shardBits }) => preset !== undefined && preset.shardPlace === place && preset.shardBits === shardBits;
  // The bits above a counter that are never set are the counter's, too, if the shard is 0.
  const width = (division) => (ids.every((id) => split(id, division).shard === 0) ? -division.seqBits : division.seqBits);
  const rank = (division) => [isOf(usual, division) ? 0 : 1, width(division)];
  const best = least(divisions.filter(({ total }) => total === shortest), rank);
  // If the shard changes only where the counter begins again, the shard's lowest bits are the counter's, too.
  const isCertain =
    !best.fillsABlock && divisions.every((other) => other === best || other.bits >= best.bits + CERTAIN_BITS || (other.countsOn && !best.countsOn));
  if (isCertain) return { division: best, isCertain };
  // The epoch of a preset says more than counters without an order, and its widths are the usual ones.
  const rows = ids.length;
  const isPreset = presetOf(time) !== undefined;
  const isPlausible = (division) =>
    isOf(usual, division) && (division.total <= shortest + rows || division.shards * (isPreset ? 2 : 16) <= rows);
  return { division: (isPreset || best.fillsABlock ? divisions.find(isPlausible) : undefined) ?? best, isCertain };
}

/** The length of a text that describes shard and counter of each row, and what else there is to know of a division. */
function lengthOf(ticks, rows, division) {
  const { seqBits } = division;
  const byShard = new Map();
  const steps = [];
  const resetting = surprises(seqBits);
  let [changes, beginnings] = [0, 0];
  let lastRow;
  for (const tick of ticks) {
    const parts = tick.map((id) => split(id, division));
    if (parts.length > 1) parts.sort((one, next) => one.shard - next.shard || one.seq - next.seq);
    for (let from = 0; from < parts.length; ) {
      const { shard } = parts[from];
      const seqs = [];
      for (; from < parts.length && parts[from].shard === shard; from++) seqs.push(parts[from].seq);
      if (lastRow !== undefined && lastRow.shard !== shard) {
        changes++;
        if (seqs[0] < lastRow.seq) beginnings++;
      }
      lastRow = { shard, seq: seqs.at(-1) };
      // IDs of a tick are in the order of their counters, which may have begun again in it.
      let before = byShard.get(shard);
      if (before !== undefined) resetting.add(seqs[0] + 1, 1);
      for (let index = 1; index < seqs.length; index++) resetting.add(stepOf(seqs[index - 1], seqs[index], division), 1);
      const begin = Math.max(before === undefined ? 0 : seqs.findIndex((seq) => seq > before), 0);
      for (const seq of [...seqs.slice(begin), ...seqs.slice(0, begin)]) {
        if (before !== undefined) steps.push(stepOf(before, seq, division));
        before = seq;
      }
      byShard.set(shard, before);
    }
  }
  const stride = [...steps].sort((a, b) => a - b)[Math.trunc(steps.length / 2)] ?? 1;
  const rising = surprises(seqBits);
  for (const step of steps) rising.add(step, stride);
  const unusual = stride === 1 ? 0 : BITS_OF_A_STRIDE;
  const counter = Math.min(rising.bits(rows) + unusual, resetting.bits(rows), rows * seqBits);
  const shards = byShard.size;
  const bits = counter + Math.min(rows * bitsFor(shards), changes * (bitsFor(rows) + bitsFor(shards)));
  const numbers = [...byShard.keys()].sort((a, b) => a - b);
  const fillsABlock =
    shards >= SHARDS_OF_A_BLOCK && shards === 2 ** bitsFor(shards) && numbers[0] % shards === 0 && numbers.at(-1) - numbers[0] < shards;
  const countsOn = changes > 0 && beginnings * 10 >= changes * 9;
  return { shards, fillsABlock, countsOn, bits, total: bits + shards * BITS_OF_A_SHARD };
}

/** The steps of a counter that are not the usual one. */
function surprises(width) {
  let [count, sum] = [0, 0];
  return {
    add(step, usual) {
      if (step === usual) return;
      count++;
      sum += step === 0 ? width : Math.min(2 * (31 - Math.clz32(step)) + 1, width);
    },
    // Each row says whether its step is the usual one; or each surprise says which row it is of.
    bits: (rows) => sum + Math.min(rows, count * bitsFor(rows)),
  };
}

/** The IDs of each tick. */
function ofTicks(ids) {
  const ticks = [];
  for (const id of ids) {
    const last = ticks.at(-1);
    if (last !== undefined && last[0].tick === id.tick) last.push(id);
    else ticks.push([id]);
  }
  return ticks;
}

/** How many bits a number below `count` has. */
const bitsFor = (count) => (count <= 1 ? 0 : 32 - Math.clz32(count - 1));

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
