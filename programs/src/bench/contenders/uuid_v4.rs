//! Core's random UUIDs.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "uuid_v4",
    title: "`gen_random_uuid()`",
    needs: None,
    library: "",
    setup: &[],
    id_type: "uuid",
    ids: Ids::One(|_, _| "gen_random_uuid()".to_owned()),
    may_repeat: false,
};
