#!/bin/bash
# Tests the packages in /packages on a clean Debian with apt: each is installed, used in a database, and removed.
# ./dev package-test runs it in one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
major=$1
package=postgresql-$major-pg-snowflake
bin=/usr/lib/postgresql/$major/bin
server=/var/tmp/pg_snowflake-smoke

die() { printf 'smoke: %s\n' "$*" >&2 && exit 1; }

# Shows the output of apt and of the packages' scripts if they fail.
quietly() { "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }

as_postgres() { setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; }

main() {
    export DEBIAN_FRONTEND=noninteractive
    # The data directory is created below; the system's own cluster is not needed.
    mkdir -p /etc/postgresql-common/createcluster.d
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/smoke.conf
    apt-get -qq update
    echo "--> the Debian package"
    quietly apt-get -qq -y --no-install-recommends install ./*.deb
    expect_files
    start_server
    try_extension
    quietly apt-get -qq -y purge "$package"
    left=$(find / -xdev -name '*pg[-_]snowflake*' -not -path '/packages/*' -not -path "$server*")
    [[ -z $left ]] || die "the package leaves behind: $left"
    echo "--> the tarball"
    tar -x -f ./*.tar.gz
    # An empty path must not mean the top of DESTDIR.
    ! DESTDIR=/tmp/destination PG_CONFIG=/nowhere/pg_config sh ./pg_snowflake-*/install.sh >/dev/null 2>&1 ||
        die "install.sh reports success without a pg_config"
    # pg_config comes with the development files, which users may lack. install.sh only asks it for these two folders.
    # shellcheck disable=SC2016 # the script fills it in
    printf '#!/bin/sh\ncase $1 in --pkglibdir) echo %s ;; --sharedir) echo %s ;; esac\n' \
        "/usr/lib/postgresql/$major/lib" "/usr/share/postgresql/$major" >/tmp/pg_config
    chmod +x /tmp/pg_config
    (cd /tmp && PG_CONFIG=./pg_config sh "$OLDPWD"/pg_snowflake-*/install.sh)
    try_extension
}

# Checks each file, and that it is as packed; dpkg prints what is not, but its exit status does not show it. A slim
# image leaves out documents other than the licence: for those, dpkg is asked whether the package has them.
expect_files() {
    local file listed altered version documents=/usr/share/doc/$package
    local libraries=/usr/lib/postgresql/$major/lib extensions=/usr/share/postgresql/$major/extension
    version=$(sed -n "s/^default_version = '\(.*\)'$/\1/p" "$extensions/pg_snowflake.control")
    for file in "$libraries/pg_snowflake.so" "$extensions/pg_snowflake.control" \
        "$extensions/pg_snowflake--$version.sql" "$extensions/pg_snowflake_registry.control" \
        "$extensions/pg_snowflake_registry--$version.sql" "$documents/copyright"; do
        [[ -s $file ]] || die "the package has not put $file there"
        echo "    $file"
    done
    listed=$'\n'$(dpkg --listfiles "$package")$'\n'
    for file in README.md changelog.gz changelog.Debian.gz; do
        [[ $listed == *$'\n'"$documents/$file"$'\n'* ]] || die "the package does not have $documents/$file"
    done
    altered=$(dpkg --verify "$package" | sed '\: /usr/share/doc/:d')
    [[ -z $altered ]] || die "dpkg --verify finds: $altered"
}

start_server() {
    install -d -o postgres -g postgres "$server"
    trap 'as_postgres "$bin/pg_ctl" stop --silent --mode=immediate --pgdata="$server/data" || true' EXIT
    as_postgres "$bin/initdb" --pgdata="$server/data" --auth=trust --no-sync >/dev/null
    as_postgres "$bin/pg_ctl" start --wait --silent --pgdata="$server/data" --log="$server/log" \
        --options="-c listen_addresses='' -c unix_socket_directories='$server'" >/dev/null
}

try_extension() { as_postgres "$bin/psql" -X -q -v ON_ERROR_STOP=1 -h "$server" -d postgres -f smoke.sql; }

main
