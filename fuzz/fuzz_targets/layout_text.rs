#![no_main]

use pg_snowflake_fuzz::properties::layout_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
