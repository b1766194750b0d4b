// Sequelize: the INSERT returns the ID, for one row, for many, and for a parent and its children.
// It is a string, and stays one in JSON.
'use strict';

const assert = require('node:assert/strict');
const Sequelize = require('sequelize');
const migration = require('./migration');
const {Comment, Post, sequelize} = require('./models');

const {Op, col, fn, where} = Sequelize;

// Of shard 5, generated at noon on 2024-05-01.
const OLD_ID = '1896919282483208199';

async function main() {
  await migration.up(sequelize.getQueryInterface(), Sequelize);
  await oneRow();
  await manyRows();
  await aParentAndItsChildren();
  await rowsOfATime();
  await sequelize.close();
  console.log(`Sequelize ${Sequelize.version}: ids arrive through RETURNING`);
}

async function oneRow() {
  const post = await Post.create({body: 'first'});
  assert.equal(typeof post.id, 'string');
  assert.deepEqual(JSON.parse(JSON.stringify(post)), {id: post.id, body: 'first'});
  assert.equal((await Post.findByPk(post.id)).body, 'first');
  assert.equal((await Post.findByPk(BigInt(post.id))).body, 'first');
  // Number has 53 bits: this is a different ID.
  assert.equal(await Post.findByPk(Number(post.id)), null);
}

async function manyRows() {
  const many = Array.from({length: 200}, (_, i) => ({body: `bulk ${i}`}));
  const posts = await Post.bulkCreate(many);
  const rows = await Post.findAll({where: {body: {[Op.startsWith]: 'bulk'}}, order: ['id']});
  assert.deepEqual(posts.map((post) => post.get()), rows.map((row) => row.get()));
}

async function aParentAndItsChildren() {
  await sequelize.transaction(async (transaction) => {
    const comments = [{body: 'one'}, {body: 'two'}];
    await Post.create({body: 'parent', comments}, {include: Comment, transaction});
  });
  const comments = await Comment.findAll({include: Post, order: ['id']});
  assert.deepEqual(comments.map((comment) => [comment.body, comment.post.body]),
    [['one', 'parent'], ['two', 'parent']]);
  assert.equal(typeof comments[0].id, 'string');
  assert.equal((await Comment.findByPk(comments[0].id)).body, 'one');
}

async function rowsOfATime() {
  await Post.create({id: OLD_ID, body: 'imported'});

  const [day, nextDay] = [new Date('2024-05-01T00:00Z'), new Date('2024-05-02T00:00Z')];
  const isOfThatDay = where(fn('snowflake_between', col('id'), day, nextDay), true);
  const ofThatDay = await Post.findAll({where: isOfThatDay});
  assert.deepEqual(ofThatDay.map((post) => post.id), [OLD_ID]);

  const sinceThen = await Post.count({where: {id: {[Op.gte]: fn('snowflake_min_id', nextDay)}}});
  assert.equal(sinceThen, 202);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
