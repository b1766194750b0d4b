/** A layout as text: the name of a preset, or a specification such as "time:41 seq:10 shard_xor_above:12 epoch:2024-01-01 unit:1ms". */
export type LayoutText = string;

/** How an ID's bits are divided. */
export interface Layout {
  /** Width of the time, 1 to 48. */
  readonly timeBits: number;
  /** Width of the shard, 0 to 31. */
  readonly shardBits: number;
  /** Width of the counter, 0 to 31. */
  readonly seqBits: number;
  /** Where the shard is: above the counter, in the lowest bits, or in the lowest bits XORed with as many bits above them. */
  readonly shardPlace: 'above_seq' | 'lowest' | 'lowest_xored';
  /** Length of a tick. */
  readonly unit: '10us' | '100us' | '1ms' | '10ms' | '100ms' | '1s';
  /** The time of tick 0, in milliseconds since 1970. */
  readonly epochMs: number;
  /** The number of bits that an ID uses. */
  readonly bits: number;
  /** All parts as text, as the SQL type `snowflake_layout` accepts them. */
  readonly spec: string;
  /** The preset's name, or the specification. */
  toString(): string;
}

/** An ID: a `bigint`, or its decimal digits. A number is accepted up to 2^53. */
export type Id = bigint | string | number;

/** A time: a `Date`, milliseconds since 1970 as a number, or microseconds since 1970 as a `bigint`. */
export type Time = Date | number | bigint;

/** The fields of an ID. */
export interface Fields {
  /** The time, rounded down to the millisecond. */
  createdAt: Date;
  /** The shard that generated the ID. */
  shardId: number;
  /** The counter within a tick. */
  seq: number;
  /** The number of ticks since the epoch. */
  tick: bigint;
  /** The time in microseconds since 1970. */
  unixUs: bigint;
}

/** An ID as a preset reads it. */
export interface Reading extends Partial<Fields> {
  /** The preset. */
  name: string;
  /** Why the ID is probably not of this preset. The fields are missing if it is "not an ID". */
  doubt: null | 'future' | 'first days' | 'not an ID';
}

/** What follows from a layout. */
export interface Info {
  /** All parts as text. */
  spec: string;
  /** The number of shards. */
  shards: number;
  /** The highest rate of one sequence. */
  idsPerSecond: number;
  /** When the layout ends. An invalid Date after the year 275760. */
  endsAt: Date;
  /** The same in microseconds since 1970, at most 2^63 - 1. */
  endsUs: bigint;
  /** The number of values onto which PostgreSQL folds one shard's IDs of ten minutes at that rate before it hashes them. */
  distinctFolds: number;
  /** The shard of the column `id` in SQL. */
  shardFormula: string;
  /** Whether every ID is exact as a JavaScript number. */
  isExactInJavaScript: boolean;
}

/** The named layouts, in the order of the view `snowflake_layouts`. */
export const presets: Readonly<
  Record<'postgres' | 'instagram' | 'twitter' | 'discord' | 'mastodon' | 'sonyflake' | 'pgedge' | 'pgdog' | 'js53', Layout>
>;

/**
 * The layout of a preset's name or of a specification.
 * @param now the clock, in milliseconds since 1970: an epoch must not be after it
 * @throws SyntaxError with what is allowed
 */
export function layout(text: LayoutText | Layout, now?: number): Layout;

/**
 * The fields of an ID, in the layout `postgres` if no other is passed.
 * @throws RangeError if the ID has bits above the layout's
 */
export function decode(id: Id, of?: LayoutText | Layout): Fields;

/**
 * The ID of a time, a shard and a counter.
 * @throws RangeError if the layout has no room for one of the three
 */
export function encode(fields: { createdAt: Time; shardId: number; seq?: number }, of?: LayoutText | Layout): bigint;

/** The smallest ID at or after a time: 0 before the epoch; after the end, a number above every ID, at most 2^63 - 1. */
export function minId(time: Time, of?: LayoutText | Layout): bigint;

/** What follows from a layout, as `snowflake_layout_info` returns it. */
export function info(of?: LayoutText | Layout): Info;

/** The shard of an ID as an expression of `id`: of a `bigint` column in SQL, or of a `bigint` in JavaScript. */
export function shardFormula(of?: LayoutText | Layout, language?: 'sql' | 'javascript'): string;

/** The ID as every preset reads it, the most likely first. */
export function readings(id: Id, now?: Time): Reading[];
