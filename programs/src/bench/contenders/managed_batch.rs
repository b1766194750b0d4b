//! The SQL edition, many IDs in one call.

use crate::bench::contender::{Contender, Ids};
use crate::bench::contenders::managed;

pub const CONTENDER: Contender = Contender {
    name: "managed_batch",
    title: "the SQL edition's `snowflake_nextvals`",
    setup: &[
        managed::FILE,
        "CREATE SEQUENCE ids",
        // A batch reaches the rate of the layout. No call waits for the clock.
        "CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT 86400000000'",
    ],
    ids: Ids::Many(|sequence, count, _| {
        format!("snowflake_managed.snowflake_nextvals({sequence}, 5, {count})")
    }),
    ..managed::CONTENDER
};
