//! The function that pg_snowflake replaces, as Instagram published it.

use crate::bench::contender::{Contender, Ids};
use pg_snowflake_harness::copied::PLPGSQL;

/// The function that users copy.
pub const CONTENDER: Contender = Contender {
    name: "copied_plpgsql",
    title: "the PL/pgSQL original",
    needs: None,
    library: "plpgsql",
    setup: &[PLPGSQL, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: false,
};
