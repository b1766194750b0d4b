//! pg_snowflake with `CACHE 64`: each session takes 64 counters at a time.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "ours_cache_64",
    title: "`snowflake_nextval`, `CACHE 64`",
    needs: None,
    library: "pg_snowflake",
    setup: &["CREATE EXTENSION pg_snowflake", "CREATE SEQUENCE ids CACHE 64"],
    id_type: "bigint",
    ids: Ids::One(|sequence, layout| format!("snowflake_nextval({sequence}, 5, '{layout}')")),
    may_repeat: false,
};
