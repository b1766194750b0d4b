//! pg_snowflake, many IDs in one call.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "ours_batch",
    title: "`snowflake_nextvals`",
    needs: None,
    library: "pg_snowflake",
    setup: &["CREATE EXTENSION pg_snowflake", "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::Many(|sequence, count, layout| {
        format!("snowflake_nextvals({sequence}, 5, {count}, '{layout}')")
    }),
    may_repeat: false,
};
