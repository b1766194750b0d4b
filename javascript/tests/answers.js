// Compares the module with the extension's answers: a line of JSON for each, on standard input. Prints how many there were.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { decode, encode, info, layout, minId } from '../snowflake.js';

const of = (f) => {
  try {
    return f();
  } catch (error) {
    assert.ok(error instanceof RangeError, error);
    return null;
  }
};

let [answers, refused] = [0, 0];
for await (const line of createInterface({ input: process.stdin })) {
  const { spec, id, text, shards, ids_per_second, ends_us, distinct_folds, shard_formula, decoded, encoded, time_us, shard, seq, min_id } = JSON.parse(line);
  const found = layout(spec);
  const figures = info(found);
  assert.deepEqual(
    [String(found), figures.shards, figures.idsPerSecond, figures.distinctFolds, figures.shardFormula],
    [text, shards, ids_per_second, distinct_folds, shard_formula],
    line,
  );
  if (ends_us !== null) assert.equal(String(figures.endsUs), ends_us, line);
  const fields = of(() => decode(id, found));
  // PostgreSQL's times end in the year 294276.
  const isFinite = decoded?.unix_us !== null;
  const own = fields && { unix_us: isFinite ? String(fields.unixUs) : null, shard_id: fields.shardId, seq: fields.seq };
  assert.deepEqual(own, decoded, line);
  assert.equal(of(() => String(encode({ createdAt: BigInt(time_us), shardId: shard, seq }, found))), encoded, line);
  assert.equal(String(minId(BigInt(time_us), found)), min_id, line);
  answers += 1;
  refused += (decoded === null) + (encoded === null);
}
console.log(`${answers} answers, ${refused} of them errors`);
