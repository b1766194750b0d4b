const assert = require('node:assert/strict');
const {drizzle} = require('drizzle-orm/node-postgres');
const {Client} = require('pg');
const {posts} = require('./schema');

async function main() {
  const client = new Client();
  await client.connect();
  const [post] = await drizzle(client).insert(posts).values({body: 'first'}).returning();
  assert.equal(typeof post.id, 'bigint');
  assert.ok(post.id > 2n ** 60n, String(post.id));
  const bodies = Array.from({length: 200}, (_, i) => ({body: `bulk ${i}`}));
  const bulk = await drizzle(client).insert(posts).values(bodies).returning();
  assert.ok(bulk.every(({id, body}, i) => body === `bulk ${i}` && id > (i ? bulk[i - 1].id : post.id)));
  await client.end();
}

main();
