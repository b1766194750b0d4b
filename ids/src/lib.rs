//! Read, write and print the Snowflake IDs of the PostgreSQL extension pg_snowflake, without a server.
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
//! | [`find`] | finds the layout of IDs whose times are known |
//! | [`likely`] | judges which preset an ID probably has |
//! | [`held`] | judges whether the number in a sequence is a counter |
//! | [`hashing`] | counts the values that PostgreSQL folds the IDs of a layout onto before it hashes them |
//! | [`instant`] | prints the time of a tick |
//! | [`excerpt`] | truncates a text for a message |
//!
//! Times are arguments: nothing here reads a clock. Names that end in `_us` are in microseconds, names that end in `_ms` in
//! milliseconds. Instants count from 1970-01-01 UTC.
//!
//! # Decode an ID
//!
//! ```
//! use pg_snowflake_ids::{Fields, Layout, instant};
//!
//! let layout = Layout::preset("instagram").expect("a preset");
//! let id = 11_637_205_501_278_089;
//!
//! assert!(layout.is_id(id)); // false for a number with bits above the layout's
//! let Fields { tick, shard, seq } = layout.split(id);
//! assert_eq!((shard, seq), (1341, 905));
//! assert_eq!(layout.instant_of(tick), 1_315_607_284_721_000);
//! assert_eq!(instant::text(&layout, tick), "2011-09-09T22:28:04.721Z");
//! ```
//!
//! # Parse a layout
//!
//! ```
//! use pg_snowflake_ids::layout_spec;
//!
//! let now_ms = 1_800_000_000_000; // an epoch must not be after the clock
//! let layout = layout_spec::parse("time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms", now_ms)?;
//!
//! assert_eq!(layout.shards(), 256);
//! assert_eq!(layout.min_id(1_704_067_201_000_000), 1000 << 22); // the lowest ID of 2024-01-01 00:00:01
//! assert_eq!(layout.to_string(), "time:41 shard:8 seq:14 epoch:2024-01-01 unit:1ms");
//! # Ok::<(), layout_spec::SpecError>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(any(test, feature = "proptest"))]
pub mod any;
pub mod base32;
pub mod excerpt;
pub mod explain;
pub mod find;
pub mod generators;
pub mod hashing;
pub mod held;
pub mod instant;
pub mod layout;
pub mod layout_spec;
pub mod likely;
pub mod presets;
#[cfg(any(test, feature = "properties"))]
pub mod properties;
pub mod uuid;

pub use layout::{Fields, Layout, OutOfRange, ShardPlace, Unit};
pub use presets::PRESETS;

/// The examples of README.md, run as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
