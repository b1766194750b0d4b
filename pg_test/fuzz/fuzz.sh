# shellcheck shell=bash disable=SC2153,SC2154 # ./dev sets what is not set here
# Part of ./dev: fuzzing.
set -euo pipefail

fuzz_all() {
    local targets target
    make_run_folder
    mapfile -t targets < <("$CARGO_FUZZ" fuzz list --fuzz-dir "${FUZZ_CRATE%/*}")
    ((${#targets[@]} > 0)) || die "no fuzz targets in $FUZZ_CRATE"
    step "building ${#targets[@]} fuzz targets"
    run cargo_fuzz build
    for target in "${targets[@]}"; do
        step "$target: $1 s"
        run fuzz_one "$target" "$1"
    done
    step "no input was found for which something does not hold"
}

# The address sanitizer watches the libraries that the modules call, which may hold unsafe code; its option is a
# nightly compiler's, and this variable opens it in a stable one.
cargo_fuzz() {
    RUSTC_BOOTSTRAP=1 "$CARGO_FUZZ" fuzz "$1" --fuzz-dir "${FUZZ_CRATE%/*}" --features targets \
        --target-dir "$TARGET/pg_snowflake-fuzz" "${@:2}"
}

# What was found to reach new code is kept for the next run.
fuzz_one() {
    local target=$1 seconds=$2 corpus=$TARGET/pg_snowflake-fuzz/corpus/$1 log=$run_folder/$1.log
    local dictionary=${FUZZ_CRATE%/*}/$target.dict engine=("-max_total_time=$seconds" -print_final_stats=1)
    local corpora=("$corpus") seeds=${FUZZ_CRATE%/*}/seeds/$target
    [[ ! -f $dictionary ]] || engine+=("-dict=$dictionary")
    [[ ! -d $seeds ]] || corpora+=("$seeds")
    mkdir -p "$corpus"
    if cargo_fuzz run "$target" "${corpora[@]}" -- "${engine[@]}" >"$log" 2>&1; then
        say "      $(thousands "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")") inputs, all as they should be"
        return
    fi
    # The beginning is the corpus being read, and progress.
    grep -v '^#[0-9]' "$log" | tail -n 120
    say "The input is in ${FUZZ_CRATE%/*}/artifacts/$target. To run it again, alone:"
    say "  RUSTC_BOOTSTRAP=1 $CARGO_FUZZ fuzz run --fuzz-dir ${FUZZ_CRATE%/*} --features targets \\"
    say "      --target-dir $TARGET/pg_snowflake-fuzz $target FILE"
    return 1
}
