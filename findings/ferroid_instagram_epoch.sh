#!/usr/bin/env bash
# INSTAGRAM_EPOCH of the crate ferroid 2.0.0 is 2011-01-01. Instagram published the epoch 2011-08-24T21:07:01.721Z with its function. So the
# times that ferroid reads from IDs of this function are 236 days early. Expected: 1314220021721.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
cargo init -q --name epoch
cargo add -q ferroid@=2.0.0 --features std,alloc,snowflake,basic
cat >src/main.rs <<'RS'
fn main() {
    println!("{}", ferroid::time::INSTAGRAM_EPOCH.as_millis());
}
RS
expect "INSTAGRAM_EPOCH in ms" "$(cargo run -q)" "1293840000000"
