#!/usr/bin/env bash
# SQLAlchemy 2.1.9 takes a reflected default of my_nextval('posts_id_seq') for that of a serial, because it contains `nextval(`, and creates
# a BIGSERIAL from it. With a schema, it also writes the name of the schema into the default, and loses what precedes `nextval(`. Expected:
# the default of the table.
# shellcheck source=findings/server.sh
source "$(dirname "$0")/server.sh"
python3 -m venv venv
venv/bin/pip -q install 'SQLAlchemy==2.1.9' 'psycopg[binary]==3.3.9'
cat >reflect.py <<'PY'
from sqlalchemy import MetaData, Table, create_engine, inspect
from sqlalchemy.schema import CreateTable
engine = create_engine("postgresql+psycopg://")
table = Table("posts", MetaData(), autoload_with=engine)
print(str(CreateTable(table).compile(engine)).splitlines()[2].strip())
print(inspect(engine).get_columns("posts", schema="public")[0]["default"])
PY
mapfile -t found < <(venv/bin/python reflect.py)
expect "CREATE TABLE" "${found[0]}" "id BIGSERIAL NOT NULL,"
expect "default with a schema" "${found[1]}" "nextval('\"public\".posts_id_seq'::regclass)"
