//! What an id says by itself.

use crate::layout::INSTAGRAM;
use crate::row::{Row, timestamptz};
use pgrx::prelude::*;

/// `snowflake_decode(id bigint) → (created_at timestamptz, shard_id int, seq int)`
#[pg_extern(sql = false)]
fn snowflake_decode(id: i64) -> Row<3> {
    let fields = INSTAGRAM.split(id);
    let created_at = timestamptz(INSTAGRAM.instant_of(fields.tick));
    Row([created_at, (fields.shard as i32).into(), (fields.seq as i32).into()])
}

/// `snowflake_shard_id(id bigint) → int`
#[pg_extern(sql = false)]
fn snowflake_shard_id(id: i64) -> i32 {
    INSTAGRAM.split(id).shard as i32
}

#[cfg(any(test, feature = "pg_test"))]
#[pg_schema]
mod tests {
    use pgrx::prelude::*;

    /// The id of Instagram's worked example: 1387263000 ms after the epoch, shard 1341, seq 905.
    const PUBLISHED: i64 = 1_387_263_000 << 23 | 1341 << 10 | 905;

    #[pg_test]
    fn the_published_id_decodes_to_its_fields() {
        let row = Spi::get_one::<String>(&format!(
            "SELECT format('%s|%s|%s', created_at AT TIME ZONE 'UTC', shard_id, seq)
             FROM snowflake_decode({PUBLISHED})"
        ));
        assert_eq!(row, Ok(Some("2011-09-09 22:28:04.721|1341|905".into())));
    }

    #[pg_test]
    fn one_call_site_decodes_many_ids() {
        let rows = Spi::get_one::<i64>(
            "SELECT count(*) FROM generate_series(0, 999) g, snowflake_decode((g << 10) + g) d
             WHERE d.shard_id = g AND d.seq = g",
        );
        assert_eq!(rows, Ok(Some(1000)));
    }
}
