//! The SQL generators: arguments in, ids or errors out.

use crate::error::Error;
use crate::layout::{INSTAGRAM, Layout};
use crate::{sequence, shard};
use pgrx::prelude::*;

/// `snowflake_nextval(seq regclass, shard_id int, layout) → bigint`
#[pg_extern(sql = false)]
fn snowflake_nextval(seq: pg_sys::Oid, shard_id: i32, layout: Layout) -> i64 {
    next_id(seq, Some(shard_id), layout)
}

/// `snowflake_nextval(seq regclass) → bigint`: the shard from `pg_snowflake.shard_id`, in the default layout.
#[pg_extern(sql = false)]
fn snowflake_nextval_of_this_shard(seq: pg_sys::Oid) -> i64 {
    next_id(seq, None, INSTAGRAM)
}

fn next_id(seq: pg_sys::Oid, shard_id: Option<i32>, layout: Layout) -> i64 {
    shard::mintable(shard_id, layout)
        .and_then(|shard| sequence::next_id(seq, layout, shard))
        .unwrap_or_else(|error| error.raise("snowflake_nextval", seq))
}

/// `snowflake_nextvals(seq regclass, shard_id int, count int, layout) → setof bigint`
#[pg_extern(sql = false)]
fn snowflake_nextvals(
    seq: pg_sys::Oid,
    shard_id: i32,
    count: i32,
    layout: Layout,
) -> SetOfIterator<'static, i64> {
    let name = "snowflake_nextvals";
    if count < 0 {
        Error::NegativeCount(count).raise(name, seq);
    }
    let shard =
        shard::mintable(Some(shard_id), layout).unwrap_or_else(|error| error.raise(name, seq));
    let ids = sequence::Ids::new(seq, layout, shard, count.into());
    SetOfIterator::new(ids.map(move |id| id.unwrap_or_else(|error| error.raise(name, seq))))
}

/// `snowflake_currval(seq regclass) → bigint`
#[pg_extern(sql = false)]
fn snowflake_currval(seq: pg_sys::Oid) -> i64 {
    sequence::last_id(seq).unwrap_or_else(|error| error.raise("snowflake_currval", seq))
}

/// `snowflake_shard_id() → int`: the shard of this database.
#[pg_extern(sql = false)]
fn snowflake_shard_id_of_this_database() -> i32 {
    shard::of_this_database()
        .unwrap_or_else(|error| error.raise("snowflake_nextval", pg_sys::InvalidOid))
}

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
mod tests {
    use crate::layout::INSTAGRAM;
    use pgrx::prelude::*;

    fn next_id() -> i64 {
        Spi::get_one("SELECT snowflake_nextval('s', 5)").unwrap().unwrap()
    }

    #[pg_test]
    fn a_rolled_back_savepoint_gives_no_id_back() {
        Spi::run("CREATE SEQUENCE s").unwrap();
        let before = next_id();
        Spi::run(
            "DO $$ BEGIN
                 PERFORM snowflake_nextval('s', 5);
                 RAISE EXCEPTION 'back';
             EXCEPTION WHEN raise_exception THEN END $$",
        )
        .unwrap();
        assert!(next_id() >= before + 2);
    }

    #[pg_test]
    fn a_sequence_that_is_dropped_and_made_again_starts_at_the_clock() {
        Spi::run("CREATE SEQUENCE s").unwrap();
        let before = INSTAGRAM.split(next_id());
        Spi::run("DROP SEQUENCE s; CREATE SEQUENCE s").unwrap();
        let after = INSTAGRAM.split(next_id());
        assert!(after.tick >= before.tick);
        assert_eq!(after.seq, 1);
    }
}
