// Compiled, and not run: what a user writes in TypeScript.
import { candidates, generators } from 'pg-snowflake/generators';
import { decode, encode, info, layout, minId, presets, readings, type Layout } from 'pg-snowflake';

const twitter: Layout = presets.twitter;
const shardId: number = decode('2235219950664999947').shardId;
const id: bigint = encode({ createdAt: new Date(), shardId, seq: 1 }, twitter);
const since: bigint = minId(1_700_000_000_000, layout('twitter'));
const year: number = info(twitter).endsAt.getUTCFullYear();
const doubt: string | null = readings(id).map((reading) => reading.doubt)[0];
const specs: (string | undefined)[] = candidates(id).candidates.map(({ spec }) => spec);
const counter: number = generators[0].firstSeq;
void [since, year, doubt, specs, counter];

// @ts-expect-error a time is missing
encode({ shardId: 5 });
// @ts-expect-error an ID is not a Date
decode(new Date());
