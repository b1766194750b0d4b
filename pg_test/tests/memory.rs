//! Sessions that run out of memory: a statement fails, and the server and the other sessions go on.

use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::memory::{self, Limit, Malloc, limited};
use pg_snowflake_harness::prelude::*;
use std::collections::BTreeMap;

#[test]
fn hash_ranges_are_read_in_little_memory() {
    let sql = "CREATE SEQUENCE s;
        CREATE TABLE m (n int, ranges int8multirange);
        INSERT INTO m SELECT most, (SELECT range_agg(int8range(g * 60000, g * 60000 + 30000))
            FROM generate_series(-32768, most - 32769) g) FROM (VALUES (65536), (65537)) AS v (most)";
    let (cluster, mut client) = server_with(sql);
    let call = |n| format!("SELECT snowflake_nextval_homed_in_ranges('s', 5, ranges) > 0 FROM m WHERE n = {n}");
    assert_eq!(printed(&mut client, &call(65536)), "t");
    let pid = backend_pid(&mut client);
    // Their text has 1.7 MB, and the server's function for it takes 200 MB.
    assert_eq!(limited(pid, Limit::AddressSpace, 16 << 20, || printed(&mut client, &call(65536))), "t");
    let refused = Refusal { sqlstate: "54000", message: "too many hash ranges", hint: "not single hashes" };
    // It is refused by its size, before it is decompressed.
    for call in [call(65537), "SELECT snowflake_nextvals_homed_in_ranges('s', 5, ranges, 1) FROM m WHERE n = 65537".to_owned()] {
        let error = limited(pid, Limit::AddressSpace, 512 << 10, || assert_refused(&mut client, &call, refused));
        assert_eq!(error.detail(), Some("The multirange has 65537 ranges; the limit is 65536."));
    }
    assert_no_restart(&cluster);
}

const OBJECTS: &str = "
    CREATE EXTENSION pg_snowflake_registry;
    CREATE SEQUENCE s;
    CREATE SEQUENCE other;
    CREATE TABLE multiranges AS SELECT range_agg(int8range(g * 1000000, g * 1000000 + 400000)) AS ranges
        FROM generate_series(-1000, 1000) g;
    CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5));
    CREATE TABLE by_shard (id bigint) PARTITION BY HASH (id snowflake_shard_ops);
    CREATE TABLE by_shard_0 PARTITION OF by_shard FOR VALUES WITH (MODULUS 1, REMAINDER 0);
    CREATE TABLE by_time (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE TABLE old (id bigserial PRIMARY KEY, other_id bigint REFERENCES old);
    CREATE TABLE copied AS SELECT snowflake_encode(at, n * 617 % 4096, n % 1024) AS id, at
        FROM (SELECT n, '2026-01-01Z'::timestamptz + n * interval '1 min' AS at FROM generate_series(1, 5000) n) t;
    SELECT snowflake_nextval('s', 5);
    DO $$ BEGIN EXECUTE 'CREATE TABLE wide (' ||
        (SELECT string_agg(format('c%s bigint DEFAULT snowflake_nextval(''s'', 5)', n), ',')
         FROM generate_series(1, 20) n) || ')';
        EXECUTE 'CREATE TABLE calls (id bigint DEFAULT coalesce(' ||
        (SELECT string_agg('snowflake_nextval(''s'', 5)', ',') FROM generate_series(1, 1000)) || '))'; END $$";

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
    "SELECT snowflake_nextval_homed_in_ranges('s', 1, '{[0,)}'::int8multirange)",
    "SELECT snowflake_nextval_homed_in_ranges('s', 1, ranges) FROM multiranges",
    "SELECT snowflake_nextvals_homed_in_ranges('s', 1, ranges, 3) FROM multiranges",
    "SELECT snowflake_nextval('s', 5); SELECT snowflake_currval('s'), snowflake_current_shard()",
    "SELECT snowflake_nextval('posts'::regclass, 5)",
    "SELECT snowflake_nextval('s', 9000)",
    "SELECT snowflake_decode(1), snowflake_created_at(1), snowflake_shard_id(1), snowflake_seq(1)",
    "SELECT snowflake_encode('2026-01-01', 5, 1), snowflake_min_id('2026-01-01')",
    "SELECT snowflake_decode(-1, 'js53')",
    "SELECT snowflake_explain(1)",
    "SELECT snowflake_explain(1, 'twitter')",
    "SELECT snowflake_from_base32(snowflake_to_base32(1)), snowflake_from_uuid(snowflake_to_uuid(1))",
    "SELECT snowflake_from_base32(repeat('x', 1000000))",
    "SELECT snowflake_from_uuid(gen_random_uuid())",
    "SELECT repeat('x', 1000000)::text::cstring::text::snowflake_layout",
    "SELECT 'absent'::text::snowflake_layout",
    "TABLE snowflake_layouts",
    "SELECT snowflake_find_layout('copied', 'id', 'at')",
    "SELECT snowflake_find_layout(array_agg(id), array_agg(at)) FROM copied",
    "SELECT snowflake_clock(), snowflake_sequence_status('s')",
    "SELECT count(*) FROM pg_attrdef, _snowflake_generator_calls(adbin) WHERE adrelid = 'calls'::regclass",
    "SELECT * FROM snowflake_columns WHERE table_name <> 'calls'::regclass",
    "SELECT snowflake_locate('by_shard', 1), snowflake_locate('posts', 1)",
    "SELECT snowflake_citus_ranges('posts')",
    "SELECT _snowflake_citus_error('posts', 's', 5, false)",
    "SELECT _snowflake_replaced_default_error('s', NULL, true)",
    "SELECT _snowflake_layout_error('posts', 'id', 'twitter', NULL)",
    "SELECT * FROM snowflake_lease_status(), snowflake_lease_mode()",
    "SELECT snowflake_forget_registry()",
    "SELECT snowflake_layout_info(layout) FROM _snowflake_presets() AS layout",
    "BEGIN; SELECT snowflake_convert_column('old', 'id', 5); ROLLBACK",
    "SELECT snowflake_create_partitions('by_time', '1 month'); SELECT snowflake_drop_partitions('by_time', '1 month')",
    "SET pg_snowflake.owned_shards = '1-10, 20, 30-40'; RESET pg_snowflake.owned_shards",
    "SET pg_snowflake.owned_shards = '1-10, x'",
    "SET pg_snowflake.allowed_hosts = 'db-1, db_2'",
    "BEGIN; SELECT snowflake_registry.claim('{5,6,7}', 'db-1', gen_random_uuid(), NULL, gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min');
     SELECT snowflake_registry.release(incarnation, ARRAY[shard_id], ARRAY[serial], ends) FROM snowflake_registry.shards;
     SELECT snowflake_registry.take_over(5, 'db-2'); SELECT snowflake_registry.retire('db-2'), snowflake_registry.end_quiet_time(),
         snowflake_registry.is_own_change(); ROLLBACK",
];

/// Other than those of operators and of the input and output of types, which statements call without their names.
#[test]
fn every_function_of_the_library_is_called() {
    let (_database, mut client) = database_with("CREATE EXTENSION pg_snowflake_registry");
    let names = "SELECT DISTINCT proname FROM pg_proc WHERE probin = '$libdir/pg_snowflake'
                 AND proname !~ '_(in|out|recv|send|eq|ne|hash|shard_hash.*)$'";
    let names = printed(&mut client, names);
    assert!(names.lines().count() > 30, "{names}");
    let is_called = |name: &&str| CALLS.iter().any(|call| call.contains(&format!("{name}(")));
    let forgotten: Vec<&str> = names.lines().filter(|name| !is_called(name)).collect();
    assert_eq!(forgotten, [""; 0]);
}

fn server_of_shard_5(builder: Builder) -> (Cluster, Client) {
    let cluster = builder.setting("pg_snowflake.shard_id", "5").setting("log_error_verbosity", "verbose").start();
    let mut client = cluster.connect();
    run(&mut client, OBJECTS);
    (cluster, client)
}

/// A lack of memory for which PostgreSQL itself ends the session.
const OF_CORE: &str = "53200 FATAL";

/// The SQLSTATE that a statement ends with, or why the session ended.
fn outcome(cluster: &Cluster, client: &mut Client, sql: &str) -> Result<String, String> {
    let Err(error) = client.simple_query(sql) else { return Ok("00000".into()) };
    // PostgreSQL ends a session that has no memory for a setting, such as the search_path of a function.
    let is_of_core = |routine: &str| ["guc_malloc", "guc_strdup"].contains(&routine);
    match error.as_db_error() {
        Some(error) if error.severity() == "ERROR" => Ok(error.code().code().into()),
        Some(error) if error.routine().is_some_and(is_of_core) => Ok(OF_CORE.into()),
        Some(error) => Err(format!("{error:?}")),
        // The client may see only the end of the session. The location is logged in the line after the error.
        None => match cluster.log().rsplit_once(" FATAL: ").map(|(_, rest)| rest.lines().nth(1)) {
            Some(Some(location)) if location.contains(" guc_") => Ok(OF_CORE.into()),
            _ => Err(error.to_string()),
        },
    }
}

fn session(cluster: &Cluster) -> Client {
    let mut client = cluster.connect_again();
    run(&mut client, "LOAD 'pg_snowflake'");
    client
}

/// A setting is also rejected if there is no memory for its value.
fn is_expected(call: &str, sqlstate: &str, usual: &str) -> bool {
    [usual, "53200", OF_CORE].contains(&sqlstate) || (call.contains("pg_snowflake.") && sqlstate == "22023")
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
    let (cluster, mut client) = server_of_shard_5(Builder::default().failing_malloc());
    let malloc = Malloc::of(cluster.dir());
    let mut broken = Vec::new();
    for call in CALLS {
        let usual = outcome(&cluster, &mut client, call).expect("the server is up");
        run(&mut client, "ROLLBACK");
        let mut pid = backend_pid(&mut client);
        let mut outcomes = Outcomes::new();
        let mut left = 0;
        loop {
            let (found, failed) = malloc.fail_after(pid, left, || outcome(&cluster, &mut client, call));
            match found {
                Ok(sqlstate) if is_expected(call, &sqlstate, &usual) => {
                    if sqlstate == OF_CORE {
                        client = session(&cluster);
                        pid = backend_pid(&mut client);
                    }
                    *outcomes.entry(sqlstate).or_default() += 1;
                }
                other => {
                    broken.push(format!("{call}\n    after {left}: {other:?}, usually {usual}"));
                    if other.is_err() {
                        client = session(&cluster);
                        break;
                    }
                }
            }
            run(&mut client, "ROLLBACK");
            if failed == 0 {
                break;
            }
            // Each of the first calls, and then fewer, since some statements make thousands.
            left += 1 + left / 32;
        }
        println!("{outcomes:?} {call}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_no_restart(&cluster);
}

/// Calls with the largest arguments and on the largest objects that take no longer than a second.
const LARGEST: &[&str] = &[
    "SELECT snowflake_from_base32(repeat('x', 20000000))",
    "SELECT snowflake_layout_in(textout(repeat('x', 20000000)))",
    "SELECT snowflake_nextvals('s', 5, 2000000000) LIMIT 3",
    "SELECT snowflake_nextvals_homed('s', 1, 4, 2000000000) LIMIT 3",
    "SELECT snowflake_nextval_homed_in_ranges('s', 1, ranges) FROM many_ranges",
    "SELECT snowflake_nextvals_homed_in_ranges('s', 1, ranges, 2000000000) FROM many_ranges LIMIT 3",
    "SELECT set_config('pg_snowflake.owned_shards', repeat('5,', 10000000), false)",
    "SELECT set_config('pg_snowflake.owned_shards', repeat('5,', 490000) || '5', false)",
    "SELECT set_config('pg_snowflake.allowed_hosts', repeat('é,', 10000000), false)",
    "SELECT set_config('pg_snowflake.allowed_hosts', repeat('a,', 490000) || 'a', false)",
    "SELECT snowflake_registry.claim(array_fill(5, ARRAY[10000000]), 'db-1', gen_random_uuid(), NULL, gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min')",
    "SELECT snowflake_registry.claim('{5}', repeat('x', 20000000), gen_random_uuid(), NULL, gen_random_uuid(),
         clock_timestamp() + interval '5 min', interval '5 min')",
    "SELECT snowflake_registry.take_over(5, repeat('x', 20000000))",
    "SELECT * FROM snowflake_columns WHERE table_name <> 'calls'::regclass",
    "SELECT snowflake_locate('of_many', 1)",
    "SELECT snowflake_drop_partitions('of_many', '1 month')",
    "SELECT snowflake_create_partitions('of_many', '1 day', 90)",
    "BEGIN; SELECT snowflake_convert_column('many', 'id', 5); ROLLBACK",
];

const LARGEST_OBJECTS: &str = "
    CREATE TABLE many_ranges AS SELECT range_agg(int8range(g * 60000, g * 60000 + 30000)) AS ranges
        FROM generate_series(-32768, 32767) g;
    DO $$ BEGIN EXECUTE 'CREATE TABLE widest (' ||
        (SELECT string_agg(format('c%s bigint DEFAULT snowflake_nextval(''s'', 5)', n), ',')
         FROM generate_series(1, 1600) n) || ')';
        EXECUTE format('CREATE TABLE longest (id bigint DEFAULT snowflake_nextval(''s'', length(%L)))',
            repeat('x', 500000));
    END $$;
    CREATE TABLE of_many (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    SELECT snowflake_create_partitions('of_many', '1 day', 60);
    CREATE TABLE many (id bigserial PRIMARY KEY);
    DO $$ BEGIN FOR n IN 1..40 LOOP
        EXECUTE format('CREATE TABLE references_%s (id bigint REFERENCES many)', n);
    END LOOP; END $$";

#[test]
fn a_statement_with_the_largest_arguments_fails_and_nothing_else() {
    let (cluster, mut superuser) = server_of_shard_5(Builder::default());
    run(&mut superuser, LARGEST_OBJECTS);
    let mut broken = Vec::new();
    for call in LARGEST {
        let usual = outcome(&cluster, &mut session(&cluster), call).expect("the server is up");
        let mut outcomes = Outcomes::new();
        for limit in [Limit::AddressSpace, Limit::Data] {
            for more in [2 << 20, 32 << 20] {
                let mut client = session(&cluster);
                let pid = backend_pid(&mut client);
                match limited(pid, limit, more, || outcome(&cluster, &mut client, call)) {
                    Ok(sqlstate) if is_expected(call, &sqlstate, &usual) => {
                        *outcomes.entry(sqlstate).or_default() += 1;
                    }
                    other => broken.push(format!("{call}\n    {limit:?} {more}: {other:?}, usually {usual}")),
                }
            }
        }
        println!("{outcomes:?} {call}");
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert_no_restart(&cluster);
}

/// PostgreSQL drops a value for which it has no memory when the library is loaded, with a warning only.
#[test]
fn a_session_that_loads_the_library_with_little_memory_opens_no_fence() {
    let most_shards: Vec<String> = (0..8192).filter(|&shard| shard != 100).map(|shard| shard.to_string()).collect();
    let owned = vec![most_shards.join(","); 15].join(",");
    let cluster = Cluster::builder().setting("pg_snowflake.owned_shards", &owned).start();
    run(&mut cluster.connect(), "CREATE SEQUENCE s");
    let (mut lost, mut refused) = (0, 0);
    for more in (1000..20_000).step_by(200) {
        let mut client = cluster.connect();
        let pid = backend_pid(&mut client);
        let call = || client.simple_query("SELECT snowflake_nextval('s', 100)").err();
        let error = limited(pid, Limit::AddressSpace, more << 10, call);
        let error = error.unwrap_or_else(|| panic!("an ID, with {more} kB"));
        let message = error.as_db_error().map_or("", |error| error.message());
        lost += usize::from(message.contains("was lost"));
        refused += usize::from(message.contains("not owned"));
    }
    // Else the limits are too narrow or too wide.
    assert!(lost > 0 && refused > 0, "{lost} lost, {refused} refused");
    assert_no_restart(&cluster);
}
