//! pgEdge's extension, which [`super::super::pgedge`] builds. [`super::super::server`] sets the node that it needs.

use crate::bench::contender::{Contender, Ids, Need};

pub const CONTENDER: Contender = Contender {
    name: "pgedge",
    title: "pgEdge's `snowflake.nextval`",
    needs: Some(Need {
        query: "SELECT default_version FROM pg_available_extensions WHERE name = 'snowflake'",
        if_missing: "pgEdge's `snowflake.nextval` is not included, because its extension is not installed.",
    }),
    library: "snowflake",
    setup: &["CREATE EXTENSION snowflake", "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("snowflake.nextval({sequence})")),
    may_repeat: false,
};
