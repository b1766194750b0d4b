//! Core's `nextval`, as `bigserial` uses it.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "core_cache_1",
    title: "core `nextval`, `CACHE 1`",
    needs: None,
    library: "",
    setup: &["CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("nextval({sequence})")),
    may_repeat: false,
};
