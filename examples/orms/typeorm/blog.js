// TypeORM: `synchronize` keeps a default that the entity names, and save() takes the ID from RETURNING.
'use strict';

const assert = require('node:assert/strict');
require('reflect-metadata');
const {DataSource, EntitySchema} = require('typeorm');

// The same as @PrimaryColumn({type: 'bigint', default: () => "…"}). @PrimaryGeneratedColumn replaces the default.
const Post = new EntitySchema({
  name: 'Post',
  tableName: 'posts',
  columns: {
    id: {type: 'bigint', primary: true, default: () => "snowflake_nextval('posts_id_seq', 5, 'postgres')"},
    body: {type: 'text', nullable: true},
  },
});

async function main() {
  // PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
  const {PGHOST: host, PGPORT, PGUSER: username, PGDATABASE: database} = process.env;
  const source = new DataSource({type: 'postgres', host, port: Number(PGPORT), username, database, entities: [Post]});
  await source.initialize();
  const changes = async () => (await source.driver.createSchemaBuilder().log()).upQueries.map(({query}) => query);
  for (let run = 0; run < 2; run++) {
    assert.deepEqual(await changes(), []);
    await source.synchronize();
  }
  const posts = source.getRepository(Post);
  const saved = await posts.save([{body: 'one'}, {body: 'two'}]);
  assert.deepEqual(saved.map(({id}) => typeof id), ['string', 'string']);
  assert.equal((await posts.findOneBy({id: saved[1].id})).body, 'two');
  await source.destroy();
  console.log('TypeORM: synchronize keeps the default');
}

main();
