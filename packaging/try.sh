# shellcheck shell=bash disable=SC2153,SC2154 # ./dev sets what is not set here
# Part of ./dev: tests the packages of `./dev package` on a clean system.
set -euo pipefail

# The release of Debian that has this major version of the server. None has 16 or 19.
suite_with_server() {
    case $major in
        15) say bookworm ;;
        17) say trixie ;;
        18) say forky ;;
    esac
}

# Tests the Debian package by apt, then the tarball in its place.
try_in_suite() {
    local suite mirror packages=$run_folder/packages
    suite=$(suite_with_server)
    mirror=$(debian_mirror)
    [[ -n $mirror ]] || die "apt's sources have no Debian mirror to make a clean Debian from:" \
        "packaging/Dockerfile tests the package of every major, in PostgreSQL's image"
    run_program package-files "$packages"
    # It belongs to the server user, and apt's user must be able to read it.
    chmod 755 "$run_folder"
    step "testing the package and the tarball in a clean Debian $suite"
    function_as_root try_in_clean_debian "$run_folder/clean" "$packages" "$major" "$suite" "$mirror" "$KEYRING"
    step "the package and the tarball work in a clean Debian $suite"
}

# Run as root: a minimal Debian with apt, from the mirror that apt uses here. Removed afterwards.
try_in_clean_debian() {
    local clean=$1 packages=$2 major=$3 suite=$4 mirror=$5 keyring=$6 path=/usr/sbin:/usr/bin:/sbin:/bin
    # shellcheck disable=SC2064 # the current value, since the trap outlives this function
    trap "rm -rf --one-file-system '$clean'" EXIT
    # With the script for all suites, as debootstrap may be older than this suite.
    PATH=$path debootstrap --variant=minbase --keyring="$keyring" "$suite" "$clean" "$mirror" \
        /usr/share/debootstrap/scripts/sid >"$clean.log" 2>&1 || {
        tail -n 50 "$clean.log" >&2
        exit 1
    }
    # debootstrap does not check the date either: an outdated mirror is good enough here.
    echo 'Acquire::Check-Valid-Until "false";' >"$clean/etc/apt/apt.conf.d/any-date"
    cp -r "$packages" "$clean/packages"
    # Without this environment, whose TMPDIR does not exist there, and with /proc, which forky's postgresql-common needs
    # to install. /proc is mounted only for this command, and unmounted at its end.
    # shellcheck disable=SC2016 # the inner shell fills it in
    env -i PATH="$path" HOME=/root unshare --mount bash -c \
        'mount -t proc proc "$1/proc" && exec chroot "$1" /packages/smoke.sh "$2"' proc "$clean" "$major"
}
