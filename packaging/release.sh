# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: what a release leaves behind for good.
#
# A release is two commits. One gives Cargo.toml and META.json the version without "-dev", the upgrade script its final
# name and the heading in CHANGELOG.md its date; it is tagged vVERSION, at which .github/workflows/release.yml makes the
# packages. The other, on top of it, runs `./dev release-sql VERSION` and begins the next version: "-dev" in Cargo.toml
# and META.json, and an upgrade script from the release, with nothing in it yet.
set -euo pipefail

# The version that the tree builds.
crate_version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml; }

# Keeps the install SQL, from which databases will have been made, and the checksums of it and of the script that
# upgrades to it. Tests refuse a change to either.
keep_release_sql() {
    local script=pg_snowflake--$1.sql
    [[ ! -e sql/releases/$script ]] || die "sql/releases/$script is there, and what is released does not" \
        "change. If nobody has $1 yet, remove the file and its line in sql/releases/SHA256SUMS first."
    mkdir -p sql/releases
    cp "$("$bin/pg_config" --sharedir)/extension/pg_snowflake--$(crate_version).sql" "sql/releases/$script"
    (
        cd sql/releases
        shopt -s nullglob
        sha256sum -- "$script" ../pg_snowflake--*--"$1".sql >>SHA256SUMS
    )
    step "sql/releases/$script is kept"
}
