#!/usr/bin/env bash
# TypeORM 1.1.1 takes a default of my_nextval('posts_id_seq') for that of a serial, because it contains `nextval(`. synchronize() of an
# entity with a generated key drops this default in its first run. In its second run, it sets nextval('posts_id_seq'), which returns other
# keys. Expected: the default is kept, or replaced at once.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack postgresql-15 postgresql-client-15
start_server 5501
export PGPORT=5501
sql 5501 -f - <<'SQL'
CREATE SEQUENCE posts_id_seq;
CREATE FUNCTION my_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT nextval($1) * 1000 + 7';
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT my_nextval('posts_id_seq'), body text);
SQL
npm install --silent --no-audit --no-fund typeorm@1.1.1 pg@8.23.1 reflect-metadata@0.2.2 >/dev/null
cat >sync.js <<'JS'
require('reflect-metadata');
const {DataSource, EntitySchema} = require('typeorm');
const id = {type: 'bigint', primary: true, generated: 'increment'};
const Post = new EntitySchema({name: 'Post', tableName: 'posts', columns: {id, body: {type: 'text', nullable: true}}});
const {PGHOST: host, PGPORT, PGUSER: username, PGDATABASE: database} = process.env;
const source = new DataSource({type: 'postgres', host, port: Number(PGPORT), username, database, entities: [Post], synchronize: true});
source.initialize().then(() => source.destroy());
JS
default() { sql 5501 -c "SELECT coalesce(column_default, 'none') FROM information_schema.columns WHERE table_name = 'posts' AND column_name = 'id'"; }
expect "before" "$(default)" "my_nextval('posts_id_seq'::regclass)"
node sync.js
expect "after one synchronize()" "$(default)" "none"
node sync.js
expect "after two" "$(default)" "nextval('posts_id_seq'::regclass)"
