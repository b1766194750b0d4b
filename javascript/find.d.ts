import type { Layout } from './snowflake.js';

/** The layout of some IDs. */
export interface Found {
  /** The layout. */
  layout: Layout;
  /** The epoch that the times show, in microseconds since 1970. The layout has that of a preset, or midnight, if one is within a minute. */
  measuredEpochUs: number;
  /** How far the times of the more consistent half of the IDs differ, in microseconds. */
  spreadUs: number;
  /** How far the time of an ID may be from the one that it came with, in microseconds. */
  toleranceUs: number;
  /** The other units that the times allow. */
  otherUnits: Layout['unit'][];
  /** Whether no other division of the low bits explains the IDs as well. */
  isDivisionCertain: boolean;
  /** Whether the shard changes only where the counter begins again, so that its bits seem to count, too. */
  countsIntoShard: boolean;
  /** The shards, in ascending order. */
  shards: number[];
  /** Whether the layout is sure enough to convert a column: no other one is possible, and at least nine tenths of the IDs fit. */
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
