# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: the campaign, and the mutations that it has to notice.
set -euo pipefail

campaign() {
    local options=("$@") revision
    # What is run with options is no record.
    if (($# == 0)); then
        revision=$(git describe --always --dirty)
        options=(--record docs/proof.md --revision "$revision")
    fi
    make_run_folder
    need_next_major
    step "the campaign on $(server_version)"
    PG_CONFIG=$bin/pg_config run cargo run --quiet --package pg_snowflake_servertest --bin campaign -- "${options[@]}"
}

# Each is built in a copy of the tree into a copy of the installation, and has to break the short campaign.
mutations() {
    local patch name log survivors=() mutant_pg_config
    make_run_folder
    mutant_pg_config=$run_folder/postgresql${bin#"$PRIVATE/postgresql-$major"}/pg_config
    for patch in pg_test/mutations/*.patch; do
        name=$(basename "$patch" .patch)
        log=$run_folder/$name.log
        step "$name: $(head -n 1 "$patch")"
        run build_mutant "$patch"
        if PG_CONFIG=$mutant_pg_config run cargo run --quiet --package pg_snowflake_servertest --bin campaign -- \
            --short >"$log" 2>&1; then
            survivors+=("$name")
            say "      not found"
        else
            grep '^|.*promise broken' "$log" || die_with "$log" "the campaign failed in another way"
        fi
    done
    ((${#survivors[@]} == 0)) || die "the campaign did not find: ${survivors[*]}"
}

build_mutant() {
    local tree=$run_folder/mutant installation=$run_folder/postgresql
    rm -rf "$tree" "$installation"
    mkdir "$tree"
    git ls-files -z | tar --create --null --files-from=- | tar --extract --touch --directory="$tree"
    git -C "$tree" apply "$PWD/$1"
    cp -a "$PRIVATE/postgresql-$major" "$installation"
    (cd "$tree" && CARGO_TARGET_DIR=$TARGET/pg_snowflake-mutations "$CARGO_PGRX" pgrx install --release \
        --pg-config "$mutant_pg_config" 2>&1 >/dev/null | sed -u '/^\x1b/d')
}
