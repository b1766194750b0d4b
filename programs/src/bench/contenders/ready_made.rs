//! IDs and UUIDs that stand ready in a table. An INSERT of them generates none, so it shows what only their size costs.

use crate::bench::contender::{Contender, Ids};
use crate::bench::contenders::{ours_cache_1, uuid_v7};

/// IDs of pg_snowflake.
pub const IDS: Contender = Contender {
    name: "ready_ids",
    title: "`snowflake_nextval`, ready-made",
    ids: Ids::Ready(ours_cache_1::id),
    ..ours_cache_1::CONTENDER
};

/// Core's time-ordered UUIDs.
pub const UUIDS: Contender = Contender {
    name: "ready_uuids",
    title: "`uuidv7()`, ready-made",
    ids: Ids::Ready(uuid_v7::id),
    ..uuid_v7::CONTENDER
};
