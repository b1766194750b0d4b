//! Citus: this node's number, the distributed tables, and the SQL functions for their columns. The other modules ask here.

mod functions;
mod node;
mod table;

pub use node::{forget, group, is_installed, known_group, recipe, recipe_with_another_sequence};
pub use table::{Distribution, Node, Table, is_managed_now, is_shard};
