//! Decode, encode and generate the Snowflake IDs of the PostgreSQL extension pg_snowflake, without a server.
//!
//! An ID is a 64-bit integer with three fields, `time | shard | seq`. A [`Layout`] defines the width of each
//! field, the length of a tick, and the epoch. Without the shard field, an ID is an integer that only increases:
//! the *counter* `tick << seq_bits | seq`, which a PostgreSQL sequence stores as its `last_value`.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`layout`] | splits an ID into its fields; composes it from fields, a counter or a time |
//! | [`presets`] | the named layouts |
//! | [`layout_spec`] | parses and prints a layout |
//! | [`base32`], [`uuid`], [`explain`] | convert an ID to 13 characters, to a version 7 UUID, to a drawing of its bits |
//! | [`counter`] | computes the next counter from the last one and the clock |
//! | [`clock`] | detects clock steps |
//! | [`lease`], [`registry`] | the spans of ID time that servers generate in, and who gets which |
//! | [`pacing`] | when a server renews its leases, and when it asks again after a failure |
//! | [`likely`] | judges which preset an ID probably has |
//! | [`headroom`] | the distance of a counter from the clock and from the end of its layout |
//! | [`hashing`] | counts the values that PostgreSQL folds the IDs of a layout onto before it hashes them |
//! | [`hashfn`] | computes PostgreSQL's hashes of a `bigint` |
//! | [`homed`] | finds IDs whose hash leads to their shard |
//! | [`partitions`] | the ranges of IDs of a table that is partitioned by time |
//! | [`excerpt`] | truncates a text for a message |
//!
//! Times are arguments: nothing here reads the wall clock, and only [`clock::Clock`] reads the monotonic clock.
//! Names that end in `_us` are in microseconds, names that end in `_ms` in milliseconds. Instants count from
//! 1970-01-01 UTC.
//!
//! # Decode an ID
//!
//! ```
//! use pg_snowflake_core::{Fields, Layout, explain};
//!
//! let layout = Layout::preset("instagram").expect("a preset");
//! let id = 11_637_205_501_278_089;
//!
//! assert!(layout.is_id(id)); // false for a number with bits above the layout's
//! let Fields { tick, shard, seq } = layout.split(id);
//! assert_eq!((shard, seq), (1341, 905));
//! assert_eq!(layout.instant_of(tick), 1_315_607_284_721_000);
//! assert_eq!(explain::instant(&layout, tick), "2011-09-09T22:28:04.721Z");
//! ```
//!
//! # Parse a layout
//!
//! ```
//! use pg_snowflake_core::layout_spec;
//!
//! let now_ms = 1_800_000_000_000; // an epoch must not be after the clock
//! let layout = layout_spec::parse("time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms", now_ms)?;
//!
//! assert_eq!(layout.shards(), 256);
//! assert_eq!(layout.min_id(1_704_067_201_000_000), 1000 << 22); // the lowest ID of 2024-01-01 00:00:01
//! assert_eq!(layout.to_string(), "time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms");
//! # Ok::<(), layout_spec::SpecError>(())
//! ```
//!
//! # Generate IDs
//!
//! [`counter::advance`] computes the next counter; the caller stores it. The caller must also hold a lock while it
//! advances the counter, and log the counter before it uses the ID. The extension does both with a sequence.
//!
//! ```
//! use pg_snowflake_core::clock::Now;
//! use pg_snowflake_core::counter::{self, Decision, Policy, Request, State};
//! use pg_snowflake_core::lease::Ticks;
//! use pg_snowflake_core::Layout;
//!
//! let reading_us = 1_800_000_000_000_000;
//! let layout = Layout::default();
//! let shard = 5;
//! let request = Request {
//!     layout,
//!     shard,
//!     policy: Policy { max_lead_us: 100_000, max_wait_us: 1_000_000 },
//!     now: Now { reading_us, high_water_us: reading_us },
//!     highest_fetched: None,
//!     ticks: Ticks::ALL,
//! };
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

pub mod base32;
pub mod clock;
pub mod counter;
pub mod excerpt;
pub mod explain;
pub mod hashfn;
pub mod hashing;
pub mod headroom;
pub mod holder;
pub mod homed;
pub mod layout;
pub mod layout_spec;
pub mod lease;
pub mod likely;
pub mod pacing;
pub mod partitions;
pub mod presets;
pub mod registry;
pub mod uuid;

pub use layout::{Fields, Layout, OutOfRange, ShardPlace, Unit};
pub use presets::PRESETS;

#[cfg(test)]
mod any;

/// The examples of README.md, run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
