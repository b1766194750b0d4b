//! The modules of pg_snowflake that need no server, taken from its sources, and what holds for them whatever they
//! are given. `./dev fuzz` looks for inputs for which it does not.
//!
//! The modules' own unit tests run here too, with no server and nothing but Rust, also under Miri where a nightly
//! toolchain has it:
//!
//! ```sh
//! cargo test --manifest-path pg_test/fuzz/Cargo.toml
//! MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test --manifest-path pg_test/fuzz/Cargo.toml
//! ```

#![forbid(unsafe_code)]

#[path = "../../../src/base32.rs"]
pub mod base32;
#[path = "../../../src/clock.rs"]
pub mod clock;
#[path = "../../../src/counter.rs"]
pub mod counter;
#[path = "../../../src/excerpt.rs"]
pub mod excerpt;
#[path = "../../../src/explain.rs"]
pub mod explain;
#[path = "../../../src/layout.rs"]
pub mod layout;
#[path = "../../../src/layout_spec.rs"]
pub mod layout_spec;
#[path = "../../../src/uuid.rs"]
pub mod uuid;

mod any;
pub mod properties;
