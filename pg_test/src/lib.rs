//! Private PostgreSQL servers for the tests of pg_snowflake, and what the tests ask of them.
//!
//! The tests see the extension only through SQL, over real connections to real servers that can be killed,
//! restarted and copied. Nothing here is linked into the extension, and nothing of the extension is linked
//! in here: the arithmetic of an id is stated a second time in [`id`], from the published formula, so that
//! the extension is never compared with itself.
//!
//! The servers come from the installation that `PG_CONFIG` names, with the extension installed. Linux only.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod ahead;
pub mod bench;
pub mod campaign;
pub mod client;
pub mod clock;
mod cluster;
pub mod copied;
pub mod debugger;
pub mod fleet;
pub mod host_name;
pub mod id;
pub mod installation;
pub mod left_out;
pub mod memory;
pub mod process;
pub mod record;
pub mod refusal;
pub mod regress;
pub mod release;
pub mod sequence;
pub mod wait;
pub mod wal;

pub use cluster::{Builder, Cluster, SUPERUSER, Shutdown};
