#![no_main]

use pg_snowflake_fuzz::properties::ids::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(input));
