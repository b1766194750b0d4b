//! The function that pg_snowflake replaces, as Instagram published it.

use crate::bench::contender::{Contender, Ids};
use crate::copied;

pub const CONTENDER: Contender = Contender {
    name: "copied_plpgsql",
    title: "the PL/pgSQL original",
    color: (214, 39, 40),
    needs: None,
    setup: &[copied::FUNCTION, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: false,
};
