#!/bin/sh
# Installs the extension into the PostgreSQL whose pg_config is named by PG_CONFIG, or is on PATH. Supports DESTDIR.
set -eu
here=$(dirname "$0")
pg_config=${PG_CONFIG:-pg_config}
command -v "$pg_config" >/dev/null || {
    echo "install.sh: there is no $pg_config: name one, as in PG_CONFIG=/usr/lib/postgresql/17/bin/pg_config $0" >&2
    exit 1
}
# In variables, so that a failing pg_config ends this script: inside an argument it would become an empty folder name.
libraries=$("$pg_config" --pkglibdir)
shared=$("$pg_config" --sharedir)
install -D -m 755 -t "${DESTDIR:-}$libraries" "$here/lib/pg_snowflake.so"
install -D -m 644 -t "${DESTDIR:-}$shared/extension" "$here"/extension/*
# There may be several servers, and the first on PATH is not always the intended one.
echo "installed into ${DESTDIR:-}$libraries and ${DESTDIR:-}$shared/extension"
echo "now, in any database: CREATE EXTENSION pg_snowflake;"
