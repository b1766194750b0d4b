/**
 * Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
 *
 * The module `find` of the Rust crate `pg_snowflake_ids` is the original, and explains how; the tests compare both.
 */

import { generators } from './generators.js';
import { MAX_OTHER_BITS, MAX_TIME_BITS, UNIT_US, layout, presets, specOf } from './snowflake.js';

const UNITS = Object.entries(UNIT_US).map(([unit, us]) => [unit, Number(us)]);
const PLACES = ['above_seq', 'lowest', 'lowest_xored'];
const MIN_SAMPLES = 3;
const [TIME_SAMPLES, OVER_TIME] = [400, 300];
const LOW_BITS = Array.from({ length: 41 }, (_, n) => 8 + n);
const CLOCK_ERROR_US = 10_000_000;
const [MOST_SNAP_US, MOST_SPREAD_US] = [60_000_000, 60_000_000];
const EVEN_US = [86_400_000_000, 60_000_000, 1_000_000, 1_000];
const LIKELY = 3;
const [ROWS_OF_A_SHARD, ROWS_OF_A_LIKELY_SHARD] = [16, 4];
const [LEAST_SEQ_BITS, LARGE_CACHE_BITS] = [9, 8];
const LEAST_STEPS = 32;
/** The bits of shard and counter of other generators, the most usual first. */
const USUAL = [[10, 12], [8, 14], [12, 10], [4, 18], [13, 10], [13, 9], [16, 8], [8, 16], [6, 6], [7, 5], [8, 4], [8, 8], [5, 16]];
const KNOWN = [...Object.values(presets), ...generators.map(({ spec }) => layout(spec))];
const OTHER_LAYOUT = 'The IDs rise with the times of their rows, but no layout has ticks of this length, or this epoch. To replace the IDs, see docs/import.md.';
const NO_TIME = 'The IDs do not rise with the times of their rows.';

/**
 * The layout of samples `[id, time]`, in any order. Throws a RangeError with the reason if there is none.
 * @param {[bigint, number][]} samples IDs, and their times in microseconds since 1970
 */
export function find(samples) {
  const byId = samples.filter(([id]) => id > 0n).sort(([a, one], [b, other]) => (a < b ? -1 : a > b ? 1 : one - other));
  // An ID that is there twice has its first time.
  const sorted = byId.filter(([id], index) => id !== byId[index - 1]?.[0]);
  if (sorted.length < MIN_SAMPLES) throw new RangeError(`At least ${MIN_SAMPLES} different IDs with their times are needed.`);
  const time = timeOf(sorted);
  const toleranceUs = Math.max(time.spreadUs * 10, CLOCK_ERROR_US);
  // Rows that came late, or whose ID is from elsewhere, say nothing about shard and counter.
  const isNear = (sample) => Math.abs(epochOf(sample, time.lowBits, time.unitUs) - time.epochMs * 1_000) <= toleranceUs;
  const ids = sorted.filter(isNear).map(([id]) => id);
  if (ids.length < MIN_SAMPLES) throw new RangeError(NO_TIME);
  const shift = BigInt(time.lowBits);
  const halfATick = 1n << (shift - 1n);
  const steps = ids.slice(1).map((id, index) => [ids[index], id]).filter(([from, to]) => from >> shift !== to >> shift);
  // The low bits count on from tick to tick, as those of consecutive numbers do: from their highest number to 0.
  const small = steps.filter(([from, to]) => to - from < halfATick);
  if (2 * small.length > steps.length) throw new RangeError('The IDs are consecutive numbers, as of a sequence.');
  const { divisions, isCertain } = divide(ids, time);
  const [division, ...candidates] = divisions;
  const countsIntoShard = countsOn(ids.map((id) => split(numbersOf(id, time.lowBits), division)));
  const { otherTicksUs } = time;
  // If the lowest bits of the ticks hardly change, they may be low bits; and if the highest low bit does, it may be one of the time.
  const changing = division.tickChanges.findIndex((changes) => changes * 3 >= division.landings);
  if (changing !== 0) otherTicksUs.push(time.unitUs * 2 ** (changing < 0 ? division.tickChanges.length : changing));
  if (steps.filter(([from, to]) => ((from ^ to) & halfATick) !== 0n).length * 8 >= steps.length) otherTicksUs.push(time.unitUs / 2);
  const fitsMostOfTheTime = fitsMost(sorted, ids, isNear);
  return {
    layout: layoutOf(time, division),
    spreadUs: time.spreadUs,
    otherTicksUs,
    isUnitCertain: time.isUnitCertain,
    isDivisionCertain: isCertain,
    candidates: candidates.map((other) => ({ layout: layoutOf(time, other), shards: other.shards })),
    countsIntoShard,
    shards: division.shards,
    fitsMostOfTheTime,
    isSure: isCertain && !countsIntoShard && time.isUnitCertain && otherTicksUs.length === 0 && fitsMostOfTheTime && time.spreadUs <= MOST_SPREAD_US,
    newest: ids.at(-1),
    misfits: sorted.filter((sample) => !isNear(sample)),
  };
}

/** Whether the shard changes, and nearly always where the counter begins again, so that its bits seem to count, too. */
function countsOn(rows) {
  const changes = rows.slice(1).filter(({ shard }, index) => shard !== rows[index].shard).length;
  const beginnings = rows.slice(1).filter(({ shard, seq }, index) => shard !== rows[index].shard && seq < rows[index].seq).length;
  return changes > 0 && beginnings * 10 >= changes * 9;
}

/** Whether most rows fit in nine tenths of the time. */
function fitsMost(sorted, ids, isNear) {
  const [first, length] = [ids[0], (ids.at(-1) - ids[0]) / 100n + 1n];
  // Rounds down.
  const sliceOf = ([id]) => (id < first ? (id - first + 1n) / length - 1n : (id - first) / length);
  const slices = runsOf(sorted, sliceOf);
  return slices.filter((slice) => 2 * slice.filter(isNear).length > slice.length).length * 10 >= slices.length * 9;
}

/** The runs of items with the same key. */
function runsOf(items, keyOf) {
  const keys = items.map(keyOf);
  const starts = [...keys.keys()].filter((index) => keys[index] !== keys[index - 1]);
  return starts.map((start, index) => items.slice(start, starts[index + 1]));
}

/** Most are spread over the time, the others over the rows. They are picked by multiples of the golden ratio. */
function fewOf(samples) {
  if (samples.length <= TIME_SAMPLES) return samples;
  const [first, last] = [samples[0][0], samples.at(-1)[0]];
  const part = (n, of) => (of * BigInt(Math.imul(n, 0x9e3779b9) >>> 0)) >> 32n;
  const since = (least) => samples.find(([id]) => id >= least);
  const few = new Set(Array.from({ length: OVER_TIME }, (_, n) => since(first + part(n, last - first))));
  const others = Array.from({ length: TIME_SAMPLES - few.size }, (_, n) => samples[Number(part(few.size + n, BigInt(samples.length)))]);
  return [...few, ...others];
}

/** The width of what is below the time, the unit and the epoch. */
function timeOf(samples) {
  const few = fewOf(samples);
  // Without a tick, the epochs are the times of the rows.
  const [firstUs, lastUs] = middle(epochsOf(few, 0, 0));
  const spanUs = lastUs - firstUs;
  if (spanUs === 0) throw new RangeError('The rows have the same time. IDs of different times are needed.');
  const readings = LOW_BITS.flatMap((lowBits) => UNITS.map(([unit, unitUs]) => readingOf(few, { lowBits, unit, unitUs })));
  const bestUs = Math.min(...readings.map(({ spreadUs }) => spreadUs));
  // The error of clocks can be a large part of a short span, but not of a long one: a wrong unit leaves at least 2.3 %.
  const mostUs = Math.min(bestUs * 3, Math.trunc(spanUs / 10), Math.max(CLOCK_ERROR_US, Math.trunc(spanUs / 100)));
  const possible = readings
    .filter(({ spreadUs }) => spreadUs <= mostUs)
    .map((reading) => ({ ...readingOf(samples, reading), isUnitCertain: Math.max(reading.spreadUs, reading.unitUs) <= Math.trunc(spanUs / 100) }))
    .filter(({ epochMs }) => epochMs >= 0 && epochMs <= Date.now());
  const rising = samples.filter(([, unixUs], index) => index > 0 && samples[index - 1][1] <= unixUs).length;
  if (possible.length === 0) throw new RangeError(rising * 10 > samples.length * 8 ? OTHER_LAYOUT : NO_TIME);
  const rank = ({ known, unit }) => (known.length > 0 ? 0 : 2) + (unit === '1ms' ? 0 : 1);
  const [time, ...others] = possible.sort((one, other) => rank(one) - rank(other) || one.spreadUs - other.spreadUs);
  return { ...time, otherTicksUs: others.map(({ unitUs }) => unitUs).filter((us) => us !== time.unitUs) };
}

/** A reading of the time, with when its first tick began. */
function readingOf(samples, { lowBits, unit, unitUs }) {
  const epochs = epochsOf(samples, lowBits, unitUs);
  const [one, other] = middle(epochs);
  // The rows are as many ticks after the epoch as their IDs say, and up to a tick more.
  const [leastUs, mostUs] = [Math.min(other - unitUs, one), Math.max(one + unitUs, other)];
  const near = epochs.filter((us) => leastUs <= us && us <= mostUs);
  const [low, end] = [near[0], near.at(-1) - unitUs];
  const isExact = end <= low && near.length * 4 >= epochs.length * 3;
  const measuredUs = isExact ? low : low + Math.trunc((end - low) / 2);
  const spreadUs = other - one;
  const snapUs = isExact ? 0 : Math.min(spreadUs * 10, MOST_SNAP_US);
  const isIn = (us, byUs) => Math.min(low, end) - byUs <= us && us <= Math.max(low, end) + byUs;
  const known = KNOWN.filter((of) => of.shardBits + of.seqBits === lowBits && of.unit === unit && isIn(of.epochMs * 1_000, snapUs));
  const round = (us) => Math.floor((measuredUs + us / 2) / us) * us;
  const epochUs = EVEN_US.map(round).find((us, index) => isIn(us, index === 0 ? snapUs : 0)) ?? measuredUs;
  return { lowBits, unit, unitUs, epochMs: known[0]?.epochMs ?? Math.floor(epochUs / 1_000), spreadUs, known };
}

/** The one of these layouts or divisions that has its shard there. */
const withShard = (among, place, bits) => among.find(({ shardPlace, shardBits }) => shardPlace === place && shardBits === bits);

function layoutOf({ known, lowBits, unit, epochMs }, { shardPlace, shardBits, seqBits }) {
  const timeBits = Math.min(64 - lowBits, MAX_TIME_BITS);
  return withShard(known, shardPlace, shardBits) ?? layout(specOf({ timeBits, shardBits, seqBits, shardPlace, unit, epochMs }));
}

const epochOf = ([id, unixUs], lowBits, unitUs) => unixUs - Number(id >> BigInt(lowBits)) * unitUs;

/** The epoch by each row, in ascending order. */
const epochsOf = (samples, lowBits, unitUs) => samples.map((sample) => epochOf(sample, lowBits, unitUs)).sort((a, b) => a - b);

/** The ends of the middle half of sorted values; of fewer than eight, of all. Late rows and wrong clocks are outside. */
function middle(sorted) {
  const quarter = sorted.length < 8 ? 0 : Math.trunc(sorted.length / 4);
  return [sorted[quarter], sorted[sorted.length - 1 - quarter]];
}

/** The divisions of the low bits that the rows allow, the most likely first, and whether they prove it. */
function divide(ids, { lowBits, known }) {
  const ticks = runsOf(ids.map((id) => numbersOf(id, lowBits)), ({ tick }) => tick);
  const of = (shardPlace, shardBits) => ({ shardPlace, shardBits, seqBits: lowBits - shardBits, isKnown: Boolean(withShard(known, shardPlace, shardBits)) });
  const all = PLACES.flatMap((place) => Array.from({ length: lowBits + 1 }, (_, bits) => of(place, bits)));
  const likely = likelyOf(ids, lowBits, known).map(([place, bits]) => withShard(all, place, bits));
  const isPossible = ({ shardPlace, shardBits, seqBits }) => Math.max(shardBits, seqBits) <= MAX_OTHER_BITS && (shardBits > 0 || shardPlace === 'above_seq');
  const observed = [...new Set([...likely, ...all])].filter(isPossible).map((division) => observe(division, ticks));
  let divisions = observed.filter(({ isKnown, shards }) => isKnown || shards.length <= Math.max(ids.length / ROWS_OF_A_LIKELY_SHARD, 1));
  const mostShards = Math.max(Math.trunc(ids.length / ROWS_OF_A_SHARD), 1);
  // Only at the right width does the XOR turn many numbers into few shards.
  const isXored = ({ shardPlace, shardBits, shards }) => {
    const lowest = withShard(divisions, 'lowest', shardBits);
    return shardPlace === 'lowest_xored' && (lowest ? lowest.shards.length : mostShards) >= 4 * shards.length;
  };
  // The lower part of a counter that has wrapped has wrapped, too.
  const shown = divisions.filter((division) => division.shards.length <= mostShards && (isShown(division) || isXored(division)));
  const widest = shown.reduce((best, next) => (best && best.seqBits > next.seqBits ? best : next), undefined);
  if (widest && (isXored(widest) || isPlausible(widest))) return { divisions: [widest], isCertain: true };
  divisions = divisions.filter((division) => division === widest || likely.includes(division));
  const rank = ({ isKnown, shardBits }) => (isKnown ? 0 : 2) + (shardBits > 0 ? 0 : 1);
  divisions.sort((one, other) => rank(one) - rank(other) || one.shards.length - other.shards.length);
  if (divisions.length === 0) throw new RangeError(OTHER_LAYOUT);
  // That without a shard stays the last.
  const last = rank(divisions.at(-1)) === 3 ? divisions.splice(-1) : [];
  return { divisions: [...divisions.slice(0, LIKELY - last.length), ...last], isCertain: false };
}

/** The places and widths of the shard that are likely if none is proved, the most likely first. */
function likelyOf(ids, lowBits, known) {
  const mask = (1n << BigInt(lowBits)) - 1n;
  const set = mask & ids.reduce((bits, id) => bits | id);
  const changing = mask & ids.reduce((bits, id) => bits | (id ^ ids[0]), 0n);
  // The counter has the lowest bits that change, and perhaps those above that are 0.
  const [, ones, zeros] = /(1*)(0*)$/.exec(changing.toString(2));
  const constant = changing === 0n ? 0 : zeros.length;
  const narrowest = constant + ones.length;
  const above = set >> BigInt(narrowest);
  const widest = above === 0n ? lowBits : narrowest + /0*$/.exec(above.toString(2))[0].length;
  const usual = USUAL.filter(([shardBits, seqBits]) => shardBits + seqBits === lowBits);
  return [
    ...known.map(({ shardPlace, shardBits }) => [shardPlace, shardBits]),
    ...usual.flatMap(([shardBits]) => [['above_seq', shardBits], ['lowest', shardBits]]),
    ['above_seq', lowBits - widest],
    ['lowest', constant],
    ['above_seq', 0],
  ];
}

/** Adds to a division what the counters of all shards have done from tick to tick. */
function observe(division, ticks) {
  const seqs = 2 ** division.seqBits;
  const step = (from, to) => (to.seq - from.seq + seqs) % seqs;
  const ends = new Map();
  Object.assign(division, { landings: 0, tickChanges: [0, 0, 0, 0, 0, 0], near: 0, next: 0, ones: 0, wraps: 0 });
  for (const tick of ticks) {
    const fields = tick.map((id) => split(id, division)).sort((one, next) => one.shard - next.shard || one.seq - next.seq);
    for (const ids of runsOf(fields, ({ shard }) => shard)) {
      // The IDs begin after the widest gap.
      const gaps = ids.map((id, index) => step(id, ids[(index + 1) % ids.length]));
      const begin = gaps.lastIndexOf(gaps.reduce((a, b) => Math.max(a, b))) + 1;
      for (const id of [...ids.slice(begin), ...ids.slice(0, begin)]) {
        const last = ends.get(id.shard);
        ends.set(id.shard, id);
        if (!last) continue;
        const by = step(last, id);
        if (by === 1) division.ones++;
        if (last.seq === seqs - 1 && id.seq < 3) division.wraps++;
        if (last.tick === id.tick) continue;
        division.landings++;
        division.tickChanges = division.tickChanges.map((changes, bit) => changes + (((last.tick ^ id.tick) >> bit) & 1));
        if (by === 1) division.next++;
        if (by > 0 && by * 5 <= seqs) division.near++;
      }
    }
  }
  return Object.assign(division, { shards: [...ends.keys()].sort((a, b) => a - b) });
}

/** Whether the rows show where the counter ends. */
function isShown({ isKnown, shardPlace, shards, landings, near, next, ones, wraps }) {
  const isAlone = isKnown && shards.length === 1;
  // Above a shard, the counter of a known layout ends where the time begins. Of another layout, it may be the number of a server.
  const endsAtTime = isAlone && shardPlace === 'lowest' && ones >= LEAST_STEPS;
  // The counter goes on from tick to tick by one, or other tables use some of the numbers of one shard.
  const isSteady = next * 4 >= landings * 3 && (isKnown || shardPlace === 'above_seq');
  const hasWrapped = landings >= 8 && near * 20 >= landings * 19 && wraps > 0;
  return endsAtTime || (hasWrapped && (isSteady || isAlone));
}

/** Whether what seems to be the counter is neither the number of a server nor a part of the counter. */
function isPlausible({ isKnown, seqBits, shards }) {
  // All shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
  const numbers = new Set(shards);
  const isCached = seqBits < LARGE_CACHE_BITS && shards.every((shard) => numbers.has(shard ^ 1));
  return !isCached && (isKnown || seqBits >= LEAST_SEQ_BITS);
}

/** The lowest bits of an ID as a number, which is faster than a `bigint`, with its tick. */
const numbersOf = (id, lowBits) => ({ low: Number(BigInt.asUintN(53, id)), high: Number(id >> 22n), tick: Number(id >> BigInt(lowBits)) });

// A field has up to 31 bits, so it is within the 53 of `low`, or begins within `high`.
function split({ low, high, tick }, { shardPlace, shardBits, seqBits }) {
  const field = (shift, width) => Math.floor(shift < 22 ? low / 2 ** shift : high / 2 ** (shift - 22)) % 2 ** width;
  if (shardPlace === 'above_seq') return { shard: field(seqBits, shardBits), tick, seq: field(0, seqBits) };
  const above = shardPlace === 'lowest_xored' ? field(shardBits, shardBits) : 0;
  return { shard: field(0, shardBits) ^ above, tick, seq: field(shardBits, seqBits) };
}
