//! The distributed tables of Citus: where the rows of a table are, and the SQL functions for its columns.

mod danger;
mod ranges;
mod table;

pub use table::{Distribution, Node, Table, is_managed_now, is_shard};
