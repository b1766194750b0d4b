# shellcheck shell=bash disable=SC2034,SC2154 # ./dev sets what is not set here, and uses what is not used here
# Part of ./dev: what a machine has to have. Packages come from the distribution, as root; Rust's tools are built, and kept
# in a folder of the user's own.
set -euo pipefail

readonly CARGO_FUZZ_VERSION=0.13.2
readonly CARGO_DENY_VERSION=0.20.2
readonly META_VALIDATOR_VERSION=0.7.0

# ---------------------------------------------------------------------------------------------------------------
# The distribution's packages

distribution_major() { apt-cache depends postgresql 2>/dev/null | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p'; }

# The mirror that the system's own packages come from.
debian_mirror() {
    # shellcheck disable=SC2016 # apt fills it in
    apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Label: Debian' 'Created-By: Packages' 2>/dev/null |
        sed -n 1p
}

has_server() { [[ -x /usr/lib/postgresql/$1/bin/postgres && -x /usr/lib/postgresql/$1/bin/psql ]]; }

has_headers() { [[ -f /usr/include/postgresql/$1/server/postgres.h ]]; }

has_files() { compgen -G "$1" >/dev/null; }

# bindgen needs the library and clang's own headers.
has_libclang() {
    [[ -n ${LIBCLANG_PATH:-} ]] ||
        { has_files '/usr/lib/llvm-*/lib/libclang.so*' && has_files '/usr/lib/llvm-*/lib/clang/*/include/stddef.h'; }
}

# One line for each missing package: its name, a colon, what it is for.
missing_packages() {
    case $1 in
        package-test)
            # An ordinary user's PATH may lack this folder.
            [[ -x /usr/sbin/debootstrap ]] || say "debootstrap: makes the clean Debian"
            return
            ;;
        fuzz) have c++ || say "g++: compiles the fuzzer's engine" ;;
        audit) ;;
        *) missing_packages_of_servers "$1" ;;
    esac
    have cc || say "gcc: the linker that Rust calls"
    has_files '/usr/include/*/bits/types.h' || say "libc6-dev: the C library's headers"
}

missing_packages_of_servers() {
    "packages_for_$origin"
    has_libclang || say "libclang-dev: reads the server's headers for Rust"
    [[ $1 != valgrind ]] || have valgrind || say "valgrind: watches a server's memory"
    [[ $1 != bench ]] || have valgrind || say "valgrind: counts instructions"
    [[ $1 != tests ]] || have gdb || say "gdb: stops a process of a server between two steps"
    [[ $1 != tests ]] || has_files '/usr/lib/*/faketime/libfaketime.so.1' ||
        say "libfaketime: moves a server's clock in tests"
    [[ $1 != tests ]] || ! is_root || have sudo ||
        say "sudo: pgrx-tests runs its server through it, since a server refuses to run as root"
    [[ $1 != tests && $1 != lint ]] || have shellcheck || say "shellcheck: reads the shell scripts"
    [[ $1 != tests && $1 != lint ]] || have codespell || say "codespell: finds misspelt words"
    [[ $1 != tests ]] || have make || say "make: tries the Makefile"
    [[ $1 != package ]] || have dpkg-shlibdeps || say "dpkg-dev: finds what the package depends on"
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
    have apt-get || die "this is no Debian or Ubuntu: install what is missing yourself, PostgreSQL (${MAJORS[*]}) first"
    step "reading the distribution's package lists"
    as_root apt-get -q -o DPkg::Lock::Timeout=300 update </dev/null
    lists_updated=yes
}

# Run as root: installs packages, among them perhaps the server's. That one would create a cluster and start it as a
# system service; a passing setting keeps it from that.
install_packages() {
    local server=$1 packages=("${@:2}")
    local setting=/etc/postgresql-common/createcluster.d/pg_snowflake-dev.conf
    local install=(apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 --no-install-recommends install)
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # ask nothing, restart no service
    if [[ " ${packages[*]} " == *" $server "* ]]; then
        "${install[@]}" postgresql-common </dev/null
        # shellcheck disable=SC2064 # the value of today, since the trap outlives this function
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

need_cargo() {
    have cargo || die "no Rust toolchain: cargo is neither on PATH nor in ~/.cargo/bin. Install one with rustup."
}

need_rust_component() {
    cargo "$1" --version >/dev/null 2>&1 || {
        have rustup || die "cargo $1 is missing; install your toolchain's $2"
        step "adding $2 to the Rust toolchain"
        rustup component add "$2"
    }
}

# The version that Cargo.toml pins, the one place where it stands.
pgrx_version() { sed -n 's/^pgrx *=.*"=\([0-9.]*\)".*/\1/p' Cargo.toml; }

# Sets CARGO_PGRX, which pgrx-tests reads too.
need_cargo_pgrx() {
    # Without its default features, which are for downloading PostgreSQL's sources and would want OpenSSL's headers.
    need_tool CARGO_PGRX cargo-pgrx "$(pgrx_version)" --no-default-features
    export CARGO_PGRX
}

# Sets a variable to the path of a tool of that version: the user's own, else one that is built with the options that
# follow, and kept. Another version that a user has stays as it is.
need_tool() {
    local tool=$2 version=$3 folder=$CACHE/$2-$3 candidate
    for candidate in "$(command -v "$tool" || true)" "$folder/bin/$tool"; do
        printf -v "$1" %s "$candidate"
        ! is_tool_of_version "$candidate" "$tool" "$version" || return 0
    done
    install_cargo_tool "$tool" "$version" "$folder" "${@:4}"
}

# A subcommand of cargo is called by its name, also by cargo.
is_tool_of_version() {
    local call=("$1")
    [[ $2 != cargo-* ]] || call+=("${2#cargo-}")
    [[ -x $1 && $("${call[@]}" --version 2>/dev/null) =~ (^|/)"$2 $3"( |$) ]]
}

# Builds a tool of that name and version into a folder, with further options of `cargo install`.
install_cargo_tool() {
    local tool=$1 version=$2 folder=$3
    step "building $tool $version into $folder: some minutes, once"
    make_run_folder
    # Unoptimized, since that builds in a third of the time and a run is short.
    PATH=$folder/bin:$PATH CARGO_TARGET_DIR=$folder/build CARGO_PROFILE_DEV_DEBUG=false run cargo install "$tool" \
        --version "=$version" --locked --debug --root "$folder" "${@:4}"
    rm -rf "$folder/build"
}
