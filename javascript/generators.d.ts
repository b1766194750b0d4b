import type { Id, LayoutText, Reading } from './snowflake.js';

/** The layout of another ID generator. */
export interface Generator {
  /** What it is called. */
  readonly name: string;
  /** Its layout. */
  readonly spec: LayoutText;
  /** The lowest value of its counter. */
  readonly firstSeq: number;
}

/** The layouts of other ID generators, without those that are presets. */
export const generators: readonly Generator[];

/** An ID as a preset reads it, or as the layout of another generator does. */
export interface Candidate extends Reading {
  /** The layout, if it is not a preset. */
  spec?: LayoutText;
}

/**
 * What the ID may be of, the most likely first: every preset, and the generators in whose layout it is of the last 90 days.
 * @param now the clock, in milliseconds since 1970
 * @returns `fits` is whether any of them reads a time of the last 90 days
 */
export function candidates(id: Id, now?: number): { candidates: Candidate[]; fits: boolean };
