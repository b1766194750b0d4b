/**
 * Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
 *
 * The module `find` of the Rust crate `pg_snowflake_ids` is the original, and explains how; the tests compare both.
 */

import { generators } from './generators.js';
import { UNIT_US, layout, presets, specOf } from './snowflake.js';

const UNITS = Object.entries(UNIT_US).map(([unit, us]) => [unit, Number(us)]);
const PLACES = ['above_seq', 'lowest', 'lowest_xored'];
const MIN_SAMPLES = 3;
const [TIME_SAMPLES, OF_SLICES] = [400, 300];
const [LEAST_LOW_BITS, MOST_LOW_BITS] = [8, 48];
const MAX_TIME_BITS = 48;
const MAX_OTHER_BITS = 31;
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
  // An ID that is there twice has its first time.
  const byId = new Map();
  for (const [id, unixUs] of samples) {
    if (id > 0n && !(byId.get(id) <= unixUs)) byId.set(id, unixUs);
  }
  const sorted = [...byId].sort(([a], [b]) => (a < b ? -1 : 1));
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
  if (2 * steps.filter(([from, to]) => to - from < halfATick).length > steps.length) {
    throw new RangeError('The IDs are consecutive numbers, as of a sequence.');
  }
  const { divisions, isCertain } = divide(ids, time);
  const [division, ...candidates] = divisions;
  const countsIntoShard = countsOn(ids.map((id) => split(halvesOf(id, time.lowBits), division)));
  const otherTicksUs = time.otherUnits.map((unit) => Number(UNIT_US[unit]));
  // If the lowest bits of the ticks hardly change, they may be low bits; and if the highest low bit does, it may be one of the time.
  const changing = division.tickChanges.findIndex((changes) => changes * 3 >= division.landings);
  const constant = changing < 0 ? division.tickChanges.length : changing;
  if (constant > 0) otherTicksUs.push(time.unitUs * 2 ** constant);
  if (steps.filter(([from, to]) => ((from ^ to) & halfATick) !== 0n).length * 8 >= steps.length) otherTicksUs.push(time.unitUs / 2);
  const fitsMostOfTheTime = fitsMost(sorted, ids, isNear);
  return {
    layout: layoutOf(time, division),
    spreadUs: time.spreadUs,
    toleranceUs,
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
  const slices = slicesOf(sorted, ids[0], ids.at(-1), 100n);
  const good = slices.filter((slice) => 2 * slice.filter(isNear).length > slice.length);
  return good.length * 10 >= slices.length * 9;
}

/** The samples, by the part of the time from one ID to another. */
function slicesOf(sorted, first, last, count) {
  const length = (last - first) / count + 1n;
  // Rounds down.
  const sliceOf = ([id]) => (id < first ? (id - first + 1n) / length - 1n : (id - first) / length);
  return chunks(sorted, (one, next) => sliceOf(one) === sliceOf(next));
}

/** The runs of items of which `areAlike` says that each is like the one before. */
function chunks(items, areAlike) {
  const found = [];
  for (const item of items) {
    const last = found.at(-1);
    if (last !== undefined && areAlike(last.at(-1), item)) last.push(item);
    else found.push([item]);
  }
  return found;
}

/** Most are spread over the time, the others over the rows. They are picked by multiples of the golden ratio. */
function fewOf(samples) {
  if (samples.length <= TIME_SAMPLES) return samples;
  const pick = (from, n) => from[Math.floor(((Math.imul(n, 0x9e3779b9) >>> 0) * from.length) / 2 ** 32)];
  const few = slicesOf(samples, samples[0][0], samples.at(-1)[0], BigInt(OF_SLICES)).map(pick);
  while (few.length < TIME_SAMPLES) few.push(pick(samples, few.length));
  return few.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}

/** The width of what is below the time, the unit and the epoch. */
function timeOf(samples) {
  const few = fewOf(samples);
  const spanUs = middle(few.map(([, unixUs]) => unixUs));
  if (spanUs === 0) throw new RangeError('The rows have the same time. IDs of different times are needed.');
  const readings = [];
  for (let lowBits = LEAST_LOW_BITS; lowBits <= MOST_LOW_BITS; lowBits++) {
    for (const [unit, unitUs] of UNITS) {
      readings.push({ lowBits, unit, unitUs, spread: middle(few.map((sample) => epochOf(sample, lowBits, unitUs))) });
    }
  }
  // The error of clocks can be a large part of a short span, but not of a long one: a wrong unit leaves at least 2.3 %.
  const mostUs = Math.min(Math.trunc(spanUs / 10), Math.max(CLOCK_ERROR_US, Math.trunc(spanUs / 100)));
  const rising = few.filter(([, unixUs], index) => index > 0 && few[index - 1][1] <= unixUs).length;
  const none = rising * 10 > few.length * 8 ? OTHER_LAYOUT : NO_TIME;
  const best = Math.min(...readings.map(({ spread }) => spread));
  if (!(best <= mostUs)) throw new RangeError(none);
  const possible = readings
    .filter(({ spread }) => spread <= best * 3 && spread <= mostUs)
    .map((reading) => ({ ...withEpoch(samples, reading), isUnitCertain: Math.max(reading.spread, reading.unitUs) <= Math.trunc(spanUs / 100) }))
    .filter(({ epochMs }) => epochMs >= 0 && epochMs <= Date.now());
  if (possible.length === 0) throw new RangeError(none);
  const time = least(possible, ({ known, unit, spreadUs }) => [known.length > 0 ? 0 : 1, unit === '1ms' ? 0 : 1, spreadUs]);
  return { ...time, otherUnits: possible.map(({ unit }) => unit).filter((unit) => unit !== time.unit) };
}

function withEpoch(samples, { lowBits, unit, unitUs }) {
  const { fromUs, toUs, measuredUs, spreadUs, isExact } = epochsOf(samples, lowBits, unitUs);
  const snapUs = isExact ? 0 : Math.min(spreadUs * 10, MOST_SNAP_US);
  const isIn = (us, byUs) => fromUs - byUs <= us && us <= toUs + byUs;
  const known = KNOWN.filter((of) => lowBitsOf(of) === lowBits && of.unit === unit && isIn(of.epochMs * 1_000, snapUs));
  const round = (us) => Math.floor((measuredUs + us / 2) / us) * us;
  const epochUs = EVEN_US.map(round).find((us, index) => isIn(us, index === 0 ? snapUs : 0)) ?? measuredUs;
  return { lowBits, unit, unitUs, epochMs: known[0]?.epochMs ?? Math.floor(epochUs / 1_000), spreadUs, known };
}

/** When the first tick began, by the rows. */
function epochsOf(samples, lowBits, tickUs) {
  const sorted = samples.map((sample) => epochOf(sample, lowBits, tickUs)).sort((a, b) => a - b);
  const half = Math.trunc(sorted.length / 2);
  // The shortest interval with half of the rows: late rows and wrong clocks are outside. The others are within a tick of both ends.
  const starts = sorted.slice(0, sorted.length - half).map((_, start) => start);
  const start = least(starts, (start) => [sorted[start + half] - sorted[start]]);
  const [one, other] = [sorted[start], sorted[start + half]];
  const [leastUs, mostUs] = [Math.min(other - tickUs, one), Math.max(one + tickUs, other)];
  const near = sorted.filter((epoch) => leastUs <= epoch && epoch <= mostUs);
  const [low, high] = [near[0], near.at(-1)];
  const hasMost = near.length * 4 >= sorted.length * 3;
  const isExact = hasMost && high - low <= tickUs;
  const end = high - tickUs;
  const beyond = hasMost ? 0 : high - low;
  return {
    fromUs: Math.min(low, end) - beyond,
    toUs: Math.max(low, end) + beyond,
    measuredUs: isExact ? low : low + Math.trunc((end - low) / 2),
    spreadUs: other - one,
    isExact,
  };
}

const lowBitsOf = ({ shardBits, seqBits }) => shardBits + seqBits;

function layoutOf({ known, lowBits, unit, epochMs }, { shardPlace, shardBits }) {
  const of = known.find((of) => of.shardPlace === shardPlace && of.shardBits === shardBits);
  const timeBits = Math.min(64 - lowBits, MAX_TIME_BITS);
  return of ?? layout(specOf({ timeBits, shardBits, seqBits: lowBits - shardBits, shardPlace, unit, epochMs }));
}

const epochOf = ([id, unixUs], lowBits, unitUs) => unixUs - Number(id >> BigInt(lowBits)) * unitUs;

/** How far the middle half of the values reaches; of fewer than eight, all. */
function middle(values) {
  const sorted = values.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const quarter = sorted.length < 8 ? 0 : Math.trunc(sorted.length / 4);
  return sorted[sorted.length - 1 - quarter] - sorted[quarter];
}

/** The first item whose rank, a list of numbers, is the least. */
function least(items, rank) {
  const before = (a, b) => {
    const index = a.findIndex((value, index) => value !== b[index]);
    return index >= 0 && a[index] < b[index];
  };
  return items.map((item) => [rank(item), item]).reduce((best, next) => (before(next[0], best[0]) ? next : best))[1];
}

/** The divisions of the low bits that the rows allow, the most likely first, and whether they prove it. */
function divide(ids, time) {
  const { lowBits } = time;
  const ticks = chunks(ids.map((id) => halvesOf(id, lowBits)), (one, next) => one.tick === next.tick);
  const isSame = (one, other) => one.shardPlace === other.shardPlace && one.shardBits === other.shardBits;
  const isKnown = (division) => time.known.some((of) => isSame(of, division));
  const likely = likelyOf(ids, time);
  const all = PLACES.flatMap((shardPlace) => Array.from({ length: lowBits + 1 }, (_, shardBits) => ({ shardPlace, shardBits })));
  let divisions = [];
  for (const { shardPlace, shardBits } of [...likely, ...all.filter(({ shardPlace, shardBits }) => shardBits > 0 || shardPlace === 'above_seq')]) {
    const division = { shardPlace, shardBits, seqBits: lowBits - shardBits };
    if (Math.max(shardBits, division.seqBits) > MAX_OTHER_BITS || divisions.some((other) => isSame(other, division))) continue;
    const mostShards = Math.max(Math.trunc(ids.length / (isKnown(division) ? 1 : ROWS_OF_A_LIKELY_SHARD)), 1);
    divisions.push(...divisionOf(ticks, { ...division, isKnown: isKnown(division) }, mostShards));
  }
  const mostShards = Math.max(Math.trunc(ids.length / ROWS_OF_A_SHARD), 1);
  // Only at the right width does the XOR turn many numbers into few shards.
  const isXored = ({ shardPlace, shardBits, shards }) => {
    const lowest = divisions.find((other) => isSame(other, { shardPlace: 'lowest', shardBits }));
    return shardPlace === 'lowest_xored' && (lowest ? lowest.shards.length : mostShards) >= 4 * shards.length;
  };
  // The lower part of a counter that has wrapped has wrapped, too.
  const shown = divisions.filter((division) => division.shards.length <= mostShards && (isShown(division) || isXored(division)));
  const widest = shown.reduce((best, next) => (best && best.seqBits > next.seqBits ? best : next), undefined);
  if (widest && (isXored(widest) || isPlausible(widest))) return { divisions: [widest], isCertain: true };
  divisions = divisions.filter((division) => division === widest || likely.some((of) => isSame(of, division)));
  // The last likely one is that without a shard, which always has one.
  const none = divisions.filter((division) => isSame(division, likely.at(-1)) && !division.isKnown);
  divisions = divisions.filter((division) => !none.includes(division));
  divisions.sort((one, other) => other.isKnown - one.isKnown || one.shards.length - other.shards.length);
  if (divisions.length + none.length === 0) throw new RangeError(OTHER_LAYOUT);
  return { divisions: [...divisions.slice(0, LIKELY - 1), ...none], isCertain: false };
}

/** The likely divisions if none is proved, the most likely first. */
function likelyOf(ids, { lowBits, known }) {
  const mask = (1n << BigInt(lowBits)) - 1n;
  const first = ids[0] & mask;
  const set = ids.reduce((bits, id) => bits | (id & mask), 0n);
  const changing = ids.reduce((bits, id) => bits | ((id & mask) ^ first), 0n);
  const zeros = (bits) => (bits === 0n ? lowBits : bits.toString(2).match(/0*$/)[0].length);
  const ones = (bits) => bits.toString(2).match(/1*$/)[0].length;
  const constant = zeros(changing);
  // The counter has the lowest bits that change, and perhaps those above that are 0.
  const narrowest = constant + ones(changing >> BigInt(constant));
  const widest = Math.min(narrowest + zeros(set >> BigInt(narrowest)), lowBits);
  const usual = USUAL.filter(([shardBits, seqBits]) => shardBits + seqBits === lowBits);
  return [
    ...known,
    ...usual.flatMap(([shardBits]) => ['above_seq', 'lowest'].map((shardPlace) => ({ shardPlace, shardBits }))),
    { shardPlace: 'above_seq', shardBits: lowBits - widest },
    ...(constant > 0 && changing !== 0n ? [{ shardPlace: 'lowest', shardBits: constant }] : []),
    { shardPlace: 'above_seq', shardBits: 0 },
  ];
}

/** A division with what the counters of all shards have done from tick to tick, in a list; an empty one if it has too many shards. */
function divisionOf(ticks, division, mostShards) {
  const seqs = 2 ** division.seqBits;
  const step = (from, to) => (to.seq - from.seq + seqs) % seqs;
  const seen = { landings: 0, tickChanges: [0, 0, 0, 0, 0, 0], near: 0, next: 0, ones: 0, wraps: 0 };
  const ends = new Map();
  for (const tick of ticks) {
    const rows = tick.map((id) => split(id, division)).sort((one, next) => one.shard - next.shard || one.seq - next.seq);
    for (const ids of chunks(rows, (one, next) => one.shard === next.shard)) {
      // The IDs begin after the widest gap.
      const gaps = ids.map((id, index) => step(id, ids[(index + 1) % ids.length]));
      const begin = (gaps.lastIndexOf(gaps.reduce((a, b) => Math.max(a, b))) + 1) % ids.length;
      let last = ends.get(ids[0].shard);
      if (last) {
        const landing = step(last, ids[begin]);
        seen.landings++;
        if (landing > 0 && landing * 5 <= seqs) seen.near++;
        if (landing === 1) seen.next++;
        const changed = (last.tick % 64) ^ (ids[begin].tick % 64);
        seen.tickChanges = seen.tickChanges.map((changes, bit) => changes + ((changed >> bit) & 1));
      }
      for (const id of [...ids.slice(begin), ...ids.slice(0, begin)]) {
        if (last && step(last, id) === 1) seen.ones++;
        if (last?.seq === seqs - 1 && id.seq < 3) seen.wraps++;
        last = id;
      }
      ends.set(last.shard, last);
      if (ends.size > mostShards) return [];
    }
  }
  return [{ ...division, ...seen, shards: [...ends.keys()].sort((a, b) => a - b) }];
}

/** Whether the rows show where the counter ends. */
function isShown({ isKnown, shardPlace, shards, landings, near, next, ones, wraps }) {
  // Above a shard, the counter of a known layout ends where the time begins. Of another layout, it may be the number of a server.
  if (isKnown && shardPlace === 'lowest' && shards.length === 1 && ones >= LEAST_STEPS) return true;
  // The counter goes on from tick to tick by one, or other tables use some of the numbers of one shard.
  const isSteady = next * 4 >= landings * 3;
  const isCounter = isKnown ? isSteady || shards.length === 1 : isSteady && shardPlace === 'above_seq';
  return isCounter && landings >= 8 && near * 20 >= landings * 19 && wraps > 0;
}

/** Whether what seems to be the counter is neither the number of a server nor a part of the counter. */
function isPlausible({ isKnown, seqBits, shards }) {
  // All shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
  const numbers = new Set(shards);
  if (seqBits < LARGE_CACHE_BITS && shards.every((shard) => numbers.has(shard ^ 1))) return false;
  return isKnown || seqBits >= LEAST_SEQ_BITS;
}

/** An ID as two numbers of 32 bits, which are faster than a `bigint`, with its tick. */
const halvesOf = (id, lowBits) => ({ high: Number(id >> 32n), low: Number(id & 0xffff_ffffn), tick: Number(id >> BigInt(lowBits)) });

function split({ high, low, tick }, { shardPlace, shardBits, seqBits }) {
  const field = (shift, width) => {
    const shifted = shift >= 32 ? high >>> (shift - 32) : shift === 0 ? low : (high << (32 - shift)) | (low >>> shift);
    return shifted & (2 ** width - 1);
  };
  if (shardPlace === 'above_seq') return { shard: field(seqBits, shardBits), tick, seq: field(0, seqBits) };
  const above = shardPlace === 'lowest_xored' ? field(shardBits, shardBits) : 0;
  return { shard: field(0, shardBits) ^ above, tick, seq: field(shardBits, seqBits) };
}
