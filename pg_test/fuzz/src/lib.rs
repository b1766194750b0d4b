//! What holds for `pg_snowflake_core` whatever it is given. `./dev fuzz` looks for inputs for which it does not.

#![forbid(unsafe_code)]

mod any;
pub mod properties;
