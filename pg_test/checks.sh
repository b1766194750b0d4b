# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: what it checks and tests, and how that went.
set -euo pipefail

check_format() {
    need_rust_component fmt rustfmt
    run cargo fmt --all --check
    run cargo fmt --manifest-path "$FUZZ_CRATE" --check
}

check_clippy() {
    need_rust_component clippy clippy
    make_run_folder
    run cargo clippy --workspace --all-targets --no-default-features --features "pg$major pg_test" -- -D warnings
    # This one is no target of "all", since nobody should run it unasked.
    run cargo clippy --package pg_snowflake_servertest --test valgrind -- -D warnings
    # The targets too. Nothing is linked here, so the engine, which wants a C++ compiler, need not be there: a library is
    # only named.
    CUSTOM_LIBFUZZER_PATH=$TARGET/libFuzzer.a run cargo clippy --manifest-path "$FUZZ_CRATE" --target-dir "$TARGET" \
        --all-targets --features targets -- -D warnings
}

check_docs() {
    make_run_folder
    RUSTDOCFLAGS="-D warnings" run cargo doc --workspace --no-deps --document-private-items \
        --no-default-features --features "pg$major pg_test"
}

check_scripts() {
    local scripts
    mapfile -t scripts < <(git ls-files '*.sh' dev .ci/run)
    run shellcheck --external-sources "${scripts[@]}"
}

# What people read: in code, names are joined words.
check_spelling() {
    local files
    mapfile -t files < <(git ls-files '*.md' '*.sql')
    # A misspelt layout, to show what is said to it; a word of SQL, and one of Rust.
    run codespell --ignore-words-list twiter,inout,crate "${files[@]}"
}

# By PGXN's own validator.
check_meta() {
    need_tool META_VALIDATOR pgxn_meta "$META_VALIDATOR_VERSION"
    run "$META_VALIDATOR" META.json
}

# All four checks, where none is named. That of advisories reads their database from the network.
audit_dependencies() {
    local manifest
    need_tool CARGO_DENY cargo-deny "$CARGO_DENY_VERSION"
    for manifest in Cargo.toml "$FUZZ_CRATE"; do
        step "the dependencies of $manifest"
        run "$CARGO_DENY" --manifest-path "$manifest" --config .cargo/deny.toml check "$@"
    done
}

# Unit and property tests, the examples in the core crate's documentation, and the tests that pgrx-tests runs inside a
# server. It installs a debug library in the same place as the release library.
crate_tests() {
    run counted cargo test --package pg_snowflake_core
    local arguments=(test "pg$major" --pgdata "$run_folder/pgrx")
    ! is_root || arguments+=(--runas postgres)
    run counted "$CARGO_PGRX" pgrx "${arguments[@]}"
}

# shellcheck disable=SC2120 # the name of a test is optional
real_server_tests() {
    make_run_folder
    PG_CONFIG=$bin/pg_config run counted cargo test --package pg_snowflake_servertest --no-fail-fast -- "$@"
}

# The targets that PostgreSQL people type, into a folder of their own and against a throwaway server, from nothing on.
check_makefile() {
    local make=(make --no-print-directory "PG_CONFIG=$bin/pg_config") destination=$run_folder/destination
    make_run_folder
    run make --silent PG_CONFIG=none clean
    run start_server make
    PGHOST=$run_folder/make PGUSER=postgres run "${make[@]}" --silent installcheck
    PATH=${CARGO_PGRX%/*}:$PATH run "${make[@]}" >"$run_folder/make.log" 2>&1 ||
        die_with "$run_folder/make.log" "make failed"
    run "${make[@]}" --silent DESTDIR="$destination" install
    cmp "$destination$("$bin/pg_config" --pkglibdir)/pg_snowflake.so" "$("$bin/pg_config" --pkglibdir)/pg_snowflake.so"
}

tests_under_valgrind() {
    step "running servers under $(valgrind --version): some minutes"
    make_run_folder
    # One at a time, and what they found is shown also where it is nothing.
    PG_CONFIG=$bin/pg_config run cargo test --package pg_snowflake_servertest --test valgrind -- \
        --test-threads=1 --nocapture
}

# Keeps what a command prints, for `count_tests`.
counted() { "$@" | tee -a "$(tests_log)"; }

# `test_all_majors` says where it wants to read it.
tests_log() { say "${TESTS_LOG:-$run_folder/tests.log}"; }

all_tests() {
    local done_phases=() started=${EPOCHREALTIME/[.,]/}
    make_run_folder
    phase "format" check_format
    phase "clippy" check_clippy
    phase "docs" check_docs
    phase "shell scripts" check_scripts
    phase "spelling" check_spelling
    phase "META.json" check_meta
    phase "unit, property and in-server tests" crate_tests
    phase "release library" build_release
    need_next_major
    phase "real-server tests" real_server_tests
    phase "Makefile" check_makefile
    printf '\n'
    step "all green on $(server_version)"
    printf '%s\n' "${done_phases[@]}"
    list_left_out
    say "$(count_tests) in $(seconds_since "$started") s"
}

# Behaviour on a real server with the library that users get: what a second major may get wrong. Format, clippy, docs,
# rates, the campaign and the tests within a server are the business of `./dev test`.
short_tests() {
    build_release
    PG_CONFIG=$bin/pg_config run counted cargo test --package pg_snowflake_servertest --test servers --no-fail-fast
    step "the short suite is green on $(server_version)"
    list_left_out
    count_tests
    printf '\n'
}

# A failing command ends the script; `clean_up` then names the phase.
phase() {
    local started=${EPOCHREALTIME/[.,]/}
    current_phase=$1
    printf '\n'
    step "$current_phase"
    say "phase: $current_phase" >>"$(tests_log)"
    "${@:2}"
    done_phases+=("$(printf '%8s s  %s' "$(seconds_since "$started")" "$current_phase")")
    say "    $current_phase: green after $(seconds_since "$started") s"
    say "green: $current_phase: $(seconds_since "$started")" >>"$(tests_log)"
    current_phase=
}

# What this machine cannot run is no failure, but nobody should overlook it.
list_left_out() {
    sed -n '/^left out:/p' "$(tests_log)" | sort | uniq --count | sed 's/^ *\([0-9]*\) \(.*\)/\2 (\1)/'
}

count_tests() {
    awk '/^test result: / { passed += $4; failed += $6; ignored += $8 }
         END { printf "%d tests passed, %d failed, %d ignored", passed, failed, ignored }' "$(tests_log)"
}
