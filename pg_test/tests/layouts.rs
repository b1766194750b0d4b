//! The types `snowflake_layout` and `snowflake` in the formats of COPY, and in a dump.

use pg_snowflake_harness::prelude::*;
use pg_snowflake_ids::PRESETS;
use std::io::Write;

/// 16 shards, 64 IDs in 100 microseconds, for three and a half years.
const CUSTOM: &str = "time:40 seq:6 shard:4 epoch:2024-01-01 unit:100us";

/// The bytes of a snowflake are those of a bigint.
#[test]
fn layouts_and_ids_round_trip_through_every_copy_format() {
    let sql = format!(
        "CREATE TABLE source (n int, layout snowflake_layout, layouts snowflake_layout[], id snowflake, ids snowflake[]);
         INSERT INTO source SELECT row_number() OVER (), name::snowflake_layout, ARRAY[name, '{CUSTOM}']::snowflake_layout[],
             id, ARRAY[id::snowflake, 7::snowflake] FROM snowflake_layouts, snowflake_min_id(now(), name::snowflake_layout) AS id;
         INSERT INTO source VALUES (100, '{CUSTOM}', '{{}}', -5, '{{}}'), (101, NULL, NULL, NULL, NULL)"
    );
    let (_database, mut client) = database_with(&sql);
    let different = "SELECT count(*) FILTER (WHERE s IS DISTINCT FROM t), count(*) FROM source AS s FULL JOIN target AS t USING (n)";
    for format in ["text", "csv", "binary"] {
        client.batch_execute("CREATE TABLE target (LIKE source)").unwrap();
        copy(&mut client, "source", "target", format);
        assert_eq!(printed(&mut client, different), format!("0|{}", PRESETS.len() + 2), "{format}");
        client.batch_execute("DROP TABLE target").unwrap();
    }
    client.batch_execute("CREATE TABLE bigints (id bigint)").unwrap();
    copy(&mut client, "(SELECT id FROM source)", "bigints", "binary");
    assert_eq!(printed(&mut client, "SELECT id::bigint FROM source EXCEPT SELECT id FROM bigints"), "");
}

#[test]
fn bytes_that_are_not_a_layout_are_refused() {
    let (_database, mut client) = database_with("CREATE TABLE received (layout snowflake_layout)");
    let twitter = 1_288_834_974_657_u64 << 21 | 2 << 18 | 12 << 11 | 10 << 6 | 41;
    assert_eq!(receive(&mut client, &twitter.to_be_bytes()), Ok(()));
    assert_eq!(printed(&mut client, "SELECT layout FROM received"), "twitter");

    // Which bits are a layout is tested beside Layout::unpack.
    assert_eq!(receive(&mut client, &[0xff; 8]), Err("22P03".into()));
    for length in [0, 7, 9] {
        assert!(receive(&mut client, &vec![0; length]).is_err(), "{length} bytes");
    }
}

/// Sends these bytes as a layout in the binary format, and returns the SQLSTATE if they are refused.
fn receive(client: &mut Client, layout: &[u8]) -> Result<(), String> {
    let mut data = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x01".to_vec();
    data.extend(u32::try_from(layout.len()).unwrap().to_be_bytes());
    data.extend(layout);
    data.extend((-1_i16).to_be_bytes());
    let mut target = client.copy_in("COPY received FROM STDIN (FORMAT binary)").unwrap();
    target.write_all(&data).unwrap();
    match target.finish() {
        Ok(_) => Ok(()),
        Err(error) => Err(error.code().expect("the server refuses").code().to_owned()),
    }
}

#[test]
fn a_dump_with_layouts_in_default_check_and_index_restores_and_goes_on_above() {
    // Ahead of the clock, which would otherwise hide a counter that fell back.
    let start = counter_in_an_hour();
    let sql = format!(
        "CREATE SEQUENCE s;
         CREATE SEQUENCE t; CREATE SEQUENCE u START {start};
         CREATE TABLE posts (
             id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 3, '{CUSTOM}'),
             written timestamptz GENERATED ALWAYS AS (snowflake_created_at(id, '{CUSTOM}')) STORED,
             body text,
             CHECK (snowflake_shard_id(id, '{CUSTOM}') = 3));
         CREATE INDEX posts_written ON posts (snowflake_created_at(id, '{CUSTOM}'));
         CREATE TABLE tweets (id snowflake DEFAULT snowflake_nextval('t', 7, 'twitter'), layout snowflake_layout DEFAULT 'twitter');
         CREATE TABLE homed (id bigint DEFAULT snowflake_nextval_homed('u', 1, 4, 8, 'postgres'),
             in_ranges bigint DEFAULT snowflake_nextval_homed_in_ranges('u', 1, '{{[0,)}}'::int8multirange, 'postgres'),
             plain bigint DEFAULT snowflake_nextval('u', 5));
         INSERT INTO posts (body) SELECT 'old' FROM generate_series(1, 1000)"
    );
    let source = Database::new().setting("pg_snowflake.max_lead", "2h");
    let mut client = source.connect();
    run(&mut client, &sql);
    client.batch_execute("INSERT INTO tweets DEFAULT VALUES").unwrap();
    let last = take_one(&mut client, "SELECT max(id) FROM posts");
    let plain = take_one(&mut client, "INSERT INTO homed DEFAULT VALUES RETURNING plain");

    let target = Database::restored(&source.dump()).setting("pg_snowflake.max_lead", "2h");
    let mut restored = target.connect();

    let all = "SELECT id, written, body FROM posts ORDER BY id";
    assert_eq!(printed(&mut restored, all), printed(&mut client, all));
    let defaults = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1";
    assert_eq!(printed(&mut restored, defaults), printed(&mut client, defaults));
    let next = take_one(&mut restored, "INSERT INTO homed DEFAULT VALUES RETURNING plain");
    assert!(next > plain, "{next} after {plain}");
    let new = take_one(&mut restored, "INSERT INTO posts (body) VALUES ('new') RETURNING id");
    assert!(new > last, "{new} after {last}");
    let pieces = "SELECT count(*) FROM pg_indexes WHERE indexname = 'posts_written' AND indexdef LIKE '%100us%'
                  UNION ALL SELECT count(*) FROM pg_constraint WHERE contype = 'c' AND conrelid = 'posts'::regclass";
    assert_eq!(take(&mut restored, pieces), [1, 1]);
    assert_refused(&mut restored, "INSERT INTO posts (id) VALUES (1)", refusal("23514", "check constraint"));
    let tweets = "SELECT id, layout, snowflake_shard_id(id, layout) FROM tweets ORDER BY id";
    assert_eq!(printed(&mut restored, tweets), printed(&mut client, tweets));
    restored.batch_execute("INSERT INTO tweets DEFAULT VALUES").unwrap();
    assert_eq!(printed(&mut restored, "SELECT count(*) FROM tweets WHERE snowflake_shard_id(id, layout) = 7"), "2");
}
