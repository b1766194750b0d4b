#![no_main]

use pg_snowflake_ids::properties::layout_text::check;

libfuzzer_sys::fuzz_target!(|text: &str| check(text));
