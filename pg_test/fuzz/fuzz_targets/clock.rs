#![no_main]

use pg_snowflake_policies::properties::clock::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input| check(input));
