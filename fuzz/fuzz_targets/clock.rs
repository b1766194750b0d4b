#![no_main]

use pg_snowflake_fuzz::properties::clock::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(input));
