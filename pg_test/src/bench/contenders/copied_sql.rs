//! The same formula as a plain SQL function: faster, and its ids repeat.

use crate::bench::contender::{Contender, Ids};
use crate::copied;

pub const CONTENDER: Contender = Contender {
    name: "copied_sql",
    title: "its formula in plain SQL",
    color: (255, 127, 14),
    needs: None,
    setup: &[copied::EXPRESSION, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: true,
};
