#![no_main]

use pg_snowflake_policies::properties::homed::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(input));
