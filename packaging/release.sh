# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: what a release leaves behind for good. CONTRIBUTING.md has the steps of a release.
set -euo pipefail

# What is kept as the SQL of a version has to be its SQL: the tree builds that version; or it builds the next one, has
# changed nothing in SQL yet, and nobody can have the version, which is not tagged.
expect_sql_of_version() {
    local script=sql/releases/pg_snowflake--$1.sql upgrade
    upgrade=sql/pg_snowflake--$1--$(crate_version).sql
    [[ ! -e $script ]] || die "$script is there, and what is released does not change. If nobody has $1 yet, remove" \
        "the file and its lines in sql/releases/SHA256SUMS first."
    [[ $(crate_version) != "$1" ]] || return 0
    [[ -f $upgrade ]] || die "Cargo.toml is at $(crate_version), not at $1: run this in the tree of $1"
    ! is_tagged "$1" || die "v$1 is tagged, so its SQL is that of the tag: git checkout v$1, and run this there"
    ! has_statements "$upgrade" || die "$upgrade changes the SQL, so that of $1 is no longer here: run this in" \
        "the tree of $1"
}

is_tagged() { git rev-parse --quiet --verify "refs/tags/v$1" >/dev/null; }

# Anything besides comments and the line that keeps psql from reading it.
has_statements() { [[ -n $(sed '/^--/d; /^\\echo /d; /^$/d' "$1") ]]; }

# Keeps the install SQL, from which databases will have been made, and the checksums of it and of the script that
# upgrades to it. Tests refuse a change to either.
keep_release_sql() {
    local script=pg_snowflake--$1.sql
    mkdir -p sql/releases
    cp "$("$bin/pg_config" --sharedir)/extension/pg_snowflake--$(crate_version).sql" "sql/releases/$script"
    (
        cd sql/releases
        shopt -s nullglob
        sha256sum -- "$script" ../pg_snowflake--*--"$1".sql >>SHA256SUMS
    )
    step "sql/releases/$script is kept"
}
