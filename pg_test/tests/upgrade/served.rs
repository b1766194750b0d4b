//! The SQL objects of a release with the library of the head, before `ALTER EXTENSION … UPDATE`.

use crate::planted::words;
use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::ask::printed;
use pg_snowflake_servertest::release;
use postgres::Client;
use std::collections::BTreeSet;

/// A release, tables for its functions, and queries with their output.
struct Served {
    version: &'static str,
    tables: &'static str,
    queries: &'static [(&'static str, &'static str)],
}

const SERVED: [Served; 1] = [Served {
    version: "0.1.0",
    tables: "
        CREATE SEQUENCE s; CREATE SEQUENCE of_this;
        CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', snowflake_shard_id()), public_id snowflake,
            layout snowflake_layout DEFAULT 'twitter');
        INSERT INTO posts (public_id) SELECT n FROM generate_series(1, 3) AS n;
        CREATE TABLE parted (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
        CREATE TABLE parted_0 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 0);
        CREATE TABLE parted_1 PARTITION OF parted FOR VALUES WITH (MODULUS 2, REMAINDER 1);
        CREATE TABLE parted_twitter (id bigint) PARTITION BY HASH (id snowflake_shard_ops_twitter);
        CREATE TABLE parted_sonyflake (id bigint) PARTITION BY HASH (id snowflake_shard_ops_sonyflake);
        CREATE TABLE parted_js53 (id bigint) PARTITION BY HASH (id snowflake_shard_ops_js53);
        CREATE INDEX by_layout ON posts USING hash (layout snowflake_layout_ops);
        CREATE TABLE orders (id serial); CREATE TABLE tweets (id bigserial)",
    queries: &[
        // What the head renames.
        ("SELECT snowflake_shard_id()", "5"),
        (
            "SELECT tab, col, function, sequence, shard_id, shard_from_setting, layout, last_id_at IS NOT NULL,
                 lead IS NOT NULL, ids_left > 0, ends, fault FROM snowflake_columns",
            "posts|id|snowflake_nextval(regclass,integer,snowflake_layout)|s|5|t|instagram|t|t|t|\
             2046-06-27 17:00:49.497+00|",
        ),
        (
            "SELECT (call).sequence, (call).shard_from_setting, (call).ends, (call).fault
             FROM (SELECT snowflake_generator_calls(adbin) AS call
                   FROM pg_attrdef WHERE adrelid = 'posts'::regclass AND adnum = 1) AS calls",
            "s|t|2046-06-27 17:00:49.497+00|",
        ),
        (
            "SELECT last_id_at IS NOT NULL, lead IS NOT NULL, ids_left > 0, ends, is_called, cache, logged, fault
             FROM snowflake_sequence_status(seq => 's')",
            "t|t|t|2046-06-27 17:00:49.497+00|t|1|t|",
        ),
        (
            "SELECT info.ends, info.ends = named.ends FROM snowflake_layout_info(layout => 'twitter') AS info,
                 snowflake_layouts AS named WHERE name = 'twitter'",
            "2080-07-10 17:30:30.209+00|t",
        ),
        (
            "SELECT partition, shard_id FROM snowflake_locate(tab => 'parted', id => 4034936746192933889)",
            "parted_1|5",
        ),
        (
            "SELECT snowflake_adopt(tab => 'orders', col => 'id', shard_id => 7, check_shard => true)",
            "orders_id_seq",
        ),
        (
            "SELECT snowflake_adopt('tweets', 'id', layout => 'twitter');
             SELECT shard_id, shard_from_setting, fault FROM snowflake_columns WHERE tab = 'tweets'::regclass",
            "tweets_id_seq\n5|t|",
        ),
        // What has the same name at the head.
        (
            "SELECT snowflake_shard_id(snowflake_nextval('of_this')), snowflake_shard_id(snowflake_currval('of_this')),
                 (SELECT count(*) FROM snowflake_nextvals('s', 7, 3))",
            "5|5|3",
        ),
        (
            "SELECT snowflake_encode(created_at, shard_id, seq), snowflake_created_at(id) = created_at,
                 snowflake_seq(id), snowflake_min_id(created_at) <= id,
                 snowflake_between(id, created_at, created_at + interval '1 ms')
             FROM (VALUES (4034936746192933889)) AS ids (id), snowflake_decode(id)",
            "4034936746192933889|t|1|t|t",
        ),
        (
            "SELECT snowflake_from_base32(snowflake_to_base32(id)) = id, snowflake_from_uuid(snowflake_to_uuid(id)) = id,
                 snowflake_explain(id) LIKE '%shard%' FROM posts LIMIT 1",
            "t|t|t",
        ),
        ("SELECT reading > now() - interval '1 day', regressions FROM snowflake_clock()", "t|0"),
        (
            "SELECT to_json(public_id), public_id + 1, 5::smallint::snowflake, snowflake(5), snowflake_in('7'),
                 snowflake_out(public_id), snowflake_send(public_id) FROM posts WHERE public_id = 2",
            r#""2"|3|5|5|7|2|\x0000000000000002"#,
        ),
        (
            "SELECT layout, layout = 'twitter', layout <> 'js53', snowflake_layout_eq(layout, layout),
                 snowflake_layout_ne(layout, layout), snowflake_layout_out(snowflake_layout_in('js53')),
                 length(snowflake_layout_send(layout)), snowflake_layout_hash(layout) IS NULL
             FROM posts GROUP BY layout",
            "twitter|t|t|t|f|js53|8|f",
        ),
        (
            "SELECT snowflake_shard_hash(5, 0) = snowflake_shard_hash(5::bigint, 0),
                 snowflake_shard_hash_twitter(5, 0) = snowflake_shard_hash_twitter(5::bigint, 0),
                 snowflake_shard_hash_sonyflake(5, 0) = snowflake_shard_hash_sonyflake(5::bigint, 0),
                 snowflake_shard_hash_js53(5, 0) = snowflake_shard_hash_js53(5::bigint, 0)",
            "t|t|t|t",
        ),
    ],
}];

#[test]
fn the_library_of_the_head_serves_the_sql_of_a_release() {
    for Served { version, tables, queries } in SERVED {
        let cluster =
            Cluster::builder().release(version).setting("pg_snowflake.shard_id", "5").start();
        let mut client = cluster.connect();
        client.batch_execute(tables).unwrap();
        for (query, answer) in queries {
            assert_eq!(printed(&mut client, query), *answer, "{version}: {query}");
        }
    }
}

/// No other test calls what a release has and the head does not. Compares names only: for functions with the same name it
/// does not check whether each is called.
#[test]
fn every_renamed_object_is_called_by_its_old_name() {
    let names_of_head = names(&mut Cluster::new().connect());
    for version in release::versions() {
        let names = names(&mut Cluster::builder().release(&version).start().connect());
        let served = SERVED.iter().filter(|served| served.version == version);
        let queries: Vec<&str> =
            served.flat_map(|served| served.queries).map(|(query, _)| *query).collect();
        let used: BTreeSet<&str> = queries.iter().flat_map(|query| words(query)).collect();

        let forgotten: Vec<_> = names
            .difference(&names_of_head)
            .filter(|(object, name)| {
                !used.contains(object.as_str()) || !used.contains(name.as_str())
            })
            .collect();

        assert!(forgotten.is_empty(), "no query of {version} has {forgotten:?}");
    }
}

/// The functions and views of the extension, with the names of their arguments or columns.
fn names(client: &mut Client) -> BTreeSet<(String, String)> {
    let names = "
        WITH member AS (
            SELECT classid, objid FROM pg_depend
            WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
              AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'pg_snowflake'))
        SELECT proname::text, unnest(proname::text || coalesce(proargnames, '{}'))
        FROM pg_proc JOIN member ON classid = 'pg_proc'::regclass AND objid = oid
        UNION
        SELECT relname::text, unnest(ARRAY[relname::text, attname::text])
        FROM pg_class JOIN member ON classid = 'pg_class'::regclass AND objid = oid
        JOIN pg_attribute ON attrelid = oid AND attnum > 0";
    let rows = client.query(names, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}
