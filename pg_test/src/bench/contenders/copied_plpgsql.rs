//! The function that pg_snowflake replaces, as Instagram published it.

use crate::bench::contender::{Contender, Ids};

pub const CONTENDER: Contender = Contender {
    name: "copied_plpgsql",
    title: "the PL/pgSQL original",
    needs: None,
    library: "plpgsql",
    setup: &[FUNCTION, "CREATE SEQUENCE ids"],
    id_type: "bigint",
    ids: Ids::One(|sequence, _| format!("copied_nextval({sequence}, 5)")),
    may_repeat: false,
};

/// Creates `copied_nextval(seq regclass, shard_id int)`.
pub const FUNCTION: &str = "
    CREATE FUNCTION copied_nextval(seq regclass, shard_id int) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        our_epoch bigint := 1314220021721;
        seq_id bigint;
        now_millis bigint;
    BEGIN
        SELECT nextval(seq) % 1024 INTO seq_id;
        SELECT floor(extract(epoch FROM clock_timestamp()) * 1000) INTO now_millis;
        RETURN (now_millis - our_epoch) << 23 | (shard_id << 10) | seq_id;
    END $$";
