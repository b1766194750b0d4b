//! Homed IDs: their hash leads to the shard that generates them.

use pg_snowflake_harness::ask::{
    Bad, Refusal, assert_each_refused, assert_refused, printed, run, server, server_with_sequence,
};
use pg_snowflake_harness::id::{Fields, count_repeats, counter, is_increasing, split};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::sequence::{Ahead, state, take, take_one};
use pg_snowflake_harness::{Cluster, SUPERUSER};
use postgres::Client;

/// A server with a sequence `s` and a table `t` that is partitioned by PostgreSQL's own hash.
fn hash_router() -> (Cluster, Client) {
    let (cluster, mut client) = server_with_sequence();
    run(&mut client, "CREATE TABLE t (id bigint) PARTITION BY HASH (id)");
    (cluster, client)
}

/// How many rows of the query, each an ID, are not in that partition, and how many IDs are different.
fn strangers(client: &mut Client, ids: &str, modulus: i32, remainder: i32) -> String {
    printed(
        client,
        &format!(
            "SELECT count(*) FILTER (
                 WHERE NOT satisfies_hash_partition('t'::regclass, {modulus}, {remainder}, id)), count(DISTINCT id)
             FROM ({ids}) AS ids (id)"
        ),
    )
}

#[test]
fn every_id_is_in_the_hash_partition_of_its_shard() {
    let (_cluster, mut client) = hash_router();
    for modulus in [1, 2, 3, 4, 16, 64] {
        for shard in [0, 1 % modulus, modulus - 1] {
            let one_by_one = format!(
                "SELECT snowflake_nextval_homed('s', {shard}, {modulus}) FROM generate_series(1, 3000)"
            );
            let batch = format!("SELECT snowflake_nextvals_homed('s', {shard}, {modulus}, 3000)");
            for ids in [one_by_one, batch] {
                assert_eq!(strangers(&mut client, &ids, modulus, shard), "0|3000", "{ids}");
                let of_other_shards = format!(
                    "SELECT count(*) FROM ({ids}) AS ids (id) WHERE snowflake_shard_id(id) % {modulus} <> {shard}"
                );
                assert_eq!(printed(&mut client, &of_other_shards), "0", "{ids}");
            }
        }
    }
}

#[test]
fn a_row_with_a_homed_id_goes_to_the_partition_of_its_shard() {
    let (_cluster, mut client) = hash_router();
    run(
        &mut client,
        "CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 0);
         CREATE TABLE t_1 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 1);
         CREATE TABLE t_2 PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER 2);
         ALTER TABLE t ALTER id SET DEFAULT snowflake_nextval_homed('s', 2, 3);
         INSERT INTO t SELECT FROM generate_series(1, 1000)",
    );
    let where_they_are = "SELECT tableoid::regclass, count(*) FROM t GROUP BY 1";
    assert_eq!(printed(&mut client, where_they_are), "t_2|1000");
}

#[test]
fn the_counters_increase_by_one_and_the_sequence_holds_the_last() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(1);
    let one_by_one = "SELECT snowflake_nextval_homed('s', 1, 4) FROM generate_series(1, 2000)";
    let batch = "SELECT snowflake_nextvals_homed('s', 1, 4, 2000)";
    for (n, ids) in [one_by_one, batch].into_iter().enumerate() {
        let first = start + 2000 * n as i64;
        let counters: Vec<i64> = take(&mut client, ids).into_iter().map(counter).collect();
        assert_eq!(counters, (first..first + 2000).collect::<Vec<_>>(), "{ids}");
        assert_eq!(state(&mut client, "s").last_value, first + 1999, "{ids}");
    }
}

#[test]
fn counters_that_make_no_homed_id_are_passed_over() {
    let Ahead { cluster: _cluster, mut client, start } = Ahead::caching(1);
    let ids = "SELECT snowflake_nextval_homed('s', 5, 64) FROM generate_series(1, 1000)";
    let counters: Vec<i64> = take(&mut client, ids).into_iter().map(counter).collect();
    assert!(is_increasing(&counters));
    let last = counters[999];
    // Three counters in eight are passed over.
    assert!((start + 1400..start + 1750).contains(&last), "{} counters", last - start);
    assert_eq!(state(&mut client, "s").last_value, last);
}

/// In a layout with the shard in the lowest bits, the counter alone decides the order.
#[test]
fn ids_increase_where_the_shard_is_lowest_and_their_ticks_do_in_every_layout() {
    let (_cluster, mut client) = server_with_sequence();
    run(&mut client, "CREATE SEQUENCE lowest");
    let of = |seq: &str, layout: &str| {
        [
            format!(
                "snowflake_nextval_homed('{seq}', 1, 4, layout => '{layout}') FROM generate_series(1, 5000)"
            ),
            format!("snowflake_nextvals_homed('{seq}', 1, 4, 5000, layout => '{layout}')"),
        ]
    };
    for ids in of("lowest", "postgres") {
        assert!(is_increasing(&take(&mut client, &format!("SELECT {ids}"))), "{ids}");
    }
    for ids in of("s", "instagram") {
        let ids = take(&mut client, &format!("SELECT {ids}"));
        assert!(ids.iter().map(|&id| id >> 23).is_sorted());
    }
}

#[test]
fn homed_and_other_ids_of_a_sequence_never_repeat_and_its_cache_is_dropped() {
    let (_cluster, mut client) = server_with_sequence();
    run(&mut client, "ALTER SEQUENCE s CACHE 50");
    let ids = take(
        &mut client,
        "SELECT CASE n % 3 WHEN 0 THEN snowflake_nextval_homed('s', 5, 16)
                           WHEN 1 THEN snowflake_nextval('s', 5)
                           ELSE snowflake_nextval_homed_in_ranges('s', 5, '{[0,)}'::int8multirange) END
         FROM generate_series(1, 20000) AS n",
    );
    let counters: Vec<i64> = ids.iter().map(|&id| counter(id)).collect();
    assert!(is_increasing(&counters));
}

#[test]
fn concurrent_sessions_never_repeat_a_homed_id() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "1min").start();
    run(&mut cluster.connect(), "CREATE SEQUENCE s");
    let queries = [
        "SELECT snowflake_nextval_homed('s', 1, 2) FROM generate_series(1, 20000)",
        "SELECT snowflake_nextval_homed('s', 1, 2, generators => 4) FROM generate_series(1, 20000)",
        "SELECT snowflake_nextvals_homed('s', 1, 2, 20000)",
        "SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange) FROM generate_series(1, 20000)",
    ];
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let sessions = queries.map(|query| {
            let mut client = cluster.connect();
            scope.spawn(move || take(&mut client, query))
        });
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 80_000);
    assert_eq!(count_repeats(ids), 0);
}

#[test]
fn generators_of_a_shard_have_no_shard_number_in_common() {
    let (_cluster, mut client) = hash_router();
    let mut seen: Vec<(i64, i32)> = Vec::new();
    for shard in 0..8 {
        let ids = format!("SELECT snowflake_nextvals_homed('s', {shard}, 4, 2000, 2, 'postgres')");
        assert_eq!(strangers(&mut client, &ids, 4, shard % 4), "0|2000");
        for id in take(&mut client, &ids) {
            let Fields { shard: number, .. } = split(id);
            assert_eq!(number % 8, i64::from(shard));
            seen.push((number, shard));
        }
    }
    seen.sort_unstable();
    seen.dedup();
    let numbers = seen.iter().map(|&(number, _)| number).collect();
    assert_eq!(count_repeats(numbers), 0);
}

/// The ranges of two of four workers, as in `pg_dist_shard`.
const RANGES: &str = "{[-2147483648,-1073741824),[0,1073741824)}";

#[test]
fn every_id_is_in_the_hash_ranges_and_has_the_shard() {
    let (_cluster, mut client) = server_with_sequence();
    let calls = |ranges: &str| {
        [
            format!(
                "snowflake_nextval_homed_in_ranges('s', 7, {ranges}) FROM generate_series(1, 3000)"
            ),
            format!("snowflake_nextvals_homed_in_ranges('s', 7, {ranges}, 3000)"),
        ]
    };
    let literals = [RANGES, "{(,-5),[100,1000000)}", "{(,)}", "{[0,2147483648)}"];
    for ranges in literals.map(|ranges| format!("'{ranges}'::int8multirange")) {
        for ids in calls(&ranges) {
            let outside = format!(
                "SELECT count(*) FILTER (WHERE NOT {ranges} @> hashint8(id)::bigint), count(DISTINCT id),
                     min(snowflake_shard_id(id)), max(snowflake_shard_id(id))
                 FROM (SELECT {ids}) AS ids (id)"
            );
            assert_eq!(printed(&mut client, &outside), "0|3000|7|7", "{ids}");
        }
    }
}

#[test]
fn hash_ranges_may_differ_from_call_to_call() {
    let (_cluster, mut client) = server_with_sequence();
    run(
        &mut client,
        "CREATE TABLE ranges (of int8multirange);
         ALTER TABLE ranges ALTER of SET STORAGE EXTERNAL;
         INSERT INTO ranges VALUES ('{[0,)}'), ('{(,0)}');
         -- Of so many that it is stored out of line.
         INSERT INTO ranges SELECT range_agg(int8range(n * 1000000, n * 1000000 + 400000)) FROM generate_series(-2000, 2000) AS n",
    );
    let outside = "SELECT count(*) FROM ranges, generate_series(1, 300) AS n
                   WHERE NOT of @> hashint8(snowflake_nextval_homed_in_ranges('s', 7, of))::bigint";
    assert_eq!(printed(&mut client, outside), "0");
}

/// The shard to which PgDog sends a row with that key, restated from its sources (`router/sharding/hashfn.c`).
///
/// It is PostgreSQL's hash of a partition key of one bigint: both halves of the key are XORed, the high one inverted if the key is
/// negative, and Jenkins' hash of the result, with a seed, is combined with 0.
fn pgdog_shard(key: i64, shards: u64) -> u64 {
    let [mut a, mut b, mut c] = [0x9e37_79b9_u32.wrapping_add(4 + 3_923_095); 3];
    a = a.wrapping_add(0x7A5B_2236);
    b = b.wrapping_add(0x7996_DCFD);
    for turn in [4, 6, 8, 16, 19, 4] {
        a = a.wrapping_sub(c) ^ c.rotate_left(turn);
        c = c.wrapping_add(b);
        [a, b, c] = [b, c, a];
    }
    let high = (key >> 32) as u32;
    a = a.wrapping_add(key as u32 ^ if key < 0 { !high } else { high });
    for turn in [14, 11, 25, 16, 4, 14, 24] {
        c = (c ^ b).wrapping_sub(b.rotate_left(turn));
        [a, b, c] = [b, c, a];
    }
    let hash = u64::from(a) << 32 | u64::from(b);
    hash.wrapping_add(0x49a0_f4dd_15e5_a8e3) % shards
}

/// Each shard is a schema with what PgDog needs for `pgdog.next_id_seq()`, which the default replaces: a table for
/// `satisfies_hash_partition()`.
#[test]
fn pgdog_sends_a_homed_id_to_its_shard() {
    // As fast as they can be generated.
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "1min").start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SCHEMA pgdog");
    run(&mut client, "CREATE TABLE pgdog.validator_bigint (id bigint) PARTITION BY HASH (id)");
    for shards in [2, 3, 4, 16] {
        for shard in 0..shards {
            run(
                &mut client,
                &format!(
                    "CREATE SCHEMA shard_{shard}_of_{shards};
                     SET search_path = shard_{shard}_of_{shards}, public;
                     CREATE SEQUENCE ids;
                     CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval_homed('ids', {shard}, {shards}));
                     INSERT INTO posts SELECT FROM generate_series(1, 1000)"
                ),
            );
            let batch = 1_000_000_u64.div_ceil(shards) - 1000;
            let at_home_for_postgres = format!(
                "SELECT string_agg(int8send(id), '')
                 FROM (TABLE posts UNION ALL SELECT snowflake_nextvals_homed('ids', {shard}, {shards}, {batch})) AS ids
                 WHERE satisfies_hash_partition('pgdog.validator_bigint'::regclass, {shards}, {shard}, id)"
            );
            let ids = client.query_one(&at_home_for_postgres, &[]).unwrap().get::<_, Vec<u8>>(0);
            let (ids, _) = ids.as_chunks();
            assert_eq!(ids.len() as u64, batch + 1000, "shard {shard} of {shards}");
            for id in ids.iter().map(|&bytes| i64::from_be_bytes(bytes)) {
                assert_eq!(pgdog_shard(id, shards), shard, "{id} of {shards} shards");
            }
        }
    }
}

#[test]
fn currval_returns_the_last_homed_id() {
    let (_cluster, mut client) = server_with_sequence();
    for call in [
        "snowflake_nextval_homed('s', 1, 4)",
        "snowflake_nextvals_homed('s', 1, 4, 1)",
        "snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange)",
    ] {
        let id = take_one(&mut client, &format!("SELECT {call}"));
        assert_eq!(take_one(&mut client, "SELECT snowflake_currval('s')"), id, "{call}");
    }
}

#[test]
fn bad_arguments_are_refused_and_take_nothing() {
    let (_cluster, mut client) = server_with_sequence();
    let before = state(&mut client, "s");
    let function = |of_modulus: &str, arguments: &str| match arguments.contains("multirange") {
        true => format!("{of_modulus}_in_ranges"),
        false => of_modulus.to_owned(),
    };
    let cases = [
        ("0, 0", "modulus 0 is out of range", "from 1 to 4096"),
        ("0, -1", "modulus -1 is out of range", "from 1 to 4096"),
        ("0, 4097", "modulus 4097 is out of range", "from 1 to 4096"),
        ("0, 2147483647", "modulus 2147483647 is out of range", "from 1 to 4096"),
        ("0, 129, layout => 'js53'", "modulus 129 is out of range", "has 128 shards"),
        ("0, 16385, layout => 'sonyflake'", "modulus 16385 is out of range", "from 1 to 16384"),
        ("0, 2, generators => 0", "number of generators 0 is out of range", "from 1 to 2048"),
        ("0, 2, generators => 2049", "number of generators 2049 is out of range", "from 1 to 2048"),
        ("-1, 2", "shard ID -1 is out of range", "from 0 to 1"),
        ("2, 2", "shard ID 2 is out of range", "from 0 to 1"),
        ("4, 2, generators => 2", "shard ID 4 is out of range", "from 0 to 3"),
        ("0, '{}'::int8multirange", "hash ranges must not be empty", "no hash"),
        ("0, '{[0,4294967296)}'::int8multirange", "hash range is out of range", "2147483647"),
        ("0, '{[-2147483649,0)}'::int8multirange", "hash range is out of range", "hashint8()"),
        ("0, '{[0,262143)}'::int8multirange", "hash ranges are too small", "262144 are needed"),
        ("4096, '{[0,)}'::int8multirange", "shard ID 4096 is out of range", "from 0 to 4095"),
    ];
    for (arguments, message, allowed) in cases {
        let function = function("snowflake_nextval_homed", arguments);
        let sql = &format!("SELECT {function}('s', {arguments})");
        assert_each_refused(&mut client, &[Bad { sql, sqlstate: "22023", message, allowed }]);
        // Twice: what has been refused is not kept for the fast path.
        assert_each_refused(&mut client, &[Bad { sql, sqlstate: "22023", message, allowed }]);
    }
    let batches = [
        ("0, 0, 1", "modulus 0 is out of range", "from 1 to 4096"),
        ("0, 2, -1", "number of IDs must not be negative", "-1"),
        ("0, '{}'::int8multirange, 1", "hash ranges must not be empty", ""),
        ("0, '{[0,)}'::int8multirange, -1", "number of IDs must not be negative", "-1"),
    ];
    for (arguments, message, allowed) in batches {
        let function = function("snowflake_nextvals_homed", arguments);
        let sql = &format!("SELECT {function}('s', {arguments})");
        assert_each_refused(&mut client, &[Bad { sql, sqlstate: "22023", message, allowed }]);
    }
    run(&mut client, "SELECT snowflake_nextvals_homed('s', 0, 2, 0)");
    for nothing in [
        "snowflake_nextval_homed(NULL, 0, 2)",
        "snowflake_nextval_homed('s', NULL, 2)",
        "snowflake_nextval_homed('s', 0, NULL::int)",
        "snowflake_nextval_homed('s', 0, 2, NULL)",
        "snowflake_nextval_homed('s', 0, 2, generators => NULL)",
        "snowflake_nextval_homed_in_ranges('s', 0, NULL::int8multirange)",
    ] {
        assert_eq!(printed(&mut client, &format!("SELECT {nothing} IS NULL")), "t", "{nothing}");
    }
    assert_eq!(state(&mut client, "s"), before);
}

#[test]
fn the_highest_modulus_has_homed_ids() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "1min").start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s; CREATE TABLE t (id bigint) PARTITION BY HASH (id)");
    for ids in [
        "SELECT snowflake_nextval_homed('s', 4095, 4096) FROM generate_series(1, 30)",
        "SELECT snowflake_nextvals_homed('s', 4095, 4096, 30)",
    ] {
        assert_eq!(strangers(&mut client, ids, 4096, 4095), "0|30", "{ids}");
    }
}

#[test]
fn a_homed_id_waits_for_the_clock_or_is_refused() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_wait", "0").start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s");
    let faster_than_the_layout =
        "SELECT count(snowflake_nextval_homed('s', 4095, 4096)) FROM generate_series(1, 2000)";
    let ahead =
        Refusal { sqlstate: "55000", message: "too far ahead of the server clock", hint: "" };
    assert_refused(&mut client, faster_than_the_layout, ahead);

    run(&mut client, "SET pg_snowflake.max_wait = '10s'");
    take_one(
        &mut client,
        "SELECT count(snowflake_nextval_homed('s', 4095, 4096)) FROM generate_series(1, 30)",
    );
}

#[test]
fn usage_or_update_on_the_sequence_is_needed() {
    let (cluster, mut owner) = server_with_sequence();
    run(&mut owner, "CREATE ROLE writer LOGIN");
    let mut writer = cluster.connect_to("writer", "postgres");
    let calls = [
        "SELECT snowflake_nextval_homed('s', 0, 2)",
        "SELECT snowflake_nextvals_homed('s', 0, 2, 1)",
        "SELECT snowflake_nextval_homed_in_ranges('s', 0, '{[0,)}'::int8multirange)",
    ];
    for call in calls {
        let function = &call["SELECT ".len()..call.find('(').unwrap()];
        let denied = Refusal {
            sqlstate: "42501",
            message: "permission denied for sequence s",
            hint: "GRANT USAGE ON SEQUENCE s TO writer;",
        };
        let error = assert_refused(&mut writer, call, denied);
        assert!(error.detail().unwrap_or_default().starts_with(&format!("{function}()")));
        for privilege in ["USAGE", "UPDATE"] {
            run(&mut owner, &format!("GRANT {privilege} ON SEQUENCE s TO writer"));
            take_one(&mut writer, call);
            take_one(&mut writer, call);
            run(&mut owner, &format!("REVOKE {privilege} ON SEQUENCE s FROM writer"));
            // The fast path notices, too.
            assert_refused(&mut writer, call, denied);
        }
        run(&mut writer, "BEGIN READ ONLY");
        run(&mut owner, "GRANT USAGE ON SEQUENCE s TO writer");
        let read_only = Refusal { sqlstate: "25006", message: function, hint: "READ WRITE" };
        assert_refused(&mut writer, call, read_only);
        run(&mut writer, "ROLLBACK");
        run(&mut owner, "REVOKE USAGE ON SEQUENCE s FROM writer");
    }
}

#[test]
fn every_shard_number_has_to_be_owned() {
    let (_cluster, mut client) = server_with_sequence();
    // The numbers 3, 515, …, 3587.
    let calls = [
        "SELECT snowflake_nextval_homed('s', 3, 4, generators => 128)",
        "SELECT snowflake_nextvals_homed('s', 3, 4, 1, generators => 128)",
    ];
    let not_owned =
        |message| Refusal { sqlstate: "55000", message, hint: "generate_series(3, 3587, 512)" };
    let cases = [
        ("5", "shard 3 is not owned"),
        ("3", "shard 515 is not owned"),
        ("0-3586", "shard 3587 is not owned"),
        ("0-1538,1540-4095", "shard 1539 is not owned"),
    ];
    for call in calls {
        for (owned, message) in cases {
            run(&mut client, "SET pg_snowflake.owned_shards = ''");
            take_one(&mut client, call);
            run(&mut client, "SET pg_snowflake.owned_shards = '0-4095'");
            take_one(&mut client, call);
            take_one(&mut client, call);
            run(&mut client, &format!("SET pg_snowflake.owned_shards = '{owned}'"));
            assert_refused(&mut client, call, not_owned(message));
        }
        run(&mut client, "SET pg_snowflake.owned_shards = '5'");
        let error = assert_refused(&mut client, call, not_owned("shard 3"));
        let (_, query) = error.hint().unwrap().split_once("SELECT").expect("a query for the list");
        let list = printed(&mut client, &format!("SELECT {query}"));
        run(&mut client, &format!("SET pg_snowflake.owned_shards = '{list}'"));
        take_one(&mut client, call);
        assert!(list.starts_with("3, 515, "), "{list}");
    }
    let in_ranges = "SELECT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange)";
    take_one(&mut client, in_ranges);
    run(&mut client, "SET pg_snowflake.owned_shards = '5'");
    let not_owned = Refusal { sqlstate: "55000", message: "shard 3 is not owned", hint: "" };
    assert_refused(&mut client, in_ranges, not_owned);
}

#[test]
fn every_shard_number_needs_a_lease() {
    let registry = Registry::start();
    let server = registry.node("db-1").setting("pg_snowflake.owned_shards", "3, 515-3587").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s; CREATE TABLE t (id bigint) PARTITION BY HASH (id)");
    let call = "SELECT snowflake_nextval_homed('s', 3, 4, generators => 128)";
    first_id(&mut client, call);
    // Of both kinds in turn, and of another class.
    for _ in 0..100 {
        take_one(&mut client, call);
        take_one(&mut client, "SELECT snowflake_nextval('s', 600)");
        take_one(&mut client, "SELECT snowflake_nextval_homed('s', 600, 4, generators => 512)");
    }
    let ids = "SELECT snowflake_nextvals_homed('s', 3, 4, 3000, generators => 128)";
    assert_eq!(strangers(&mut client, ids, 4, 3), "0|3000");

    // The server claims all shards that it owns, but another one holds shard 3075.
    drop(client);
    drop(server);
    let registry = Registry::start();
    let other = registry.node("db-2").setting("pg_snowflake.owned_shards", "3075").start();
    run(&mut other.connect(), "CREATE SEQUENCE s");
    first_id(&mut other.connect(), "SELECT snowflake_nextval('s', 3075)");
    let server = registry.node("db-1").setting("pg_snowflake.owned_shards", "3, 515-3587").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s");
    first_id(&mut client, "SELECT snowflake_nextval('s', 3)");
    let no_lease = Refusal { sqlstate: "55000", message: "no lease for shard 3075", hint: "" };
    for call in [call, ids] {
        assert_refused(&mut client, call, no_lease);
    }
}

#[test]
fn without_the_leases_of_a_class_the_hint_has_the_list() {
    let registry = Registry::start();
    let server = registry.node("db-1").setting("pg_snowflake.shard_id", "3").start();
    let mut client = server.connect();
    run(&mut client, "CREATE SEQUENCE s");
    first_id(&mut client, "SELECT snowflake_nextval('s', 3)");
    let call = "SELECT snowflake_nextval_homed('s', 3, 4, generators => 128)";
    let hint = "pg_snowflake.owned_shards";
    let no_lease = Refusal { sqlstate: "55000", message: "no lease for shard 515", hint };
    let error = assert_refused(&mut client, call, no_lease);
    let (_, query) = error.hint().unwrap().split_once("SELECT").expect("a query for the list");
    let list = printed(&mut client, &format!("SELECT {query}"));
    for statement in [
        &format!("ALTER SYSTEM SET pg_snowflake.owned_shards = '{list}'"),
        "SELECT pg_reload_conf()",
    ] {
        run(&mut client, statement);
    }
    first_id(&mut client, call);
}

#[test]
fn a_homed_id_survives_a_crash() {
    // Ahead of the clock, which would hide a lost counter.
    let Ahead { mut cluster, mut client, .. } = Ahead::caching(1);
    let ids = "INSERT INTO t SELECT snowflake_nextval_homed('s', 1, 64) FROM generate_series(1, 1000) RETURNING id";
    run(&mut client, "CREATE TABLE t (id bigint)");
    let before: Vec<i64> = take(&mut client, ids).into_iter().map(counter).collect();
    drop(client);
    cluster.kill_9();
    cluster.start();
    let after = counter(take_one(
        &mut cluster.connect_to(SUPERUSER, "postgres"),
        "SELECT snowflake_nextval_homed('s', 1, 64)",
    ));
    assert!(after > *before.last().unwrap());
}

#[test]
fn a_driver_that_sends_no_types_gets_those_of_the_function() {
    let (_cluster, mut client) = server_with_sequence();
    for (call, types) in [
        ("snowflake_nextval_homed($1, $2, $3)", "regclass, int4, int4"),
        ("snowflake_nextval_homed_in_ranges($1, $2, $3)", "regclass, int4, int8multirange"),
        ("snowflake_nextvals_homed($1, $2, $3, $4)", "regclass, int4, int4, int4"),
        (
            "snowflake_nextvals_homed_in_ranges($1, $2, $3, $4)",
            "regclass, int4, int8multirange, int4",
        ),
        ("snowflake_nextvals($1, $2)", "regclass, int4"),
        ("snowflake_nextvals($1, $2, $3)", "regclass, int4, int4"),
    ] {
        let statement = client.prepare(&format!("SELECT {call}")).unwrap();
        let found: Vec<&str> = statement.params().iter().map(|param| param.name()).collect();
        assert_eq!(found.join(", "), types, "{call}");
    }
}

#[test]
fn a_default_is_restored_with_its_arguments() {
    let (cluster, mut client) = server();
    run(
        &mut client,
        "CREATE SEQUENCE s;
         CREATE TABLE posts (
             id bigint DEFAULT snowflake_nextval_homed('s', 1, 4, 8, 'postgres'),
             in_ranges bigint DEFAULT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange, 'postgres'))",
    );
    let defaults = "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1";
    let expected = printed(&mut client, defaults);
    let mut restored = cluster.restored_database("restored", &cluster.dump("postgres"));
    assert_eq!(printed(&mut restored, defaults), expected);
    run(&mut restored, "INSERT INTO posts DEFAULT VALUES");
}

#[test]
fn a_default_that_generates_homed_ids_is_in_the_view_of_columns() {
    let (_cluster, mut client) = server_with_sequence();
    run(
        &mut client,
        "CREATE TABLE posts (
             a bigint DEFAULT snowflake_nextval_homed('s', 3, 4, generators => 128),
             b bigint DEFAULT snowflake_nextval_homed_in_ranges('s', 3, '{[0,)}'::int8multirange, 'postgres'),
             c bigint DEFAULT snowflake_nextval_homed('s', 4, 4),
             d bigint DEFAULT snowflake_nextval_homed('s', 3, 4 + random()::int))",
    );
    let rows = "SELECT column_name, sequence, shard_id, layout, split_part(error, ':', 1)
                FROM snowflake_columns ORDER BY column_name";
    let shown = "a|s|3|postgres|
b|s|3|postgres|
c|s|4|postgres|shard ID 4 is out of range for this modulus
d|s|3|postgres|";
    assert_eq!(printed(&mut client, rows), shown);
    run(&mut client, "SET pg_snowflake.owned_shards = '3'");
    let errors =
        "SELECT column_name, split_part(error, ':', 1) FROM snowflake_columns ORDER BY column_name";
    let shown = "a|shard 515 is not owned by this server
b|
c|shard ID 4 is out of range for this modulus
d|";
    assert_eq!(printed(&mut client, errors), shown);
}
