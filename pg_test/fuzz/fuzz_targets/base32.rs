#![no_main]

use pg_snowflake_ids::properties::base32::{Input, check};

libfuzzer_sys::fuzz_target!(|input: Input<'_>| check(input));
