//! Private PostgreSQL servers for the tests of pg_snowflake, and helpers to query them.
//!
//! The tests see the extension only through SQL, over real connections to real servers that can be killed, restarted and copied. Nothing
//! here is linked into the extension, and nothing of the extension is linked into this crate, except the table of presets. The arithmetic
//! of an ID is stated independently in [`id`], from the published formula, so that the extension is never compared with itself.
//!
//! The servers come from the installation that `PG_CONFIG` names, with the extension installed. Linux only.
//!
//! A helper panics, and so fails its test, if a server, a program or a statement does not do what the helper needs. Helpers of the same
//! name do the same in a [`Database`] as on a [`Cluster`].
//!
//! Of the binaries of tests, `servers` states what holds at any speed: a busy machine makes it slower, never red. `delays`, of the bench,
//! measures rates and delays, and needs the machine to itself.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod ask;
pub mod citus;
pub mod clock;
mod cluster;
pub mod copied;
pub mod crew;
mod database;
pub mod debugger;
pub mod fleet;
pub mod id;
pub mod installation;
pub mod leases;
pub mod memory;
pub mod output;
pub mod prelude;
pub mod process;
pub mod record;
pub mod regress;
pub mod release;
pub mod sequence;
pub mod valgrind;
pub mod wait;

pub use cluster::{Builder, Cluster, SUPERUSER, Shutdown, host_name};
pub use database::{Database, ROLES};

use std::path::Path;

/// The top of the source tree.
pub fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("this crate is a folder of the tree")
}

/// The anchor of a heading of the documentation, as GitHub generates it.
pub fn anchor_of(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|&c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
