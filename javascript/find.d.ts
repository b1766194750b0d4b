import type { Layout } from './snowflake.js';

/** The layout of some IDs. */
export interface Found {
  /** The layout. */
  layout: Layout;
  /** How far the times of the middle half of the IDs differ, in microseconds. */
  spreadUs: number;
  /** The other lengths of a tick that the IDs allow, in microseconds. */
  otherTicksUs: number[];
  /** Whether the times are far enough apart, and exact enough, to exclude other lengths that are not named. */
  isUnitCertain: boolean;
  /** Whether the IDs prove the division of the low bits, as where the counter has wrapped from its highest value to 0. */
  isDivisionCertain: boolean;
  /** The other likely layouts if they do not, with their shards. */
  candidates: { layout: Layout; shards: number[] }[];
  /** Whether the shard changes only where the counter begins again, so that its bits seem to count, too. */
  countsIntoShard: boolean;
  /** The shards, in ascending order. */
  shards: number[];
  /** Whether most IDs fit in at least nine tenths of the time that they span. */
  fitsMostOfTheTime: boolean;
  /** Whether the IDs allow no other layout, with an epoch as exact as their times. */
  isSure: boolean;
  /** The newest ID that fits. */
  newest: bigint;
  /** The IDs whose time is too far from the one that they came with, and the latter in microseconds since 1970. */
  misfits: [bigint, number][];
}

/**
 * The layout of IDs and their times, in microseconds since 1970, in any order.
 * @throws RangeError with the reason if there is none
 */
export function find(samples: [bigint, number][]): Found;
