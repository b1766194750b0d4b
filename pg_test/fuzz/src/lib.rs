//! Properties that hold for `pg_snowflake_core` on any input. `./dev fuzz` searches for inputs that violate them.

#![forbid(unsafe_code)]

mod any;
pub mod properties;
