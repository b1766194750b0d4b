//! The same formula as a plain SQL function: faster, and its IDs repeat.

use crate::bench::contender::{Contender, Ids};
use pg_snowflake_harness::copied::SQL;

/// The formula of the function that users copy, without its PL/pgSQL.
pub const CONTENDER: Contender = Contender {
    name: "copied_sql",
    title: "its formula in plain SQL",
    needs: None,
    library: "",
    setup: &[SQL, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: true,
};
