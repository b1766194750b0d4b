# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: the tests on more than one major version of PostgreSQL.
set -euo pipefail

# Every major that this machine can get, one after the other. A failure of one does not keep the others from running.
test_all_majors() {
    local candidate status=0 logs=()
    read_package_lists_once
    make_run_folder
    for candidate in "${MAJORS[@]}"; do
        printf '\n'
        step "PostgreSQL $candidate"
        logs+=("$run_folder/tests-$candidate.log")
        if [[ $(origin_of "$candidate") == none ]]; then
            say "left out: $(why_none "$candidate"): $ADD_PGDG" | tee "${logs[-1]}"
        else
            test_major "$candidate" "${logs[-1]}" || status=1
        fi
    done
    printf '\n'
    print_matrix "${logs[@]}"
    return "$status"
}

# Sets up first, in the terminal's foreground, where sudo may ask for a password.
test_major() {
    local started=${EPOCHREALTIME/[.,]/}
    say "phase: setup" >"$2"
    ./dev setup "$1" && say "green: setup: $(seconds_since "$started")" >>"$2" && TESTS_LOG=$2 run ./dev test "$1"
}

# Phases down and majors across: the tests that passed, or RED with those that failed, and the seconds.
print_matrix() {
    awk '
        FNR == 1 { majors[++columns] = FILENAME; gsub(/.*-|[.]log$/, "", majors[columns]) }
        /^phase: / { phase = substr($0, 8); cell[phase, columns] = "RED"; passed = failed = ignored = 0
                     if (!(phase in seen)) { seen[phase]; phases[++rows] = phase } }
        /^test result: / { passed += $4; failed += $6; ignored += $8
                           cell[phase, columns] = "RED, " failed " of " passed + failed " failed" }
        /^green: / { cell[phase, columns] = (passed ? passed " tests" : "green") " in " $NF " s"
                     if (ignored) cell[phase, columns] = cell[phase, columns] ", " ignored " ignored" }
        /^left out: / { line = "PostgreSQL " majors[columns] ": " $0
                        if (!times[line]++) left_out[++lines] = line }
        END {
            printf "%-35s", ""
            for (c = 1; c <= columns; c++) printf "  %-22s", "PostgreSQL " majors[c]
            print ""
            for (r = 1; r <= rows; r++) {
                printf "%-35s", phases[r]
                for (c = 1; c <= columns; c++) printf "  %-22s", cell[phases[r], c]
                print ""
            }
            for (l = 1; l <= lines; l++) print left_out[l] " (" times[left_out[l]] ")"
        }' "$@"
}

# The newest major that this machine can get besides its own.
another_major() {
    local own candidate
    read_package_lists_once >&2
    own=$(installed_major)
    for candidate in "${MAJORS[@]}"; do
        [[ $candidate == "${own:-$(distribution_major)}" || $(origin_of "$candidate") == none ]] || {
            say "$candidate"
            return
        }
    done
    die "this machine can get no PostgreSQL besides its own: $ADD_PGDG"
}

# Has the campaign and the real-server tests try upgrades where there is something to upgrade to.
need_next_major() {
    local next
    next=$(next_major)
    [[ -n $next ]] || return 0
    step "building for PostgreSQL $next too, to upgrade to"
    run ./dev pg-config "$next" >"$run_folder/pg_config"
    PG_CONFIG_NEXT=$(<"$run_folder/pg_config")
    export PG_CONFIG_NEXT
}

# The lowest major above ours that is installed, in the system or privately, and of the same origin: minor releases of
# another day may not know what this one leaves in its catalog.
next_major() {
    local candidate
    for candidate in "${MAJORS[@]}"; do
        ((candidate > major)) || continue
        if has_server "$candidate"; then
            [[ $origin != distribution ]] || say "$candidate"
        elif [[ -f $PRIVATE/postgresql-$candidate/version && $origin != distribution ]]; then
            say "$candidate"
        fi
    done | tail -n 1
}
