#!/usr/bin/env bash
# pgloader 3.6.9, loading from PostgreSQL into tables that it creates, replaces every default that contains `nextval(`: the keys of
# my_nextval('posts_id_seq') and of nextval('events_id_seq') * 1000 + 5 become those of a serial, which begins above the highest key. It
# reports no error, and ends with status 0. Expected: the default is kept, or an error.
# shellcheck source=findings/servers.sh
source "$(dirname "$0")/servers.sh"
unpack_with_server pgloader=3.6.9-1
start_server 5501
start_server 5502
sql 5501 -f - <<'SQL'
CREATE SEQUENCE posts_id_seq;
CREATE SEQUENCE events_id_seq;
CREATE FUNCTION my_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT nextval($1) * 1000 + 7';
CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT my_nextval('posts_id_seq'), body text);
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT nextval('events_id_seq') * 1000 + 5, body text);
INSERT INTO posts (body) VALUES ('first');
INSERT INTO events (body) VALUES ('first');
SQL
database() { echo "postgresql://postgres@unix:$folder:$1/postgres"; }
echo "LOAD DATABASE FROM $(database 5501) INTO $(database 5502);" >load
status=0
XDG_DATA_HOME=$folder TMPDIR=$folder pgloader --root-dir "$folder/pgloader" load >log 2>&1 || status=$?
expect "status" "$status" 0
expect "errors and warnings" "$(grep -cE 'ERROR|WARNING' log)" 0
next_key() { sql "$1" -c "INSERT INTO $2 (body) VALUES ('second') RETURNING id"; }
next_keys() { echo "$(next_key "$1" posts) $(next_key "$1" events)"; }
expect "next keys at the source" "$(next_keys 5501)" "2007 2005"
expect "next keys at the target" "$(next_keys 5502)" "1008 1006"
