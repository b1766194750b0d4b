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
