#!/usr/bin/env bash
# Runs the generators of docs/generators.md, and compares the time, the shard and the counter of their IDs with the layouts in its table. Prints
# what was seen, and fails if it differs. `findings/generators.sh FILE` also writes some IDs of each generator into FILE:
# pg_test/data/generators.csv, which the tests decode. Needs npm, python3, Cargo.
[[ $# == 0 ]] || file=$(realpath "$1")
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
npm install --silent --no-audit --no-fund @sapphire/snowflake@3.5.5 nodejs-snowflake@2.0.1 flake-idgen@1.4.0 snowflake-id@1.1.0 \
    @akashrajpurohit/snowflake-id@2.0.0 @nocobase/snowflake-id@2.2.15 tsid-ts@0.0.9 simple-flakeid@0.0.5 sonyflake@1.1.2 \
    snowflake-generator@1.0.2 simpleflakes@2.2.2 snowflake-uuid@1.0.0 snowfall@2.1.0 @theinternetfolks/snowflake@1.3.0 \
    node-snowflake@0.0.1 >/dev/null
install_python() { python3 -m pip install -q --disable-pip-version-check --target "$@" 2>pip.log || { cat pip.log >&2; exit 1; }; }
install_python python tsidpy==1.1.5 sonyflake==2.0.3 sonyflake-turbo==1.0.1 snowflake-id-toolkit==0.6.0 snowflake-id==1.0.2 \
    simpleflake==0.1.5 ulid-flake==0.1.3 python-fity3==0.7 flakeid==0.1.1 hipopayflake==1.1.8
# It has a module of the same name as sonyflake.
install_python python-sonyflake-py sonyflake-py==1.3.0
cargo init -q --name generators
cargo add -q ferroid@=2.0.0 --features std,alloc,snowflake,basic
cargo add -q idgenerator@=2.0.0 snowflaked@=1.0.4 sonyflake@=0.5.1 tsid@=0.3.4
cargo add -q rs-snowflake@=0.6.0 --rename rs_snowflake
cargo add -q snowflake-rs-impl@=1.0.1 --rename snowflake_rs_impl
cp "$findings/generators/run.rs" src/main.rs
cargo build -q

page=$findings/../docs/generators.md
{
    node "$findings/generators/run.cjs"
    PYTHONPATH=python python3 "$findings/generators/run.py"
    PYTHONPATH=python-sonyflake-py python3 "$findings/generators/run.py" sonyflake-py
    target/debug/generators
} >ids.tsv
python3 "$findings/generators/check.py" "$page" "$folder/generators.csv" <ids.tsv
if (($#)); then cp generators.csv "$file"; fi
