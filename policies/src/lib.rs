//! What pg_snowflake decides, without a server and without unsafe code: arithmetic and policy, as functions of what the caller has read.
//!
//! | module | what it decides |
//! | --- | --- |
//! | [`counter`] | the next counter, from the last one and the clock |
//! | [`clock`] | whether the clock has stepped |
//! | [`fence`] | which shards and hosts the lists of the fences have |
//! | [`headroom`] | the distance of a counter from the clock and from the end of its layout |
//! | [`homed`], [`hashfn`] | which IDs hash to their shard; PostgreSQL's hashes of a `bigint` |
//! | [`lease`], [`registry`], [`holder`] | the spans of ID time that servers generate in, who gets which, and what a server holds |
//! | [`conninfo`] | in which order the hosts of the registry are tried |
//! | [`messages`] | the texts of all errors, and the list of them |
//! | [`shared_leases`] | what the sessions of a server read of its leases while they change |
//! | [`pacing`] | when a server renews its leases, and when it asks again after a failure |
//! | [`partitions`] | the ranges of IDs of a table that is partitioned by time |
//! | [`conversion`] | the statements that convert a column to generate IDs |
//!
//! Times are arguments: nothing here reads the wall clock, and only [`clock::Clock`] reads the monotonic clock. Names that end in `_us`
//! are in microseconds, names that end in `_ms` in milliseconds. Instants count from 1970-01-01 UTC.
//!
//! # Generate IDs
//!
//! [`counter::advance`] computes the next counter; the caller stores it. The caller must also hold a lock while it
//! advances the counter, and log the counter before it uses the ID. The extension does both with a sequence.
//!
//! ```
//! use pg_snowflake_policies::clock::Now;
//! use pg_snowflake_policies::counter::{self, Decision, Reading, Policy, Request, State};
//! use pg_snowflake_policies::lease::Ticks;
//! use pg_snowflake_ids::{Layout, layout::Packed};
//!
//! let reading_us = 1_800_000_000_000_000;
//! let layout = Layout::default();
//! let shard = 5;
//! let policy = Policy { max_lead_us: 100_000, max_wait_us: 1_000_000 };
//! let now = Now { reading_us, high_water_us: reading_us };
//! let reading = Reading::new(Packed::new(layout), policy, Ticks::ALL, now);
//! let request = Request { reading: &reading, shard, highest_fetched: None };
//! let mut state = State { last_value: 1, is_called: false };
//! let mut ids = Vec::new();
//! for _ in 0..3 {
//!     match counter::advance(state, i64::MAX, 1, request) {
//!         Decision::Issue(run) => {
//!             state = State { last_value: run.last, is_called: true };
//!             ids.push(layout.id(run.first, shard));
//!         }
//!         Decision::Wait { us } => std::thread::sleep(std::time::Duration::from_micros(us as u64)),
//!         Decision::Refuse(refusal) => panic!("{refusal:?}"),
//!     }
//! }
//! assert!(ids.is_sorted());
//! assert_eq!(layout.split(ids[2]).shard, 5);
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod clock;
pub mod conninfo;
pub mod conversion;
pub mod counter;
pub mod fence;
pub mod hashfn;
pub mod headroom;
pub mod holder;
pub mod homed;
pub mod lease;
pub mod messages;
pub mod pacing;
pub mod partitions;
#[cfg(any(test, feature = "properties"))]
pub mod properties;
pub mod registry;
pub mod shared_leases;
