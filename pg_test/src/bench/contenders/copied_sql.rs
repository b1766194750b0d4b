//! The same formula as a plain SQL function: faster, and its IDs repeat.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "copied_sql",
    title: "its formula in plain SQL",
    needs: None,
    library: "",
    setup: &[FUNCTION, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: true,
};

/// Creates `copied_nextval(seq regclass, shard_id int)` at the lowest cost that a call can have in SQL: it is inlined,
/// and reads the clock without numeric arithmetic.
pub const FUNCTION: &str = "
    CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE sql AS $$
        SELECT ((date_part('epoch', clock_timestamp()) * 1000)::bigint - 1314220021721) << 23
               | (shard_id << 10) | (nextval(seq) % 1024)
    $$";
