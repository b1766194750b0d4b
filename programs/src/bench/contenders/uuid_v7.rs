//! Core's time-ordered UUIDs.

use crate::bench::contender::{Contender, Ids, Need};

pub const CONTENDER: Contender = Contender {
    name: "uuid_v7",
    title: "`uuidv7()`",
    needs: Some(Need {
        query: "SELECT NULL::text FROM pg_proc WHERE oid = to_regprocedure('uuidv7()')",
        if_missing: "`uuidv7()` is not included, because PostgreSQL has had this function only since version 18.",
    }),
    library: "",
    setup: &[],
    id_type: "uuid",
    ids: Ids::One(id),
    may_repeat: false,
};

pub(super) fn id(_: &str, _: &str) -> String {
    "uuidv7()".to_owned()
}
