// node-postgres: a bigint column and a snowflake column are both strings, read and written.
'use strict';

const assert = require('node:assert/strict');
const pg = require('pg');

const OLD_ID = '2235219950664999947';

async function main() {
  // PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
  const client = new pg.Client();
  await client.connect();
  for (const table of ['posts', 'notes']) {
    await idsAreStrings(client, table);
  }
  await aNumberIsAnotherId(client);
  await bigintAsBigInt(client);
  await client.end();
  console.log(`node-postgres ${clientVersion()}: both column types read and written`);
}

async function idsAreStrings(client, table) {
  const {rows: [created]} = await client.query(
    `INSERT INTO ${table} (body) VALUES ($1) RETURNING id, id::text AS text`, ['new']);
  assert.equal(typeof created.id, 'string');
  assert.equal(created.id, created.text);

  await client.query(`INSERT INTO ${table} VALUES ($1, $2)`, [OLD_ID, 'old']);
  for (const [id, body] of [[created.id, 'new'], [OLD_ID, 'old'], [BigInt(OLD_ID), 'old']]) {
    const {rows} = await client.query(`SELECT id::text, body FROM ${table} WHERE id = $1`, [id]);
    assert.deepEqual(rows, [{id: String(id), body}]);
  }

  // An array of snowflake would be one string, '{…}'. Cast to bigint it is an array of strings.
  const {rows: [{ids}]} = await client.query(
    `SELECT array_agg(id ORDER BY body)::bigint[] AS ids FROM ${table} WHERE id = ANY($1)`,
    [[OLD_ID, created.id]]);
  assert.deepEqual(ids, [created.id, OLD_ID]);
}

// Number has 53 bits: if an ID is converted to one on the way, the row is not found.
async function aNumberIsAnotherId(client) {
  for (const table of ['posts', 'notes']) {
    const {rows} = await client.query(`SELECT FROM ${table} WHERE id = $1`, [Number(OLD_ID)]);
    assert.equal(rows.length, 0);
  }
}

// A bigint column can be a BigInt on request. JSON.stringify refuses those, so think twice.
async function bigintAsBigInt(client) {
  const types = {
    getTypeParser: (oid, format) =>
      oid === pg.types.builtins.INT8 ? BigInt : pg.types.getTypeParser(oid, format),
  };
  const {rows: [{id}]} = await client.query(
    {text: 'SELECT id FROM posts WHERE id = $1', values: [OLD_ID], types});
  assert.equal(id, BigInt(OLD_ID));
  assert.throws(() => JSON.stringify({id}), TypeError);
}

function clientVersion() {
  return require('pg/package.json').version;
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
