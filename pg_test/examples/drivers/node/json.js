// An ID from PostgreSQL through JSON and JavaScript and back: a snowflake survives, a bigint does not.
'use strict';

const assert = require('node:assert/strict');
const pg = require('pg');

const ID = '4034936746192933889';

async function main() {
  // PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
  const client = new pg.Client();
  await client.connect();

  const snowflake = await thereAndBack(client, 'notes');
  assert.deepEqual(snowflake, {
    json: '{"id":"4034936746192933889","body":"hello"}',
    parsed: {id: '4034936746192933889', body: 'hello'},
    back: '4034936746192933889',
    found: 1,
  });

  const bigint = await thereAndBack(client, 'posts');
  assert.deepEqual(bigint, {
    json: '{"id":4034936746192933889,"body":"hello"}',
    parsed: {id: 4034936746192934000, body: 'hello'},
    back: '4034936746192934000',
    found: 0,
  });

  await client.end();
  console.log(`snowflake ${ID} came back as ${snowflake.back}, bigint ${ID} as ${bigint.back}`);
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
