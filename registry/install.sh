#!/bin/sh
# Puts the files of the extension pg_snowflake_registry into a folder. cargo-pgrx installs the library and the extension of the
# control file beside Cargo.toml, and no other.
set -eu
if [ $# != 1 ] || [ ! -d "$1" ]; then
    echo "install.sh: into which folder? name the one with pg_snowflake.control" >&2
    exit 1
fi
here=$(dirname "$0")
extension=pg_snowflake_registry
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
umask 022
sed "s/@CARGO_VERSION@/$version/" "$here/$extension.control" >"$1/$extension.control"
install -m 644 "$here/$extension.sql" "$1/$extension--$version.sql"
for upgrade in "$here/$extension"--*--*.sql; do
    [ ! -e "$upgrade" ] || install -m 644 "$upgrade" "$1"
done
