//! pgEdge's extension, if its library is installed in the server. [`super::super::server`] sets the node that it needs.

use crate::bench::contender::{Contender, Ids, Need};

pub const CONTENDER: Contender = Contender {
    name: "pgedge",
    title: "pgEdge's `snowflake.nextval`",
    needs: Some(Need {
        query: "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'snowflake')",
        what: "its library was not found in this PostgreSQL",
    }),
    setup: &["CREATE EXTENSION snowflake", "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("snowflake.nextval({sequence})")),
    may_repeat: false,
};
