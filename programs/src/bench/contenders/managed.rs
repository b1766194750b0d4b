//! The SQL edition: pg_snowflake's policy in SQL and PL/pgSQL, for servers where no extension can be installed.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "managed",
    title: "the SQL edition",
    needs: None,
    library: "plpgsql",
    setup: &[FILE, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    // In its only layout, whose rate it does not reach: no call waits for the clock.
    ids: Ids::One(|sequence, _| format!("snowflake_managed.snowflake_nextval({sequence}, 5)")),
    may_repeat: false,
};

pub(super) const FILE: &str = include_str!("../../../../sql/managed/pg_snowflake_managed.sql");
