#![no_main]

use pg_snowflake_ids::properties::uuid::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(input));
