//! Private PostgreSQL servers for the tests of pg_snowflake, and helpers to query them.
//!
//! The tests see the extension only through SQL, over real connections to real servers that can be killed, restarted and
//! copied. Nothing here is linked into the extension, and nothing of the extension is linked into this crate, except the
//! table of presets. The arithmetic of an ID is stated independently in [`id`], from the published formula, so that the
//! extension is never compared with itself.
//!
//! The servers come from the installation that `PG_CONFIG` names, with the extension installed. Linux only.
//!
//! A helper panics, and so fails its test, if a server, a program or a statement does not do what the helper needs. Helpers of the same
//! name do the same in a [`Database`] as on a [`Cluster`].
//!
//! | module | for |
//! | --- | --- |
//! | [`Database`] | a database on a server that tests share: for what stays in a database |
//! | [`Cluster`] | a private server: started, killed, restarted, copied, on another host |
//! | [`ask`] | what a query prints, its plan, the error of a statement |
//! | [`sequence`] | IDs, the state and the WAL of a sequence, one that the clock does not affect |
//! | [`id`] | the formula of an ID, repeats and order of many |
//! | [`wait`] | waiting for other sessions, and stopping them |
//! | [`crew`] | clients that work at the same time, until they are stopped |
//! | [`copied`] | the function that users copy elsewhere |
//! | [`clock`] | a server's clock that steps, and the sessions under it |
//! | [`process`] | CPU time and memory of the server's processes |
//! | [`memory`] | sessions that run out of memory |
//! | [`output`], [`record`] | what a program prints; figures that go into the documentation |
//! | [`installation`] | the installation under test, and tests that are left out |
//! | [`release`] | the versions: of the head, of the releases, and of the one that tests of an update make |
//! | [`regress`] | PostgreSQL's own test drivers |
//! | [`debugger`], [`valgrind`] | a server under gdb, under valgrind |
//! | [`leases`] | a registry of leases, and servers that generate by them |
//! | [`fleet`] | a router and its shards |
//! | [`citus`] | a Citus coordinator and its workers |
//!
//! The tests are in two binaries. `servers` states what holds at any speed: a busy machine makes it slower, never red.
//! `figures` measures time, rates and the processor, and needs the machine to itself.

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
