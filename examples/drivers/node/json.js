// An ID from PostgreSQL through JSON and JavaScript and back: a snowflake survives, a bigint does not.
'use strict';

const assert = require('node:assert/strict');
const pg = require('pg');

const ID = '2235219950664999947';

async function main() {
  // PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
  const client = new pg.Client();
  await client.connect();

  const snowflake = await thereAndBack(client, 'notes');
  assert.deepEqual(snowflake, {
    json: '{"id":"2235219950664999947","body":"hello"}',
    parsed: {id: '2235219950664999947', body: 'hello'},
    back: '2235219950664999947',
    found: 1,
  });

  const bigint = await thereAndBack(client, 'posts');
  assert.deepEqual(bigint, {
    json: '{"id":2235219950664999947,"body":"hello"}',
    parsed: {id: 2235219950665000000, body: 'hello'},
    back: '2235219950665000000',
    found: 0,
  });

  const {rows: [{shard}]} = await client.query('SELECT snowflake_shard_id($1) AS shard', [ID]);
  assert.equal(shardOf(BigInt(ID)), BigInt(shard));

  await client.end();
  console.log(`snowflake ${ID} came back as ${snowflake.back}, bigint ${ID} as ${bigint.back}`);
}

// The formula in README.md.
function shardOf(id) {
  return (id ^ (id >> 12n)) & 4095n;
}

async function thereAndBack(client, table) {
  await client.query(`INSERT INTO ${table} VALUES ($1, $2)`, [ID, 'hello']);
  // As text, because node-postgres would parse a column of type json itself, with the same result.
  const {rows: [{json}]} = await client.query(
    `SELECT row_to_json(${table})::text AS json FROM ${table} WHERE id = $1`, [ID]);
  const parsed = JSON.parse(json);
  const {rows: [{back}]} = await client.query(
    `SELECT id::text AS back FROM json_populate_record(NULL::${table}, $1)`,
    [JSON.stringify(parsed)]);
  const {rows} = await client.query(`SELECT FROM ${table} WHERE id = $1`, [parsed.id]);
  return {json, parsed, back, found: rows.length};
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
