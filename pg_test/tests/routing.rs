//! Routing: the shard in an ID determines the partition of its row, and the server.

mod locate;
mod relocation;
mod router;
