# shellcheck shell=bash disable=SC2153,SC2154 # ./dev sets what is not set here
# Part of ./dev: packages for users, and a clean system to try them on.
set -euo pipefail

readonly TRIED_BY_DOCKERFILE="packaging/Dockerfile tries the package of every major, in PostgreSQL's image"

package() {
    local stage library
    make_run_folder
    stage=$run_folder/stage
    step "building the package for $(server_version)"
    run build_without_paths --out-dir "$stage" >"$run_folder/package.log" 2>&1 ||
        die_with "$run_folder/package.log" "the library does not build"
    library=$stage$("$bin/pg_config" --pkglibdir)/pg_snowflake.so
    strip --strip-unneeded "$library"
    ! grep --quiet --fixed-strings -e "${CARGO_HOME:-$HOME/.cargo}/" -e "$PACKAGE_BUILD/" "$library" ||
        die "the library for the package names folders of this machine"
    mkdir -p "$PACKAGES"
    # Files are dated by the commit. What keeps two packages from being the same to the byte is the order of the
    # install SQL, which pgrx does not promise.
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
    export SOURCE_DATE_EPOCH
    make_debian_package "$stage"
    make_tarball "$stage"
    (cd "$PACKAGES" && sha256sum -- *.deb *.tar.gz >SHA256SUMS)
    step "in $PACKAGES:"
    printf '      %s\n' "$(debian_package)" "$(tarball_name).tar.gz" SHA256SUMS
}

# The messages of a panic name source files: of this machine's folders they say nothing. In a target folder of its own,
# since what is built with other flags is built anew.
build_without_paths() {
    # These take the place of pgrx's own flag, at which the linker keeps all that nothing calls, for the sake of the
    # sections that the install SQL is made from. GNU ld and lld keep those by their mark; a linker that does not leaves
    # nothing to make the SQL from, and pgrx refuses.
    local flags=("--remap-path-prefix=$PACKAGE_BUILD=target" "--remap-path-prefix=$PWD=pg_snowflake"
        "--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo")
    # Separated and quoted as cargo and its C compiler want it where a path may have a space.
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && say "${flags[*]}") CARGO_TARGET_DIR=$PACKAGE_BUILD \
        CC_SHELL_ESCAPED_FLAGS=1 CFLAGS="'-ffile-prefix-map=$PACKAGE_BUILD=target'" \
        "$CARGO_PGRX" pgrx package --pg-config "$bin/pg_config" "$@"
}

# Named as the PostgreSQL project's apt repository names extensions.
package_name() { say "postgresql-$major-pg-snowflake"; }

architecture() { dpkg --print-architecture; }

# A tilde sorts before everything, as a pre-release should.
debian_version() { say "$(crate_version | tr - '~')-1"; }

debian_package() { say "$(package_name)_$(debian_version)_$(architecture).deb"; }

tarball_name() { say "pg_snowflake-$(crate_version)-pg$major-linux-$(architecture)"; }

make_debian_package() {
    local root=$run_folder/debian
    local documents
    documents=$root/usr/share/doc/$(package_name)
    install -D --mode=644 -t "$root/usr/lib/postgresql/$major/lib" "$1$("$bin/pg_config" --pkglibdir)/pg_snowflake.so"
    install -D --mode=644 -t "$root/usr/share/postgresql/$major/extension" \
        "$1$("$bin/pg_config" --sharedir)"/extension/*
    install -D --mode=644 -t "$documents" README.md
    install_docs "$documents" # where README.md links to them
    install --mode=644 LICENSE "$documents/copyright"
    ln -s copyright "$documents/LICENSE" # as README.md calls it
    gzip -9 --no-name <CHANGELOG.md >"$documents/changelog.gz"
    debian_changelog | gzip -9 --no-name >"$documents/changelog.Debian.gz"
    mkdir "$root/DEBIAN"
    debian_control "$root" >"$root/DEBIAN/control"
    (cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
    dpkg-deb --root-owner-group -Zxz --build "$root" "$PACKAGES/$(debian_package)" >/dev/null
}

install_docs() {
    install -D --mode=644 -t "$1/docs" docs/*.md
    install -D --mode=644 -t "$1/docs/benchmarks" docs/benchmarks/*
}

# Of the packaging, which has nothing to tell besides the version: what has changed is in the other one.
debian_changelog() {
    cat <<-CHANGELOG
		pg-snowflake ($(debian_version)) unstable; urgency=medium

		  * pg_snowflake $(crate_version), see changelog.gz.

		 -- the pg_snowflake authors <>  $(LC_ALL=C date --utc --rfc-email --date="@$SOURCE_DATE_EPOCH")
	CHANGELOG
}

# The lines of a description are shorter than 80 characters, at which lintian looks.
debian_control() {
    local libraries
    # Not within the text, where its failure would end nothing.
    libraries=$(shared_library_dependencies "$1/usr/lib/postgresql/$major/lib/pg_snowflake.so")
    cat <<-CONTROL
		Package: $(package_name)
		Source: pg-snowflake
		Version: $(debian_version)
		Architecture: $(architecture)
		Section: database
		Priority: optional
		Maintainer: the pg_snowflake authors
		Installed-Size: $(du --summarize --apparent-size --block-size=1K "$1/usr" | cut -f1)
		Depends: postgresql-$major, $libraries
		Description: 64-bit ids of time, shard and counter from a PostgreSQL sequence
		 An extension of PostgreSQL $major for sharded databases. The sequence is a
		 hybrid logical clock: ids sort by time, say which shard their row lives on,
		 and none that was committed repeats, whatever the clock, a crash or a
		 failover does.
	CONTROL
}

# In a folder of its own: dpkg-shlibdeps wants to stand beside a source package's debian/control.
shared_library_dependencies() (
    mkdir -p "$run_folder/shlibdeps/debian"
    cd "$run_folder/shlibdeps"
    printf 'Source: pg-snowflake\n\nPackage: %s\nArchitecture: any\n' "$(package_name)" >debian/control
    # It warns of the server's functions, which are in no library.
    dpkg-shlibdeps -O "$1" 2>warnings | sed 's/^shlibs:Depends=//' ||
        die_with warnings "dpkg-shlibdeps does not tell what the library depends on"
)

# For systems without Debian's packages: the files, and a script that puts them where a pg_config says.
make_tarball() {
    local folder
    folder=$run_folder/$(tarball_name)
    install -D --mode=755 -t "$folder/lib" "$1$("$bin/pg_config" --pkglibdir)/pg_snowflake.so"
    install -D --mode=644 -t "$folder/extension" "$1$("$bin/pg_config" --sharedir)"/extension/*
    install -D --mode=644 -t "$folder" README.md CHANGELOG.md LICENSE
    install_docs "$folder"
    install --mode=755 packaging/install.sh "$folder"
    tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$run_folder" "$(tarball_name)" | gzip -9 --no-name >"$PACKAGES/$(tarball_name).tar.gz"
}

find_package() {
    [[ -f $PACKAGES/$(debian_package) ]] || die "no $PACKAGES/$(debian_package): ./dev package $major makes it"
    (cd "$PACKAGES" && sha256sum --check --quiet --ignore-missing SHA256SUMS)
}

try_package() {
    if [[ -n $(suite_with_server) ]]; then try_in_suite; else try_tarball; fi
}

# The release of Debian that has this major version of the server by itself. None has 16.
suite_with_server() {
    case $major in
        15) say bookworm ;;
        17) say trixie ;;
        18) say forky ;;
    esac
}

# Twice: the Debian package by apt, then the tarball in its place.
try_in_suite() {
    local suite mirror clean
    suite=$(suite_with_server)
    is_root || have sudo || die "a clean Debian is made as root, and there is no sudo: run this as root"
    install_missing_packages package-test
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || die "no Debian mirror is among apt's sources, from which a clean Debian could be made:" \
        "$TRIED_BY_DOCKERFILE"
    make_run_folder
    clean=$run_folder/clean
    # It is the server user's, and there apt's user has to read.
    chmod 755 "$run_folder"
    mkdir "$run_folder/packages"
    cp "$PACKAGES/$(debian_package)" "$PACKAGES/$(tarball_name).tar.gz" packaging/smoke.{sh,sql} "$run_folder/packages"
    step "trying the package and the tarball in a clean Debian $suite"
    function_as_root try_in_clean_debian "$clean" "$run_folder/packages" "$major" "$suite" "$mirror" "$KEYRING"
    step "the package and the tarball work in a clean Debian $suite"
}

# On a server that is no package of Debian's, which is whom the tarball is for: a copy of the private one, without what
# ./dev build put there. The Debian package cannot be installed where apt has no server for it to depend on.
try_tarball() {
    local installation tarball bin=$bin
    setup
    make_run_folder
    installation=$run_folder/installation
    tarball=$run_folder/tarball/$(tarball_name)
    cp -a "$PRIVATE/postgresql-$major" "$installation"
    bin=${bin/#"$PRIVATE/postgresql-$major"/$installation}
    rm -f "$("$bin/pg_config" --pkglibdir)/pg_snowflake.so" "$("$bin/pg_config" --sharedir)"/extension/pg_snowflake*
    step "trying the tarball on $(server_version), from the $origin"
    mkdir "$run_folder/tarball"
    tar -x -f "$PACKAGES/$(tarball_name).tar.gz" -C "$run_folder/tarball"
    PG_CONFIG=$bin/pg_config sh "$tarball/install.sh"
    run start_server smoke
    sql smoke -f packaging/smoke.sql
    expect_same_files "$tarball"
    step "the tarball works on $(server_version). The Debian package, which was not installed, has the same files:" \
        "no release of Debian has PostgreSQL $major, and $TRIED_BY_DOCKERFILE"
}

# As that folder, the unpacked tarball.
expect_same_files() {
    local root=$run_folder/unpacked
    dpkg-deb --extract "$PACKAGES/$(debian_package)" "$root"
    diff --recursive "$root/usr/lib/postgresql/$major/lib" "$1/lib"
    diff --recursive "$root/usr/share/postgresql/$major/extension" "$1/extension"
}

# Run as root: no more than apt needs, from the mirror that apt uses here, and gone afterwards.
try_in_clean_debian() {
    local clean=$1 packages=$2 major=$3 suite=$4 mirror=$5 keyring=$6 path=/usr/sbin:/usr/bin:/sbin:/bin
    # shellcheck disable=SC2064 # the value of today, since the trap outlives this function
    trap "rm -rf --one-file-system '$clean'" EXIT
    # By the script of all suites, as debootstrap may be older than this one.
    PATH=$path debootstrap --variant=minbase --keyring="$keyring" "$suite" "$clean" "$mirror" \
        /usr/share/debootstrap/scripts/sid >"$clean.log" 2>&1 || {
        tail -n 50 "$clean.log" >&2
        exit 1
    }
    # debootstrap asks for no date either: a mirror that has stood still is good enough here.
    echo 'Acquire::Check-Valid-Until "false";' >"$clean/etc/apt/apt.conf.d/any-date"
    cp -r "$packages" "$clean/packages"
    # With nothing of this environment, whose TMPDIR is not there, and with /proc, without which forky's
    # postgresql-common is not installed. That is mounted for this command alone, and goes with it.
    # shellcheck disable=SC2016 # the inner shell fills it in
    env -i PATH="$path" HOME=/root unshare --mount bash -c \
        'mount -t proc proc "$1/proc" && exec chroot "$1" /packages/smoke.sh "$2"' proc "$clean" "$major"
}
