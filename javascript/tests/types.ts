// Compiled, and not run: what a user writes in TypeScript.
import { decode, encode, info, layout, minId, presets, readings, type Layout } from 'pg-snowflake';

const twitter: Layout = presets.twitter;
const shardId: number = decode('2235219950664999947').shardId;
const id: bigint = encode({ createdAt: new Date(), shardId, seq: 1 }, twitter);
const since: bigint = minId(1_700_000_000_000, layout('twitter'));
const year: number = info(twitter).endsAt.getUTCFullYear();
const doubt: string | null = readings(id).map((reading) => reading.doubt)[0];
void [since, year, doubt];

// @ts-expect-error a time is missing
encode({ shardId: 5 });
// @ts-expect-error an ID is not a Date
decode(new Date());
