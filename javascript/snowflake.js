/**
 * Decode, encode and describe the Snowflake IDs of the PostgreSQL extension pg_snowflake, in a browser, Node, Deno or Bun.
 *
 * An ID has more bits than a JavaScript number holds exactly, so an ID is a `bigint` here. Functions accept its digits as a
 * string, as PostgreSQL's drivers and the SQL type `snowflake` return them.
 *
 * The Rust crate `pg_snowflake_ids` is the original of this arithmetic; the tests compare both.
 */

/** Length of each unit in microseconds. For find.js, as the limits and `specOf` are. */
export const UNIT_US = { '10us': 10n, '100us': 100n, '1ms': 1_000n, '10ms': 10_000n, '100ms': 100_000n, '1s': 1_000_000n };
export const MAX_TIME_BITS = 48;
export const MAX_OTHER_BITS = 31;
const EPOCH_MS_LIMIT = 2 ** 43;
const MAX_LENGTH = 1000;
const INT64_MAX = 2n ** 63n - 1n;

/** How an ID's bits are divided. Compare layouts by `String(layout)`. */
class Layout {
  /** @param {object} parts the fields of this class */
  constructor({ timeBits, shardBits, seqBits, shardPlace, unit, epochMs }) {
    this.timeBits = timeBits;
    this.shardBits = shardBits;
    this.seqBits = seqBits;
    this.shardPlace = shardPlace;
    this.unit = unit;
    this.epochMs = epochMs;
    Object.freeze(this);
  }

  /** The number of bits that an ID uses. */
  get bits() {
    return this.timeBits + this.shardBits + this.seqBits;
  }

  /** All parts, as PostgreSQL's type `snowflake_layout` accepts them. */
  get spec() {
    return specOf(this);
  }

  /** The preset's name, or the specification. */
  toString() {
    const { spec } = this;
    return Object.keys(presets).find((name) => presets[name].spec === spec) ?? spec;
  }
}

/** The specification of a layout with these parts. */
export function specOf({ timeBits, shardBits, seqBits, shardPlace, unit, epochMs }) {
  const below = {
    above_seq: `shard:${shardBits} seq:${seqBits}`,
    lowest: `seq:${seqBits} shard:${shardBits}`,
    lowest_xored: `seq:${seqBits} shard_xor_above:${shardBits}`,
  }[shardPlace];
  return `time:${timeBits} ${below} epoch:${epochText(epochMs)} unit:${unit}`;
}

const preset = (timeBits, shardBits, seqBits, epochMs, shardPlace = 'above_seq', unit = '1ms') =>
  new Layout({ timeBits, shardBits, seqBits, shardPlace, unit, epochMs });

/** The named layouts, in the order of the view `snowflake_layouts`. */
export const presets = Object.freeze({
  postgres: preset(41, 12, 10, 1_262_304_000_000, 'lowest_xored'),
  instagram: preset(41, 13, 10, 1_314_220_021_721),
  twitter: preset(41, 10, 12, 1_288_834_974_657),
  discord: preset(42, 10, 12, 1_420_070_400_000),
  mastodon: preset(48, 0, 16, 0),
  sonyflake: preset(39, 16, 8, 1_409_529_600_000, 'lowest', '10ms'),
  pgedge: preset(41, 10, 12, 1_672_531_200_000),
  pgdog: preset(41, 10, 12, 1_764_184_395_000),
  js53: preset(41, 7, 5, 1_577_836_800_000),
});

/** The layout of a preset's name or of a specification. Throws a SyntaxError with what is allowed. */
export function layout(text, now = Date.now()) {
  if (text instanceof Layout) return text;
  if (typeof text !== 'string') throw new TypeError('a layout is a string, such as "postgres"');
  if (new TextEncoder().encode(text).length > MAX_LENGTH) {
    throw invalid(`layout "${excerpt(text)}" is too long`, `A layout has at most ${MAX_LENGTH} characters. ${presetsHint()}`);
  }
  const trimmed = text.trim();
  if (Object.hasOwn(presets, trimmed)) return presets[trimmed];
  if (!trimmed.includes(':')) throw invalid(`unrecognized layout "${excerpt(trimmed)}"`, presetsHint());
  return layoutOfParts(partsOf(trimmed), now);
}

/** The fields of an ID. Throws a RangeError if it has bits above the layout's. */
export function decode(id, of = 'postgres') {
  const { shardBits, seqBits, timeBits, bits } = (of = layout(of));
  const unsigned = BigInt.asUintN(64, toId(id));
  if (unsigned >> BigInt(bits) !== 0n) throw new RangeError(`${id} is not an ID of layout "${of}": it has more than ${bits} bits`);
  const tick = (unsigned >> BigInt(shardBits + seqBits)) & mask(timeBits);
  const shards = unsigned ^ maskOfShard(of, unsigned);
  const unixUs = instantOf(of, tick);
  return {
    createdAt: new Date(Number(floorDivide(unixUs, 1_000n))),
    shardId: Number((shards >> shardShift(of)) & mask(shardBits)),
    seq: Number((unsigned >> seqShift(of)) & mask(seqBits)),
    tick,
    unixUs,
  };
}

/** The ID of a time, a shard and a seq. Throws a RangeError if the layout has no room for one of the three. */
export function encode({ createdAt, shardId, seq = 0 }, of = 'postgres') {
  of = layout(of);
  const tick = tickAt(of, toUnixUs(createdAt));
  if (tick < 0n || tick > maxTick(of)) {
    throw new RangeError(`the time is not in layout "${of}", which begins on ${epochText(of.epochMs)} and has ${maxTick(of) + 1n} ticks of ${of.unit}`);
  }
  checkField('shardId', shardId, of.shardBits, of);
  checkField('seq', seq, of.seqBits, of);
  const counter = (tick << BigInt(of.shardBits + of.seqBits)) | (BigInt(seq) << seqShift(of));
  return BigInt.asIntN(64, counter ^ maskOfShard(of, counter) ^ (BigInt(shardId) << shardShift(of)));
}

/**
 * The smallest ID at or after a time: 0 before the layout's epoch. After its end: a number above every ID, or the highest
 * `bigint` of PostgreSQL if IDs have 63 bits or more.
 */
export function minId(time, of = 'postgres') {
  of = layout(of);
  const tick = tickAt(of, toUnixUs(time) - 1n) + 1n;
  if (tick < 0n) return 0n;
  if (tick <= maxTick(of)) return tick << BigInt(of.shardBits + of.seqBits);
  return of.bits < 63 ? 1n << BigInt(of.bits) : INT64_MAX;
}

/** What `snowflake_layout_info` returns of a layout, and whether a JavaScript number holds its IDs exactly. */
export function info(of = 'postgres') {
  of = layout(of);
  const endsUs = smaller(instantOf(of, maxTick(of) + 1n), INT64_MAX);
  return {
    spec: of.spec,
    shards: 2 ** of.shardBits,
    idsPerSecond: Number(((1n << BigInt(of.seqBits)) * 1_000_000n) / UNIT_US[of.unit]),
    endsAt: new Date(Number(floorDivide(endsUs, 1_000n))),
    endsUs,
    distinctFolds: distinctFolds(of, 600_000_000n),
    shardFormula: shardFormula(of),
    isExactInJavaScript: of.bits <= 53,
  };
}

/** The shard of an ID as an expression of the variable `id`, in SQL or in JavaScript with a `bigint`. */
export function shardFormula(of = 'postgres', language = 'sql') {
  const { shardBits, seqBits, shardPlace } = layout(of);
  const [xor, n] = language === 'sql' ? ['#', ''] : ['^', 'n'];
  const all = `${mask(shardBits)}${n}`;
  if (shardBits === 0) return `0${n}`;
  if (shardPlace === 'lowest_xored') return `(id ${xor} (id >> ${shardBits}${n})) & ${all}`;
  return shardPlace === 'above_seq' && seqBits > 0 ? `(id >> ${seqBits}${n}) & ${all}` : `id & ${all}`;
}

const DAY_US = 86_400_000_000n;
const FIRST_IDS_US = 1_262_304_000_000_000n; // 2010-01-01, before which there were no Snowflake IDs

/**
 * The ID as every preset reads it, the most likely first. `doubt` is why it is probably not an ID of the preset: "future",
 * "first days" or "not an ID".
 */
export function readings(id, now = Date.now()) {
  id = toId(id);
  const nowUs = toUnixUs(now);
  const all = Object.entries(presets).map(([name, of]) => {
    if (id < 0n || id >> BigInt(of.bits) !== 0n) return { name, doubt: 'not an ID', order: [3, 0n] };
    const fields = decode(id, of);
    const distance = fields.unixUs > nowUs ? fields.unixUs - nowUs : nowUs - fields.unixUs;
    const begin = larger(instantOf(of, 0n), FIRST_IDS_US);
    if (fields.unixUs > nowUs + DAY_US) return { name, ...fields, doubt: 'future', order: [1, distance] };
    if (fields.unixUs < begin + 90n * DAY_US) return { name, ...fields, doubt: 'first days', order: [2, 0n] };
    return { name, ...fields, doubt: null, order: [0, distance] };
  });
  all.sort((a, b) => a.order[0] - b.order[0] || Number(a.order[1] - b.order[1]));
  return all.map(({ order, ...reading }) => reading);
}

// Arguments

/** An ID as a `bigint`: from a `bigint`, its decimal digits, or a number that is exact. */
function toId(id) {
  if (typeof id === 'number') {
    if (!Number.isSafeInteger(id)) throw new TypeError(`the number ${id} may be rounded: pass an ID above 2^53 as a string or a bigint`);
    return BigInt(id);
  }
  if (typeof id === 'string') {
    if (!/^\s*-?\d+\s*$/.test(id)) throw new TypeError(`"${excerpt(id)}" is not an ID: an ID is a whole number in decimal digits`);
    if (id.trim().length > 20) throw new RangeError(`"${excerpt(id)}" is not an ID: an ID has at most 19 digits`);
    id = BigInt(id);
  }
  if (typeof id !== 'bigint') throw new TypeError('an ID is a bigint, or a string of digits');
  if (BigInt.asIntN(64, id) !== id) throw new RangeError(`${id} is not an ID: the highest bigint of PostgreSQL is ${INT64_MAX}`);
  return id;
}

/** Microseconds since 1970: from a Date, milliseconds as a number, or microseconds as a `bigint`. */
function toUnixUs(time) {
  if (typeof time === 'bigint') return time;
  const ms = time instanceof Date ? time.getTime() : time;
  if (typeof ms !== 'number' || !Number.isInteger(ms)) throw new TypeError('a time is a valid Date, whole milliseconds as a number, or microseconds as a bigint');
  return BigInt(ms) * 1_000n;
}

function checkField(name, value, bits, of) {
  if (!Number.isInteger(value) || value < 0 || value >= 2 ** bits) {
    throw new RangeError(`${name} ${value} is not in layout "${of}": it is from 0 to ${2 ** bits - 1}`);
  }
}

// Arithmetic

const mask = (bits) => (1n << BigInt(bits)) - 1n;
const smaller = (a, b) => (a < b ? a : b);
const larger = (a, b) => (a > b ? a : b);
const shardShift = (of) => BigInt(of.shardPlace === 'above_seq' ? of.seqBits : 0);
const seqShift = (of) => BigInt(of.shardPlace === 'above_seq' ? 0 : of.shardBits);
/** What the shard in the lowest bits is XORed with: the bits above it, or 0 in other places. */
const maskOfShard = (of, id) => (of.shardPlace === 'lowest_xored' ? (id >> BigInt(of.shardBits)) & mask(of.shardBits) : 0n);
const epochUs = (of) => BigInt(of.epochMs) * 1_000n;
const instantOf = (of, tick) => tick * UNIT_US[of.unit] + epochUs(of);
const tickAt = (of, unixUs) => floorDivide(unixUs - epochUs(of), UNIT_US[of.unit]);
/** The highest tick whose IDs are not negative. */
const maxTick = (of) => mask(Math.min(of.timeBits, 63 - of.shardBits - of.seqBits));

function floorDivide(dividend, divisor) {
  const quotient = dividend / divisor;
  return dividend < 0n && quotient * divisor !== dividend ? quotient - 1n : quotient;
}

/**
 * The number of distinct values onto which PostgreSQL folds one shard's IDs of the layout's first `durationUs`, before it hashes
 * them: the high 32 bits XOR the low 32. An XOR of what each bit contributes, so they are counted by linear algebra over bits.
 */
function distinctFolds(of, durationUs) {
  const lowBits = BigInt(of.shardBits + of.seqBits);
  const foldOf = (counter) => {
    const id = BigInt.asUintN(64, counter ^ maskOfShard(of, counter));
    return Number((id >> 32n) ^ (id & 0xffff_ffffn));
  };
  const ticks = smaller(durationUs / UNIT_US[of.unit], maxTick(of) + 1n);
  const span = new Span();
  for (let bit = 0; bit < of.seqBits; bit++) span.add(foldOf(1n << (seqShift(of) + BigInt(bit))));
  // The ticks below `ticks` are a block of 2^bit ticks for each bit that is set; the folds of a block are either all among those
  // of a larger one, or none of them.
  const blocks = [];
  for (let bit = 0n; bit <= BigInt(of.timeBits); bit++) {
    if ((ticks >> bit) & 1n) blocks.push([foldOf((ticks >> (bit + 1n) << (bit + 1n)) << lowBits), span.copy()]);
    span.add(foldOf((1n << bit) << lowBits));
  }
  const isNew = (index, constant) => !blocks.slice(index + 1).some(([larger, span]) => span.contains(constant ^ larger));
  return blocks.filter(([constant], index) => isNew(index, constant)).reduce((sum, [, span]) => sum + span.size(), 0);
}

/** All XORs of some 32-bit numbers. */
class Span {
  constructor(basis = new Uint32Array(32)) {
    this.basis = basis; // each at the index of its highest bit
  }

  copy() {
    return new Span(this.basis.slice());
  }

  add(number) {
    const rest = this.reduce(number);
    if (rest !== 0) this.basis[31 - Math.clz32(rest)] = rest;
  }

  contains(number) {
    return this.reduce(number) === 0;
  }

  size() {
    return 2 ** this.basis.filter((number) => number !== 0).length;
  }

  reduce(number) {
    for (let bit = 31; bit >= 0; bit--) if ((number >>> bit) & 1) number ^= this.basis[bit];
    return number >>> 0;
  }
}

// The text of a layout

const invalid = (message, allowed) => new SyntaxError(`${message}. ${allowed}`);
const presetsHint = () =>
  `A layout is one of ${Object.keys(presets).join(', ')}, or a spec such as "time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms".`;

function excerpt(text) {
  const characters = [...text];
  return characters.length > 100 ? `${characters.slice(0, 100).join('')}...` : text;
}

function partsOf(text) {
  const parts = { order: [] };
  for (const part of text.split(/\s+/)) {
    const colon = part.indexOf(':');
    if (colon < 0) {
      throw invalid(`layout part "${excerpt(part)}" has no value`, 'Each part of a spec is a name, a colon and a value, such as "seq:10".');
    }
    const [name, value] = [part.slice(0, colon), part.slice(colon + 1)];
    if (!['time', 'shard', 'shard_xor_above', 'seq', 'epoch', 'unit'].includes(name)) {
      throw invalid(`unrecognized layout part "${excerpt(name)}"`, 'The parts of a spec are time, shard or shard_xor_above, seq, epoch and unit.');
    }
    const place = name === 'shard_xor_above' ? 'shard' : name;
    if (place in parts) {
      throw invalid(`layout part "${name}" is specified more than once`, 'Specify each part once, and only one of shard and shard_xor_above.');
    }
    parts[place] = value;
    if (!['epoch', 'unit'].includes(name)) parts.order.push(name);
  }
  return parts;
}

const SHARD_PLACES = {
  'time, shard, seq': 'above_seq',
  'time, seq, shard': 'lowest',
  'time, seq, shard_xor_above': 'lowest_xored',
};

function layoutOfParts(parts, now) {
  const shard = parts.order.includes('shard_xor_above') ? 'shard_xor_above' : 'shard';
  const timeBits = width('time', parts.time, 1, MAX_TIME_BITS);
  const shardBits = width(shard, parts.shard, 0, MAX_OTHER_BITS);
  const seqBits = width('seq', parts.seq, 0, MAX_OTHER_BITS);
  const order = parts.order.join(', ');
  if (!Object.hasOwn(SHARD_PLACES, order)) {
    const allowed = Object.keys(SHARD_PLACES).join(', or ');
    throw invalid(`invalid order of layout fields: ${order}`, `The order must be ${allowed}.`);
  }
  const epochMs = epochOf(parts.epoch, now);
  const unit = unitOf(parts.unit);
  const found = new Layout({ timeBits, shardBits, seqBits, shardPlace: SHARD_PLACES[order], unit, epochMs });
  if (found.bits > 64) throw invalid(`layout fields have ${found.bits} bits in total`, 'An ID has 64 bits.');
  return found;
}

function width(name, value, least, most) {
  const allowed = `The ${name} field has ${least} to ${most} bits, in plain digits, as in "${name}:${most}".`;
  if (value === undefined) throw invalid(`layout part "${name}" is missing`, allowed);
  const bits = /^(0|[1-9]\d{0,2})$/.test(value) ? Number(value) : NaN;
  if (!(bits >= least && bits <= most)) throw invalid(`invalid layout part "${name}:${excerpt(value)}"`, allowed);
  return bits;
}

function unitOf(value) {
  const allowed = `The unit is one of ${Object.keys(UNIT_US).join(', ')}.`;
  if (value === undefined) throw invalid('layout part "unit" is missing', allowed);
  if (!Object.hasOwn(UNIT_US, value)) throw invalid(`invalid layout part "unit:${excerpt(value)}"`, allowed);
  return value;
}

function epochOf(value, now) {
  const allowed =
    'The epoch is a date or a UTC timestamp to the millisecond, from 1970 to now, as in "epoch:2024-01-01" or "epoch:2024-01-01T00:00:00.123Z".';
  if (value === undefined) throw invalid('layout part "epoch" is missing', allowed);
  const epochMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d*)?Z)?$/.test(value) ? Date.parse(value) : NaN;
  // Only what prints the same: a parser may accept the 30th of February.
  const printed = Number.isNaN(epochMs) ? [] : [epochText(epochMs), withoutZeros(new Date(epochMs).toISOString()), new Date(epochMs).toISOString()];
  if (!printed.includes(value) || epochMs < 0 || epochMs >= EPOCH_MS_LIMIT) throw invalid(`invalid layout part "epoch:${excerpt(value)}"`, allowed);
  if (epochMs > Number(now)) throw invalid(`layout part "epoch:${excerpt(value)}" is in the future`, allowed);
  return epochMs;
}

/** "…01.720Z" as "…01.72Z", and "…00.000Z" as "…00Z". */
const withoutZeros = (iso) => iso.replace(/(\.\d*?)0*Z$/, '$1Z').replace('.Z', 'Z');

/** A date if the epoch is midnight in UTC, else a timestamp. */
function epochText(epochMs) {
  const iso = new Date(epochMs).toISOString();
  return iso.endsWith('T00:00:00.000Z') ? iso.slice(0, 10) : withoutZeros(iso);
}
