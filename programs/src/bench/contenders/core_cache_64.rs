//! Core's `nextval` with `CACHE 64`: each session takes 64 values at a time.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "core_cache_64",
    title: "core `nextval`, `CACHE 64`",
    needs: None,
    library: "",
    setup: &["CREATE SEQUENCE ids CACHE 64"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("nextval({sequence})")),
    may_repeat: false,
};
