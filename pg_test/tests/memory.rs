//! Sessions that run out of memory: a statement fails, and the server and the other sessions go on.

use pg_snowflake_servertest::ask::{Refusal, assert_refused, printed, run};
use pg_snowflake_servertest::installation::left_out;
use pg_snowflake_servertest::memory::{self, Limit, Malloc, limited};
use pg_snowflake_servertest::process::backend_pid;
use pg_snowflake_servertest::{Builder, Cluster};
use postgres::Client;
use std::collections::BTreeMap;

/// More ranges than a multirange may have, as in the report of the error.
const MANY_RANGES: &str =
    "(SELECT range_agg(int8range(g * 4, g * 4 + 2)) FROM generate_series(-150000, 150000) g)";

#[test]
fn too_many_ranges_are_refused_within_a_limit_of_memory() {
    let cluster = Cluster::builder().address_space(1_000_000 << 10).start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s");
    let refused =
        Refusal { sqlstate: "54000", message: "too many hash ranges", hint: "not single hashes" };
    for call in [
        format!("SELECT snowflake_nextval_homed('s', 5, {MANY_RANGES})"),
        format!("SELECT * FROM snowflake_nextvals_homed('s', 5, {MANY_RANGES}, 1)"),
    ] {
        let error = assert_refused(&mut client, &call, refused);
        assert_eq!(error.detail(), Some("The multirange has 300001 ranges; the limit is 65536."));
    }
    assert_no_restart(&cluster);
}

#[test]
fn hash_ranges_are_read_in_little_memory() {
    let cluster = Cluster::new();
    let mut client = cluster.connect();
    run(
        &mut client,
        "CREATE SEQUENCE s;
         CREATE TABLE m (n int, ranges int8multirange);
         INSERT INTO m SELECT most, (SELECT range_agg(int8range(g * 60000, g * 60000 + 30000))
             FROM generate_series(-32768, most - 32769) g) FROM (VALUES (65536), (65537)) AS v (most)",
    );
    let call =
        |n| format!("SELECT snowflake_nextval_homed('s', 5, ranges) > 0 FROM m WHERE n = {n}");
    assert_eq!(printed(&mut client, &call(65536)), "t");
    let pid = backend_pid(&mut client);
    // Their text has 1.7 MB, and the server's function for it takes 200 MB.
    let at_limit =
        limited(pid, Limit::AddressSpace, 16 << 20, || printed(&mut client, &call(65536)));
    assert_eq!(at_limit, "t");
    let refused = Refusal { sqlstate: "54000", message: "too many hash ranges", hint: "" };
    // It is refused by its size, before it is decompressed.
    limited(pid, Limit::AddressSpace, 512 << 10, || {
        assert_refused(&mut client, &call(65537), refused);
    });
    assert_no_restart(&cluster);
}

/// What the calls below need.
const OBJECTS: &str = "
    CREATE SEQUENCE s;
    CREATE SEQUENCE other;
    CREATE TABLE multiranges AS SELECT range_agg(int8range(g * 1000000, g * 1000000 + 400000)) AS ranges
        FROM generate_series(-1000, 1000) g;
    CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5));
    CREATE TABLE by_shard (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
    CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    CREATE TABLE by_time (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE old (id bigserial PRIMARY KEY, other_id bigint REFERENCES old);
    SELECT snowflake_nextval('s', 5);
    DO $$ BEGIN EXECUTE 'CREATE TABLE wide (' ||
        (SELECT string_agg(format('c%s bigint DEFAULT snowflake_nextval(''s'', 5)', n), ',')
         FROM generate_series(1, 20) n) || ')'; END $$";

/// A call of each function. Some are repeated in one statement, as a session's first call does more than the others.
const CALLS: &[&str] = &[
    "SELECT snowflake_nextval('s', 5)",
    "SELECT snowflake_nextval('s')",
    "DISCARD SEQUENCES; SELECT snowflake_nextval('s', 5)",
    "BEGIN; CREATE SEQUENCE new; SELECT snowflake_nextval('new', 5), snowflake_currval('new'); ROLLBACK",
    "SELECT count(*) FROM snowflake_nextvals('s', 5, 3000)",
    "SELECT snowflake_nextvals('s', 5, 3)",
    "SELECT snowflake_nextval_homed('s', 1, 4)",
    "SELECT count(*) FROM snowflake_nextvals_homed('s', 1, 4, 3000)",
    "SELECT snowflake_nextval_homed('s', 1, '{[0,)}'::int8multirange)",
    "SELECT snowflake_nextval_homed('s', 1, ranges) FROM multiranges",
    "SELECT snowflake_nextvals_homed('s', 1, ranges, 3) FROM multiranges",
    "SELECT snowflake_nextval('s', 5); SELECT snowflake_currval('s'), snowflake_current_shard()",
    "SELECT snowflake_nextval('posts'::regclass, 5)",
    "SELECT snowflake_nextval('s', 9000)",
    "SELECT snowflake_decode(1), snowflake_created_at(1), snowflake_shard_id(1), snowflake_seq(1)",
    "SELECT snowflake_encode('2026-01-01', 5, 1), snowflake_min_id('2026-01-01')",
    "SELECT snowflake_decode(-1, 'js53')",
    "SELECT snowflake_explain(1)",
    "SELECT snowflake_from_base32(snowflake_to_base32(1)), snowflake_from_uuid(snowflake_to_uuid(1))",
    "SELECT snowflake_from_base32(repeat('x', 1000000))",
    "SELECT snowflake_from_uuid(gen_random_uuid())",
    "SELECT repeat('x', 1000000)::text::cstring::text::snowflake_layout",
    "SELECT 'acme'::text::snowflake_layout",
    "TABLE snowflake_layouts",
    "SELECT snowflake_clock(), snowflake_sequence_status('s')",
    "SELECT * FROM snowflake_columns",
    "SELECT snowflake_locate('by_shard', 1), snowflake_locate('posts', 1)",
    "SELECT snowflake_citus_ranges('posts')",
    "SELECT snowflake_citus_error('posts', 's', 5, false)",
    "SELECT * FROM snowflake_lease_status()",
    "BEGIN; SELECT snowflake_convert_column('old', 'id', 5); ROLLBACK",
    "SELECT snowflake_create_partitions('by_time', '1 month'); SELECT snowflake_drop_partitions('by_time', '1 month')",
    "SET pg_snowflake.owned_shards = '1-10, 20, 30-40'; RESET pg_snowflake.owned_shards",
    "SET pg_snowflake.owned_shards = '1-10, x'",
    "SET pg_snowflake.allowed_hosts = 'db-1, db_2'",
    "BEGIN; SELECT snowflake_lease('{5,6,7}', 'db-1', gen_random_uuid(), NULL, gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min');
     SELECT snowflake_release(incarnation, ARRAY[shard_id], ARRAY[serial], ends) FROM snowflake_leases;
     SELECT snowflake_take_over(5, 'db-2'); ROLLBACK",
];

/// A server on which each of [`CALLS`] can be made.
fn server_with(builder: Builder) -> (Cluster, Client) {
    let builder = builder.setting("pg_snowflake.shard_id", "5");
    let cluster = builder.setting("log_error_verbosity", "verbose").start();
    let mut client = cluster.connect();
    run(&mut client, OBJECTS);
    (cluster, client)
}

/// A lack of memory for which PostgreSQL itself ends the session.
const OF_CORE: &str = "53200 FATAL";

/// The SQLSTATE that a statement ends with, or why the session ended.
fn outcome(client: &mut Client, sql: &str) -> Result<String, String> {
    match client.simple_query(sql) {
        Ok(_) => Ok("00000".into()),
        Err(error) => match error.as_db_error() {
            Some(error) if error.severity() == "ERROR" => Ok(error.code().code().into()),
            // PostgreSQL ends a session that has no memory for a setting, such as the search_path of a function.
            Some(error) if error.routine() == Some("guc_malloc") => Ok(OF_CORE.into()),
            Some(error) => Err(format!("{} {error} {:?}", error.severity(), error.detail())),
            None => Err(error.to_string()),
        },
    }
}

fn is_expected(sqlstate: &str, usual: &str) -> bool {
    [usual, "53200", OF_CORE].contains(&sqlstate)
}

fn assert_no_restart(cluster: &Cluster) {
    let log = cluster.log();
    for sign in ["was terminated by signal", "PANIC:", "all server processes terminated"] {
        assert!(!log.contains(sign), "{sign} in the log:\n{log}");
    }
}

/// What statements end with, and how often.
type Outcomes = BTreeMap<String, usize>;

#[test]
fn a_statement_fails_and_nothing_else_wherever_malloc_fails() {
    if !memory::can_fail() {
        return left_out("a malloc() that fails", "a C compiler");
    }
    let (cluster, mut client) = server_with(Builder::default().failing_malloc());
    let malloc = Malloc::of(cluster.dir());
    let mut broken = Vec::new();
    for call in CALLS {
        let usual = outcome(&mut client, call).expect("the server is up");
        run(&mut client, "ROLLBACK");
        let mut pid = backend_pid(&mut client);
        let mut outcomes = Outcomes::new();
        for left in 0.. {
            let (found, failed) = malloc.fail_after(pid, left, || outcome(&mut client, call));
            match found {
                Ok(sqlstate) if is_expected(&sqlstate, &usual) => {
                    if sqlstate == OF_CORE {
                        client = cluster.connect_again();
                        pid = backend_pid(&mut client);
                    }
                    *outcomes.entry(sqlstate).or_default() += 1;
                }
                other => {
                    broken.push(format!("{call}\n    after {left}: {other:?}, usually {usual}"));
                    if other.is_err() {
                        client = cluster.connect_again();
                        break;
                    }
                }
            }
            run(&mut client, "ROLLBACK");
            if failed == 0 {
                break;
            }
        }
        println!("{outcomes:?} {call}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_no_restart(&cluster);
}

#[test]
fn a_statement_fails_and_nothing_else_at_every_limit_of_memory() {
    let (cluster, mut superuser) = server_with(Builder::default());
    let mut broken = Vec::new();
    for call in CALLS {
        let usual = outcome(&mut superuser, call).expect("the server is up");
        run(&mut superuser, "ROLLBACK");
        let mut outcomes = Outcomes::new();
        for limit in [Limit::AddressSpace, Limit::Data] {
            for more in [0, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 4 << 20] {
                let mut client = cluster.connect_again();
                run(&mut client, "LOAD 'pg_snowflake'");
                let pid = backend_pid(&mut client);
                match limited(pid, limit, more, || outcome(&mut client, call)) {
                    Ok(sqlstate) if is_expected(&sqlstate, &usual) => {
                        *outcomes.entry(sqlstate).or_default() += 1;
                    }
                    other => broken
                        .push(format!("{call}\n    {limit:?} {more}: {other:?}, usually {usual}")),
                }
            }
        }
        println!("{outcomes:?} {call}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_no_restart(&cluster);
}
