# shellcheck shell=bash
# Sourced by the scripts: a temporary folder, the current one, which is gone when the script ends.
set -euo pipefail
# shellcheck disable=SC2034 # read by scripts
findings=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=$(mktemp -d /tmp/finding.XXXXXX)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# expect WHAT FOUND EXPECTED: prints what was found, and fails if it is something else.
expect() {
    printf '%s: %s\n' "$1" "$2"
    [[ $2 == "$3" ]] || { printf 'EXPECTED: %s\n' "$3" >&2; exit 1; }
}

# unpack PACKAGE=VERSION...: these packages of Debian 12, and what they need and the system lacks, for this script alone.
unpack() {
    local all
    mapfile -t all < <(
        printf '%s\n' "$@"
        apt-get -s --no-install-recommends install "$@" | sed -n 's/^Inst \([^ ]*\) .*/\1/p' | grep -vxFf <(printf '%s\n' "${@%%=*}")
    )
    apt-get -q download "${all[@]}" >/dev/null 2>&1
    for package in ./*.deb; do dpkg -x "$package" .; done
    rm ./*.deb
    export PATH=$folder/usr/sbin:$folder/usr/bin:$PATH LD_LIBRARY_PATH=$folder/usr/lib/x86_64-linux-gnu
}
