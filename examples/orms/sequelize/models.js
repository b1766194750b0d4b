// The models: the database generates the IDs, and Sequelize's INSERT returns them.
'use strict';

const {DataTypes, Sequelize} = require('sequelize');

// PGHOST, PGPORT, PGUSER and PGDATABASE name the server, as for psql.
const sequelize = new Sequelize({
  dialect: 'postgres',
  host: process.env.PGHOST,
  port: process.env.PGPORT,
  username: process.env.PGUSER,
  database: process.env.PGDATABASE,
  logging: false,
  define: {timestamps: false},
});

// autoIncrement: send DEFAULT, whatever that is in the table, and take the ID from RETURNING.
const Post = sequelize.define('post', {
  id: {type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true},
  body: {type: DataTypes.TEXT, allowNull: false},
});

const Comment = sequelize.define('comment', {
  id: {type: 'snowflake', primaryKey: true, autoIncrement: true},
  body: {type: DataTypes.TEXT, allowNull: false},
});

const postId = {name: 'postId', field: 'post_id', allowNull: false};
Post.hasMany(Comment, {foreignKey: postId});
Comment.belongsTo(Post, {foreignKey: postId});

module.exports = {Comment, Post, sequelize};
