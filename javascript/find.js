/**
 * Finds the layout of IDs whose times are known, such as those that a copy of Instagram's function has generated.
 *
 * The module `find` of the Rust crate `pg_snowflake_ids` is the original, and explains how; the tests compare both.
 */

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
const EVEN_US = [60_000_000, 1_000_000, 1_000];
const DAY_US = 86_400_000_000;
const LIKELY = 3;
const [ROWS_OF_A_SHARD, ROWS_OF_A_SHARD_OF_A_PRESET] = [16, 2];
const LEAST_SEQ_BITS = 7;
const LEAST_STEPS = 32;
const LARGE_CACHE_BITS = 8;
const OTHER_LAYOUT = 'The IDs rise with the times of their rows, but no layout has ticks of this length, or this epoch.';
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
  if (isSerial(ids, time)) throw new RangeError('The IDs are consecutive numbers, as of a sequence.');
  const { division, candidates, isCertain } = divide(ids, time);
  const otherTicksUs = otherTicks(sorted, ids, time, division);
  const fitsMostOfTheTime = fitsMost(sorted, ids, isNear);
  return {
    layout: layoutOf(time, division),
    spreadUs: time.spreadUs,
    toleranceUs,
    otherTicksUs,
    isUnitCertain: time.isUnitCertain,
    isDivisionCertain: isCertain,
    candidates: candidates.map((other) => ({ layout: layoutOf(time, other), shards: other.shards })),
    countsIntoShard: division.countsOn,
    shards: division.shards,
    fitsMostOfTheTime,
    isSure: isCertain && !division.countsOn && time.isUnitCertain && otherTicksUs.length === 0 && fitsMostOfTheTime && time.spreadUs <= MOST_SPREAD_US,
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

/** The other lengths of a tick that the rows allow: other units, and those that no layout has. */
function otherTicks(sorted, ids, time, division) {
  const others = time.otherUnits.map((unit) => Number(UNIT_US[unit]));
  // The low bits begin with the shard, which changes seldom, or with the counter.
  const least = division.place === 'above_seq' ? 8 : 3;
  const changing = division.tickChanges.findIndex((changes) => changes >= 3 && changes * least >= division.landings);
  const constant = changing < 0 ? division.tickChanges.length : changing;
  if (constant > 0) others.push(time.unitUs * 2 ** constant);
  const shift = BigInt(time.lowBits);
  let [ticks, flips] = [0, 0];
  for (let index = 1; index < ids.length; index++) {
    const changed = ids[index] ^ ids[index - 1];
    if (changed >> shift === 0n) continue;
    ticks++;
    flips += Number((changed >> (shift - 1n)) & 1n);
  }
  const halfUs = time.unitUs / 2;
  const isHalf = time.isExact && epochsOf(sorted, time.lowBits - 1, halfUs).isExact;
  // Times of whole ticks say nothing about a half.
  const areBetween = () => sorted.some(([, unixUs]) => unixUs % time.unitUs !== 0);
  if ((flips * 8 >= ticks && !division.isSteady && (!time.isExact || isHalf)) || (isHalf && areBetween())) others.push(halfUs);
  return others;
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
  const idSpan = middle(few.map(([id]) => id));
  const readings = [];
  for (let lowBits = LEAST_LOW_BITS; lowBits <= MOST_LOW_BITS; lowBits++) {
    for (const [unit, unitUs] of UNITS) {
      const us = Number(idSpan >> BigInt(lowBits)) * unitUs;
      if (Math.trunc(us / 2) > spanUs || us < Math.trunc(spanUs / 2)) continue;
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
    .filter(({ spread, unitUs }) => spread <= Math.max(best * 3, unitUs) && spread <= mostUs)
    .map((reading) => ({ ...withEpoch(samples, reading), isUnitCertain: reading.spread <= Math.trunc(spanUs / 200) }))
    .filter(({ epochMs }) => epochMs >= 0 && epochMs <= Date.now());
  if (possible.length === 0) throw new RangeError(none);
  const time = least(possible, ({ preset, unit, spreadUs }) => [preset ? 0 : 1, unit === '1ms' ? 0 : 1, spreadUs]);
  return { ...time, otherUnits: possible.map(({ unit }) => unit).filter((unit) => unit !== time.unit) };
}

function withEpoch(samples, { lowBits, unit, unitUs }) {
  const { fromUs, toUs, measuredUs, spreadUs, isExact } = epochsOf(samples, lowBits, unitUs);
  const snapUs = isExact ? 0 : Math.min(spreadUs * 10, MOST_SNAP_US);
  const isIn = (us, byUs) => fromUs - byUs <= us && us <= toUs + byUs;
  const preset = Object.values(presets).find((of) => lowBitsOf(of) === lowBits && of.unit === unit && isIn(of.epochMs * 1_000, snapUs));
  const round = (us) => Math.floor((measuredUs + us / 2) / us) * us;
  const isMidnight = Math.abs(round(DAY_US) - measuredUs) <= snapUs;
  const epochUs = isMidnight ? round(DAY_US) : (EVEN_US.map(round).find((us) => isIn(us, 0)) ?? measuredUs);
  return { lowBits, unit, unitUs, epochMs: preset?.epochMs ?? Math.floor(epochUs / 1_000), spreadUs, isExact, preset };
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

function layoutOf({ preset, lowBits, unit, epochMs }, { place, shardBits, seqBits }) {
  if (preset && preset.shardPlace === place && preset.shardBits === shardBits && preset.seqBits === seqBits) return preset;
  const timeBits = Math.min(64 - lowBits, MAX_TIME_BITS);
  return layout(specOf({ timeBits, shardBits, seqBits, shardPlace: place, unit, epochMs }));
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

/** The place and the widths of shard and seq that the rows show, or the likely ones. */
function divide(ids, time) {
  const halves = ids.map((id) => halvesOf(id, time.lowBits));
  const divisions = [];
  for (const place of PLACES) {
    for (let shardBits = place === 'above_seq' ? 0 : 1; shardBits <= time.lowBits; shardBits++) {
      const division = { place, shardBits, seqBits: time.lowBits - shardBits };
      if (shardBits > MAX_OTHER_BITS || division.seqBits > MAX_OTHER_BITS) continue;
      const rows = isOf(time.preset, division) ? ROWS_OF_A_SHARD_OF_A_PRESET : ROWS_OF_A_SHARD;
      const seen = seenOf(halves, division, Math.max(Math.trunc(ids.length / rows), 1), isOf(time.preset, division));
      if (seen) divisions.push({ ...division, ...seen });
    }
  }
  // Only at the right width does the XOR turn many numbers into few shards.
  const isXored = ({ place, shardBits, shards }) => {
    const lowest = divisions.find((other) => other.place === 'lowest' && other.shardBits === shardBits);
    return place === 'lowest_xored' && (lowest ? lowest.shards.length : Math.trunc(ids.length / ROWS_OF_A_SHARD)) >= 4 * shards.length;
  };
  const proved = divisions.filter((division) => division.isShown || isXored(division));
  // The lower part of a counter that has wrapped has wrapped, too. If its steps are not all of one, several shards may seem to be a
  // counter, or a counter several shards.
  const rank = (division) => (division.isStrict || isXored(division) ? 100 : 0) + division.seqBits;
  const highest = Math.max(...proved.map(rank));
  const widest = proved.filter((division) => rank(division) === highest);
  const hasFewer = (other) => other.goesOn && other.shards.length < widest[0].shards.length;
  const isCertain = widest.length === 1 && (highest >= 100 || (proved.length === 1 && widest[0].place === 'above_seq' && !divisions.some(hasFewer)));
  const likely = isCertain ? widest : likelyOf(ids, time).map((of) => divisions.find((division) => isSame(division, of)));
  const [division, ...candidates] = [...new Set(likely)].filter((division) => division !== undefined).slice(0, LIKELY);
  if (!division) throw new RangeError(OTHER_LAYOUT);
  return { division, candidates, isCertain };
}

const isSame = (one, other) => one.place === other.place && one.shardBits === other.shardBits;

const isOf = (preset, division) => preset !== undefined && isSame(division, { ...preset, place: preset.shardPlace });

/** The likely divisions if none is proved, the most likely first. */
function likelyOf(ids, { lowBits, unit, preset }) {
  const mask = (1n << BigInt(lowBits)) - 1n;
  const first = ids[0] & mask;
  const set = ids.reduce((bits, id) => bits | (id & mask), 0n);
  const changing = ids.reduce((bits, id) => bits | ((id & mask) ^ first), 0n);
  const zeros = (bits) => (bits === 0n ? lowBits : bits.toString(2).match(/0*$/)[0].length);
  const ones = (bits) => bits.toString(2).match(/1*$/)[0].length;
  const aboveSeq = (seqBits) => ({ place: 'above_seq', shardBits: lowBits - seqBits });
  const usual = Object.values(presets).filter(
    (of) => of.shardBits > 0 && of.shardPlace !== 'lowest_xored' && lowBitsOf(of) === lowBits && of.unit === unit,
  );
  const likely = [...(preset ? [preset] : []), ...usual].map((of) => ({ ...of, place: of.shardPlace }));
  const constant = zeros(changing);
  // The counter has the lowest bits that change, and perhaps those above that are 0.
  const narrowest = constant + ones(changing >> BigInt(constant));
  likely.push(aboveSeq(Math.min(narrowest + zeros(set >> BigInt(narrowest)), lowBits)));
  if (constant > 0 && changing !== 0n) likely.push({ place: 'lowest', shardBits: constant });
  return [...likely, aboveSeq(narrowest), aboveSeq(lowBits)];
}

/** What the rows show of a division; undefined if it has too many shards. */
function seenOf(ids, division, mostShards, isPreset) {
  const { place, shardBits, seqBits } = division;
  const byShard = new Map();
  let [changes, beginnings, last] = [0, 0];
  for (const id of ids) {
    const row = split(id, division);
    const { shard, seq } = row;
    if (last?.shard !== shard) {
      if (!byShard.has(shard)) byShard.set(shard, []);
      if (last) {
        changes++;
        if (seq < last.seq) beginnings++;
      }
      if (byShard.size > mostShards) return undefined;
    }
    byShard.get(shard).push(row);
    last = row;
  }
  const seen = new Seen(2 ** seqBits);
  for (const rows of byShard.values()) seen.add(rows);
  const countsOn = changes > 0 && beginnings * 10 >= changes * 9;
  // Most shards have both values of the bit beside the counter, as of a counter of which each session takes some values (`CACHE`).
  const beside = place === 'above_seq' ? 1 : 2 ** (shardBits - 1);
  const shards = [...byShard.keys()].sort((a, b) => a - b);
  const pairs = shards.filter((shard) => byShard.has((shard ^ beside) >>> 0)).length;
  const mayBeCached = pairs * 4 >= shards.length * 3 && (pairs > 2 || seqBits < LARGE_CACHE_BITS);
  // Above a shard, the counter of a preset ends where the time begins. Of another layout, it may be the number of a server, or rise by 2.
  const isBelowTime = isPreset && place === 'lowest' && shards.length === 1 && seen.counts();
  // The counter's lower bits may seem to be a shard below it: they do not change if it rises by 2.
  const canWrap = (isPreset || (seqBits >= LEAST_SEQ_BITS && place === 'above_seq')) && !countsOn && !mayBeCached;
  const isShown = isBelowTime || (canWrap && seen.hasWrapped());
  const { landings, tickChanges, ones, steps, ticks, nextLandings } = seen;
  const isSteady = landings * 2 >= ticks && most(nextLandings, landings);
  return { shards, countsOn, isStrict: most(ones, landings + steps), isSteady, landings, tickChanges, goesOn: seen.goesOn(), isShown };
}

const most = (count, of) => count * 4 >= of * 3;

const nearlyAll = (count, of) => count * 20 >= of * 19;

/** What the counters of all shards have done. */
class Seen {
  constructor(seqs) {
    this.seqs = seqs;
    this.tickChanges = [0, 0, 0, 0, 0, 0];
    const ofTicks = ['landings', 'nearLandings', 'nextLandings', 'elsewhere', 'ticks', 'high', 'several', 'broken', 'closed'];
    for (const count of [...ofTicks, 'steps', 'nearSteps', 'ones', 'odd', 'crossings', 'inTurn', 'short', 'places']) this[count] = 0;
  }

  /** Adds the IDs of a shard. */
  add(rows) {
    const { seqs } = this;
    const step = (from, to) => (to.seq - from.seq + seqs) % seqs;
    let [before, waited, landings] = [undefined, 0, 0];
    for (const tick of chunks(rows, (one, next) => one.tick === next.tick)) {
      const [lowest, highest] = [tick[0], tick.at(-1)];
      // The IDs begin after the widest gap.
      let [begin, widest, gaps] = [0, step(highest, lowest), 0];
      for (let index = 1; index < tick.length; index++) {
        const gap = step(tick[index - 1], tick[index]);
        if (gap !== 1) gaps++;
        if (gap > widest) [begin, widest] = [index, gap];
      }
      const endsHigh = highest.seq === seqs - 1;
      const isClosed = gaps === 1 && endsHigh && lowest.seq === 0 && tick.length > 3;
      const inOrder = [...tick.slice(begin), ...tick.slice(0, begin)];
      this.ticks++;
      if (inOrder[0].seq * 2 >= seqs) this.high++;
      if (tick.length > 1) this.several++;
      if (gaps > (isClosed ? 1 : 0)) this.broken++;
      if (isClosed) this.closed++;
      this.places |= (lowest.seq === 0 ? 16 : 0) | (endsHigh ? 32 : 0);
      let isSoon = true;
      if (before) {
        const { ids, first, last } = before;
        const wait = tick[0].tick - ids[0].tick;
        isSoon = wait * landings <= 4 * waited + 2 * landings;
        [waited, landings] = [waited + wait, landings + 1];
        this.landings++;
        const landing = step(last, inOrder[0]);
        if (this.addStep(landing, inOrder[0], isSoon)) this.nearLandings++;
        if (landing === 1) this.nextLandings++;
        if (inOrder[0].seq !== first) this.elsewhere++;
        const changed = (ids[0].tick % 64) ^ (tick[0].tick % 64);
        for (let bit = 0; bit < 6; bit++) this.tickChanges[bit] += (changed >> bit) & 1;
      }
      inOrder.forEach((row, index) => {
        this.places |= 1 << Math.trunc((row.seq * 4) / seqs);
        if (index === 0) return;
        this.steps++;
        if (this.addStep(step(inOrder[index - 1], row), row, isSoon)) this.nearSteps++;
      });
      before = { ids: tick, first: inOrder[0].seq, last: inOrder.at(-1) };
    }
  }

  /** Adds a step, and returns whether it is a small one in either direction. */
  addStep(step, to, isSoon) {
    const crosses = to.seq < step && step * 5 <= this.seqs;
    if (step === 1) this.ones++;
    if (step % 2 === 1) this.odd++;
    if (crosses) this.crossings++;
    if (crosses && isSoon) this.inTurn++;
    // One of the rows after the highest value may be missing.
    if (crosses && isSoon && (step === 1 || (to.seq + 1 === step && step <= 3))) this.short++;
    return step * 5 <= this.seqs || (this.seqs - step) * 5 <= this.seqs;
  }

  /** Whether the counter rises by one, from tick to tick or from the same number in each tick. */
  counts() {
    const goesOn = most(this.nextLandings, this.landings) && this.nextLandings >= LEAST_STEPS;
    const restarts = this.elsewhere * 10 <= this.landings && this.several - this.broken >= LEAST_STEPS && this.broken * 10 <= this.several;
    return this.odd > 0 && (goesOn || restarts);
  }

  /** Whether the counter goes on from tick to tick. */
  goesOn() {
    return (
      nearlyAll(this.nearLandings, this.landings) &&
      nearlyAll(this.nearSteps, this.steps) &&
      this.landings * 2 >= this.ticks &&
      most(this.elsewhere, this.landings)
    );
  }

  /** Whether the counter has gone from its highest value to its lowest, and no bit above has changed. */
  hasWrapped() {
    const isWhole = this.places === 63 || (most(this.nextLandings, this.landings) && this.short > 0);
    // It begins anywhere, and goes on within a tick.
    const isClosed = nearlyAll(this.several - this.broken, this.several) && this.closed > 0 && this.high * 8 >= this.ticks;
    return this.odd > 0 && ((this.goesOn() && isWhole && this.inTurn * 2 > this.crossings) || isClosed);
  }
}

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
