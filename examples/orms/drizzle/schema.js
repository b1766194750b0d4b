const {sql} = require('drizzle-orm');
const {bigint, pgSequence, pgTable, text} = require('drizzle-orm/pg-core');

// `push` drops a sequence that the schema lacks, unless a column owns the sequence. Then it is not declared.
exports.postsIdSeq = pgSequence('posts_id_seq');

exports.posts = pgTable('posts', {
  id: bigint({mode: 'bigint'}).primaryKey().default(sql`snowflake_nextval('posts_id_seq'::regclass, 5)`),
  body: text().notNull(),
});
