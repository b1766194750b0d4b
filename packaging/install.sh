#!/bin/sh
# Puts the extension into the PostgreSQL whose pg_config is named by PG_CONFIG, or is on PATH. DESTDIR is honoured.
set -eu
cd "$(dirname "$0")"
pg_config=${PG_CONFIG:-pg_config}
install -D -m 755 -t "${DESTDIR:-}$("$pg_config" --pkglibdir)" lib/pg_snowflake.so
install -D -m 644 -t "${DESTDIR:-}$("$pg_config" --sharedir)/extension" extension/*
echo "now, in any database: CREATE EXTENSION pg_snowflake;"
