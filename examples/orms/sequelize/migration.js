// The migration, as sequelize-cli has it. `sync()` would make the columns bigserial.
'use strict';

module.exports = {
  async up(queryInterface, Sequelize) {
    await queryInterface.sequelize.query('CREATE SEQUENCE posts_id_seq');
    await queryInterface.createTable('posts', {
      id: {
        type: Sequelize.BIGINT,
        primaryKey: true,
        defaultValue: Sequelize.literal("snowflake_nextval('posts_id_seq', 5)"),
      },
      body: {type: Sequelize.TEXT, allowNull: false},
    });
    await queryInterface.sequelize.query('ALTER SEQUENCE posts_id_seq OWNED BY posts.id');

    await queryInterface.sequelize.query('CREATE SEQUENCE comments_id_seq');
    await queryInterface.createTable('comments', {
      id: {
        type: 'snowflake',
        primaryKey: true,
        defaultValue: Sequelize.literal("snowflake_nextval('comments_id_seq', 5)"),
      },
      post_id: {type: Sequelize.BIGINT, allowNull: false, references: {model: 'posts', key: 'id'}},
      body: {type: Sequelize.TEXT, allowNull: false},
    });
    await queryInterface.sequelize.query('ALTER SEQUENCE comments_id_seq OWNED BY comments.id');
  },
};
