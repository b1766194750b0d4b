#!/usr/bin/env bash
# The time in the IDs of the crate rs-snowflake 0.6.0 stands still: generate() reads the clock only after each 4,096 IDs. Two IDs that are
# generated 2 s apart differ by 1. Expected: by at least 1,999 ms, as those of real_time_generate() do.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
cargo init -q --name generate
cargo add -q rs-snowflake@=0.6.0 --rename snowflake
cat >src/main.rs <<'RS'
fn main() {
    let mut generator = snowflake::SnowflakeIdGenerator::new(1, 1);
    let first = generator.generate();
    std::thread::sleep(std::time::Duration::from_secs(2));
    println!("{}", generator.generate() - first);
    let first = generator.real_time_generate();
    std::thread::sleep(std::time::Duration::from_secs(2));
    println!("{}", (generator.real_time_generate() >> 22) - (first >> 22) >= 1999);
}
RS
mapfile -t found < <(cargo run -q)
expect "difference after 2 s" "${found[0]}" "1"
expect "real_time_generate() has the time" "${found[1]}" "true"
