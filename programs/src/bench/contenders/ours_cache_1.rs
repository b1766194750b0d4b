//! pg_snowflake.

use crate::bench::contender::{Contender, Ids};

/// Single IDs, without a cache.
pub const CONTENDER: Contender = Contender {
    name: "ours_cache_1",
    title: "`snowflake_nextval`, `CACHE 1`",
    needs: None,
    library: "pg_snowflake",
    setup: &["CREATE EXTENSION pg_snowflake", "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(id),
    may_repeat: false,
};

pub(super) fn id(sequence: &str, layout: &str) -> String {
    format!("snowflake_nextval({sequence}, 5, '{layout}')")
}
