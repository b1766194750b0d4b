//! Core's identity column. An INSERT computes its ID as a `NextValueExpr`, which looks up no function and checks no
//! privilege on the sequence.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "core_identity",
    title: "core identity column",
    needs: None,
    library: "",
    setup: &[],
    id_type: "bigint",
    ids: Ids::Column("GENERATED ALWAYS AS IDENTITY"),
    may_repeat: false,
};
