//! The functions of `sql/managed` on servers that also have the extension: they return the same, refuse the same, and can be replaced
//! by it and put back.

mod generating;
mod handing_over;
mod search_path;

use Begin::{Next, Start};
use pg_snowflake_harness::prelude::*;
use postgres::error::DbError;

pub const FILE: &str = include_str!("../../sql/managed/pg_snowflake_managed.sql");
pub const UNINSTALL: &str = include_str!("../../sql/managed/pg_snowflake_managed_uninstall.sql");

/// A database with the extension, the file, and a sequence `s`.
fn managed() -> (Database, Client) {
    let (database, mut client) = database();
    database.psql(FILE);
    run(&mut client, "CREATE SEQUENCE s");
    (database, client)
}

/// A layout as constants of the file: its name, epoch, tick, widths of time, shard and seq, and whether the shard is lowest and XORed.
type Constants = (&'static str, i64, i64, i32, i32, i32, bool, bool);

const DEFAULT: Constants = ("postgres", 1_262_304_000_000, 1_000, 41, 12, 10, true, true);
const INSTAGRAM: Constants = ("instagram", 1_314_220_021_721, 1_000, 41, 13, 10, false, false);
const JS53: Constants = ("js53", 1_577_836_800_000, 1_000, 41, 7, 5, false, false);

const LAYOUTS: [Constants; 6] = [
    DEFAULT,
    INSTAGRAM,
    ("twitter", 1_288_834_974_657, 1_000, 41, 10, 12, false, false),
    ("sonyflake", 1_409_529_600_000, 10_000, 39, 16, 8, true, false),
    JS53,
    ("time:37 seq:7 shard_xor_above:19 epoch:2020-01-01 unit:10ms", 1_577_836_800_000, 10_000, 37, 19, 7, true, true),
];

fn file_for(layout: Constants) -> String {
    constants(layout).iter().zip(constants(DEFAULT)).fold(FILE.to_owned(), |file, ((constant, value), (_, default))| {
        let start = format!("('{constant}', ");
        let line = file.lines().find(|line| line.trim().starts_with(&start)).unwrap();
        let default = format!(" '{default}', ");
        assert!(line.contains(&default), "{line}");
        file.replace(line, &line.replace(&default, &format!(" '{value}', ")))
    })
}

fn constants((name, epoch_ms, tick_us, time, shard, seq, is_lowest, is_xored): Constants) -> [(&'static str, String); 8] {
    [
        ("layout", name.to_owned()),
        ("epoch_ms", epoch_ms.to_string()),
        ("tick_us", tick_us.to_string()),
        ("time_bits", time.to_string()),
        ("shard_bits", shard.to_string()),
        ("seq_bits", seq.to_string()),
        ("shard_is_lowest", is_lowest.to_string()),
        ("shard_is_xored", is_xored.to_string()),
    ]
}

/// The ends and the neighbours of powers of two, and random values: IDs, and times before, within and after the layout.
const VALUES: &str = "
    edge AS (
        SELECT (s * 2::numeric ^ n + d) AS number
        FROM generate_series(0, 63) AS n, generate_series(-2, 2) AS d, unnest('{-1, 1}'::int[]) AS s
    ), id AS (
        SELECT number::int8 AS id FROM edge WHERE number BETWEEN -9223372036854775808 AND 9223372036854775807
        UNION ALL SELECT ('x' || md5(n::text))::bit(64)::int8 >> (n % 64) FROM generate_series(1, 4000) AS n
    ), instant AS (
        SELECT timestamptz 'epoch' + interval '1 us' * (id % 5000000000000000) AS at FROM id
        UNION ALL SELECT unnest('{-infinity, infinity, 4713-01-01 BC, 294276-12-31 23:59:59.999999}'::timestamptz[])
        UNION ALL SELECT snowflake_created_at(id & $mask, '$layout') + interval '1 us' * d
        FROM id, generate_series(-1, 1) AS d WHERE id % 7 = 0
    )";

fn assert_equal_to_the_extension(layout: Constants) {
    let (name, _, _, time, shard, seq, ..) = layout;
    let (database, mut client) = database();
    database.psql(&file_for(layout));
    let bits = time + shard + seq;
    let mask = if bits == 64 { "-1".to_owned() } else { ((1_u64 << bits) - 1).to_string() };
    let differences = format!(
        "WITH {VALUES}
        SELECT 'id', (id & $mask)::text FROM id
        WHERE (SELECT m FROM snowflake_managed.snowflake_decode(id & $mask) AS m)::text
                IS DISTINCT FROM (SELECT n FROM snowflake_decode(id & $mask, '$layout') AS n)::text
            OR snowflake_managed.snowflake_created_at(id & $mask) IS DISTINCT FROM snowflake_created_at(id & $mask, '$layout')
            OR snowflake_managed.snowflake_shard_id(id & $mask) IS DISTINCT FROM snowflake_shard_id(id & $mask, '$layout')
            OR snowflake_managed.snowflake_seq(id & $mask) IS DISTINCT FROM snowflake_seq(id & $mask, '$layout')
            OR CASE WHEN id & $mask >= 0
                THEN snowflake_managed.snowflake_encode(snowflake_created_at(id & $mask, '$layout') + interval '999 us',
                    snowflake_shard_id(id & $mask, '$layout'), snowflake_seq(id & $mask, '$layout')) <> id & $mask END
        UNION ALL
        SELECT 'time', at::text FROM instant
        WHERE snowflake_managed.snowflake_min_id(at) IS DISTINCT FROM snowflake_min_id(at, '$layout')
        UNION ALL
        SELECT 'between', id::text FROM id,
            LATERAL (SELECT timestamptz 'epoch' + interval '1 us' * (id / 5000)) AS s (since),
            LATERAL (SELECT since + interval '1 day' * (id % 3000) UNION ALL SELECT 'infinity'
                UNION ALL SELECT snowflake_created_at(id & $mask, '$layout')) AS u (until)
        WHERE snowflake_managed.snowflake_between(id, since, until) IS DISTINCT FROM snowflake_between(id, since, until, '$layout')
        LIMIT 5"
    );
    let differences = differences.replace("$mask", &mask).replace("$layout", name);
    assert_eq!(printed(&mut client, &differences), "", "{name}");

    assert_same_errors(&mut client, layout);
    assert_same_beginnings(&mut client, layout);

    // IDs by turns from one sequence: one layout, one counter.
    let generated = format!(
        "CREATE SEQUENCE s; CREATE TABLE ids AS
            SELECT snowflake_nextval('s', 5, '{name}') AS native, snowflake_managed.snowflake_nextval('s', 5) AS managed,
                (SELECT max(id) FROM snowflake_managed.snowflake_nextvals('s', 5, n) AS id) AS batch
            FROM generate_series(1, 20) AS n;
        SELECT bool_and(snowflake_managed.snowflake_shard_id(managed) = 5 AND native < managed AND managed < batch), count(DISTINCT managed),
            bool_and(snowflake_created_at(managed, '{name}') BETWEEN now() - interval '1 min' AND clock_timestamp() + interval '1 s')
        FROM ids"
    );
    assert_eq!(printed(&mut client, &generated), "t|20|t", "{name}");
}

/// The first seq of a sequence.
#[derive(Clone, Copy)]
enum Begin {
    /// Of a sequence behind the clock that has not been called: this value, plus what the shard adds.
    Start(i64),
    /// Of any other sequence.
    Next(i64),
}

/// What precedes a call on the sequence `q`.
const BEGINNINGS: [(&str, Begin); 12] = [
    ("CREATE SEQUENCE q", Start(1)),
    ("CREATE SEQUENCE q; SELECT nextval('q'); ALTER SEQUENCE q RESTART", Start(1)),
    ("CREATE SEQUENCE q START 1000", Start(1000)),
    ("CREATE TEMP SEQUENCE q", Start(1)),
    ("CREATE UNLOGGED SEQUENCE q", Start(1)),
    ("CREATE UNLOGGED SEQUENCE q; SELECT setval('q', 1023)", Next(1024)),
    ("CREATE SEQUENCE q CACHE 20; SELECT setval('q', 1)", Next(2)),
    ("CREATE SEQUENCE q MINVALUE -9223372036854775808; SELECT setval('q', -9223372036854775808)", Next(1)),
    ("CREATE SEQUENCE q MINVALUE -9223372036854775808 START -9223372036854775808", Start(0)),
    ("CREATE SEQUENCE q; SELECT setval('q', 41, false)", Start(41)),
    ("CREATE SEQUENCE q; SELECT setval('q', 41)", Next(42)),
    (
        "CREATE SEQUENCE q; SELECT setval('q', (snowflake_managed.clock_tick() + 3600000000 / snowflake_managed.tick_us())
            << snowflake_managed.seq_bits() | 2, false)",
        Next(2),
    ),
];

/// The seqs of the first two IDs, on several shards.
fn assert_same_beginnings(client: &mut Client, (name, _, _, _, shard_bits, seq_bits, ..): Constants) {
    let sql = "SET pg_snowflake.max_lead = '2h';
        CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
        AS 'SELECT 7200000000::pg_catalog.int8'";
    run(client, sql);
    let last_shard = (1_i64 << shard_bits) - 1;
    for (before, begins_at) in BEGINNINGS {
        for shard in [0, 1, 2, 5, last_shard - 1, last_shard] {
            let [native, managed, batch] = [
                format!("(SELECT snowflake_nextval('q', {shard}, '{name}') FROM generate_series(1, 2))"),
                format!("(SELECT snowflake_managed.snowflake_nextval('q', {shard}) FROM generate_series(1, 2))"),
                format!("snowflake_managed.snowflake_nextvals('q', {shard}, 2)"),
            ]
            .map(|calls| {
                run(client, before);
                let seqs = printed(client, &format!("SELECT string_agg(snowflake_seq(id, '{name}')::text, ',') FROM {calls} AS ids (id)"));
                run(client, "DROP SEQUENCE q");
                seqs
            });
            let first = match begins_at {
                Start(value) => value + shard * 617,
                Next(value) => value,
            };
            let [first, second] = [first, first + 1].map(|seq| seq % (1 << seq_bits));
            let both = format!("{first},{second}");
            assert_eq!([&managed, &batch], [&both; 2], "{name}: {before}; shard {shard}");
            // A lost message of the server's other databases discards what a session of the extension has cached.
            assert!(native == both || before.contains("CACHE"), "{name}: {before}; shard {shard}: {native}");
        }
    }
}

/// Just outside of the bits of an ID, and of its fields.
fn assert_same_errors(client: &mut Client, (name, epoch_ms, tick_us, time, shard, seq, ..): Constants) {
    let bits = time + shard + seq;
    let ids = if bits == 64 { vec![] } else { vec![-1, i64::MIN, i64::MAX] };
    let is_id = |id: i64| bits == 63 && id > 0;
    let decoded = ids
        .into_iter()
        .filter(|&id| !is_id(id))
        .flat_map(|id| ["created_at", "shard_id", "seq", "decode"].map(|part| format!("{part}('{id}'")));
    let (shards, seqs) = (1 << shard, 1 << seq);
    // The sign bit of an ID is never set.
    let ticks = 1_i64 << time.min(63 - shard - seq);
    let after = format!("to_timestamp({epoch_ms} / 1000.0) + {ticks} * interval '{tick_us} us'");
    let encoded = [
        "now(), -1, 0".to_owned(),
        format!("now(), {shards}, 0"),
        "now(), 0, -1".to_owned(),
        format!("now(), 0, {seqs}"),
        format!("to_timestamp({epoch_ms} / 1000.0) - interval '1 us', 0, 0"),
        format!("{after}, 0, 0"),
    ]
    .map(|arguments| format!("encode({arguments}"));
    for call in decoded.chain(encoded) {
        let native = refused(client, &format!("SELECT public.snowflake_{call}, layout => '{name}')"));
        let managed = refused(client, &format!("SELECT snowflake_managed.snowflake_{call})"));
        assert_same_words(&native, &managed, &format!("{name}: {call}"));
    }
}

#[test]
fn every_value_is_decoded_encoded_and_searched_as_the_extension_does() {
    LAYOUTS.into_iter().for_each(assert_equal_to_the_extension);
}

/// Each with `F.` before a function, and what precedes it.
const REFUSED: [(&str, &str); 33] = [
    ("", "SELECT F.snowflake_nextval('s', -1)"),
    ("", "SELECT F.snowflake_nextval('s', 4096)"),
    ("", "SELECT F.snowflake_nextval('t', 5)"),
    ("", "SELECT F.snowflake_nextval('s')"),
    ("", "SELECT F.snowflake_encode('2009-12-31 23:59:59.999999Z', 5, 6)"),
    ("", "SELECT F.snowflake_encode('2079-09-07 15:47:35.552Z', 5, 6)"),
    ("", "SELECT F.snowflake_encode('infinity', 5, 6)"),
    ("", "SELECT F.snowflake_encode('-infinity', 5, 6)"),
    ("", "SELECT F.snowflake_encode(now(), -1, 6)"),
    ("", "SELECT F.snowflake_encode(now(), 4096, 6)"),
    ("", "SELECT F.snowflake_encode(now(), 5, 1024)"),
    ("", "SELECT F.snowflake_encode(now(), 5, -1)"),
    ("CREATE SEQUENCE bad AS int", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad INCREMENT 2", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad INCREMENT -1", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad CYCLE", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad MAXVALUE 1000", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad MINVALUE 281474976710657 MAXVALUE 562949953421313", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad; SELECT setval('bad', 9223372036854775807)", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad; SELECT setval('bad', 9223372036854775807, false)", "SELECT F.snowflake_nextval('bad', 5)"),
    ("", "BEGIN READ ONLY; SELECT F.snowflake_nextval('s', 5)"),
    ("DROP SCHEMA IF EXISTS \"a b\"; CREATE SEQUENCE bad CYCLE", "SELECT F.snowflake_nextval('bad')"),
    ("CREATE TABLE bad ()", "SELECT F.snowflake_nextval('bad', 5)"),
    ("CREATE SEQUENCE bad", "SET ROLE other; SELECT F.snowflake_nextval('bad', 5)"),
    ("", "SELECT F.snowflake_nextvals('s', 5, -1)"),
    ("", "SELECT F.snowflake_nextvals('s', -1)"),
    ("", "SELECT F.snowflake_nextvals('s', 4096, 10)"),
    ("", "SELECT F.snowflake_nextvals('s', 4096, 0)"),
    ("", "SELECT F.snowflake_nextvals('s', 10)"),
    ("", "BEGIN READ ONLY; SELECT F.snowflake_nextvals('s', 5, 10)"),
    ("CREATE SEQUENCE bad CYCLE", "SELECT F.snowflake_nextvals('bad', 5, 10)"),
    ("CREATE SEQUENCE bad MAXVALUE 1000", "SELECT F.snowflake_nextvals('bad', 5, 10)"),
    ("CREATE SEQUENCE bad", "SET ROLE other; SELECT F.snowflake_nextvals('bad', 5, 10)"),
];

#[test]
fn what_the_extension_refuses_is_refused_with_the_same_words() {
    let (_database, mut client) = managed();
    run(&mut client, "CREATE TABLE t ()");
    for (before, sql) in REFUSED {
        let [native, managed] = ["public", "snowflake_managed"].map(|schema| {
            run(&mut client, "ROLLBACK; RESET ROLE; DROP SEQUENCE IF EXISTS bad");
            run(&mut client, before);
            let error = refused(&mut client, &sql.replace("F.", &format!("{schema}.")));
            let kind = if before.starts_with("CREATE TABLE") { "TABLE" } else { "SEQUENCE" };
            run(&mut client, "ROLLBACK; RESET ROLE");
            run(&mut client, &format!("DROP {kind} IF EXISTS bad"));
            error
        });
        assert_same_words(&native, &managed, &format!("{before}; {sql}"));
    }
}

/// What `docs/managed.md` lists: a part of the extension's detail or hint, and one of the other words of the managed functions.
const DIFFERENT: [(&str, &str); 7] = [
    ("Pass the layout that the ID was generated with.", "Pass an ID that was generated with this layout."),
    ("Pass a sequence to snowflake_nextval().", "| |"),
    ("Start the transaction with BEGIN READ WRITE.", "| |"),
    ("Run: GRANT USAGE ON SEQUENCE", "| |"),
    ("SET pg_snowflake.shard_id = 5", "FUNCTION snowflake_managed.this_shard() RETURNS text"),
    ("longer than pg_snowflake.max_wait", "longer than snowflake_managed.max_wait_us()"),
    ("Run on the coordinator:", "Name the sequence in the default by text:"),
];

fn assert_same_words(native: &DbError, managed: &DbError, what: &str) {
    // setval() raises its own error, and the clock goes on between the two calls.
    let function = if what.contains("nextvals") { "snowflake_nextvals()" } else { "snowflake_nextval()" };
    let message = managed.message().replace("setval()", function);
    // The words of setval() from 17 on, in access/sequence/sequence.c.
    if message.starts_with("cannot open relation ") {
        assert!(native.message().ends_with(" is not a sequence"), "{what}: {native}");
        return assert_eq!(managed.code(), native.code(), "{what}");
    }
    assert_eq!((managed.code(), &*message), (native.code(), native.message()), "{what}");
    let [native, managed] = [native, managed].map(|error| {
        let detail = error.detail().unwrap_or_default();
        let detail = detail.split_once("the next counter, ").map_or(detail, |(before, _)| before);
        format!("|{detail} |{}", error.hint().unwrap_or_default())
    });
    match DIFFERENT.iter().find(|(part, _)| native.contains(part)) {
        Some((_, part)) => assert!(managed.contains(part), "{what}: {managed}"),
        None => assert_eq!(managed, native, "{what}"),
    }
}

#[test]
fn the_file_runs_again_keeps_the_shard_and_refuses_another_layout() {
    let (database, mut client) = managed();
    run(&mut client, "CREATE OR REPLACE FUNCTION snowflake_managed.this_shard() RETURNS text LANGUAGE sql STABLE AS $$ SELECT '7' $$");
    database.psql(FILE);
    assert_eq!(printed(&mut client, "SELECT snowflake_managed.snowflake_shard_id(snowflake_managed.snowflake_nextval('s'))"), "7");

    let error = refused(&mut client, &file_for(INSTAGRAM));
    assert_eq!(error.code().code(), "55000");
    assert_eq!(error.detail(), Some("It returns postgres, and the file has instagram."));
    assert_eq!(printed(&mut client, "SELECT snowflake_managed.layout()"), "postgres");
}

#[test]
fn constants_that_are_not_a_layout_are_not_installed() {
    let (_database, mut client) = database();
    for layout in [
        ("wide", 0, 1_000, 44, 13, 10, false, false),
        ("timeless", 0, 1_000, 0, 13, 10, false, false),
        ("negative", 0, 1_000, 41, -1, 10, false, false),
        ("long", 0, 1_000, 20, 10, 32, false, false),
        ("still", 0, 0, 41, 13, 10, false, false),
        ("uneven", 0, 3, 41, 13, 10, false, false),
        ("early", -1, 1_000, 41, 13, 10, false, false),
        ("in microseconds", 1_314_220_021_721_000, 1_000, 41, 13, 10, false, false),
        ("xored above seq", 0, 1_000, 41, 13, 10, false, true),
    ] {
        let error = refused(&mut client, &file_for(layout));
        assert_eq!(error.code().code(), "22023", "{layout:?}: {error:?}");
        assert_eq!(printed(&mut client, "SELECT to_regnamespace('snowflake_managed') IS NULL"), "t");
    }
}

#[test]
fn the_file_runs_no_function_of_another_role() {
    let (cluster, mut superuser) = server();
    // Without quotes, these names are those of other roles, or none.
    for role in ["App", "Ann@corp.example"] {
        let database = format!("of {role}");
        run(&mut superuser, &format!("CREATE ROLE \"{role}\" LOGIN"));
        run(&mut superuser, &format!("CREATE DATABASE \"{database}\" OWNER \"{role}\""));
        let mut client = cluster.connect_to(role, &database);
        run(&mut client, FILE);
        run(&mut client, FILE);
    }
    let planted = "CREATE FUNCTION snowflake_managed.layout() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE 'planted'; END $$";
    run(&mut superuser, "CREATE ROLE app");
    run(&mut superuser, "CREATE DATABASE shared OWNER \"App\"");
    let mut other = cluster.connect_to(SUPERUSER, "shared");
    run(&mut other, "CREATE SCHEMA snowflake_managed AUTHORIZATION app");
    run(&mut other, planted);
    let mut client = cluster.connect_to("App", "shared");
    let message = refused(&mut client, FILE).message().to_owned();
    assert!(message.contains("schema \"snowflake_managed\" has another owner"), "{message}");
    run(&mut other, "ALTER SCHEMA snowflake_managed OWNER TO \"App\"");
    assert_eq!(refused(&mut client, FILE).message(), "function snowflake_managed.layout() has another owner");
    run(&mut other, "ALTER FUNCTION snowflake_managed.layout() OWNER TO \"App\"");
    assert_eq!(refused(&mut client, FILE).message(), "planted");
}

#[test]
fn an_ordinary_owner_installs_dumps_and_restores_it_and_a_role_with_three_privileges_uses_it() {
    let (cluster, mut superuser) = server_with("CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN");
    run(&mut superuser, "CREATE DATABASE theirs OWNER owner");
    run(&mut superuser, "CREATE DATABASE copy OWNER owner");
    cluster.psql_as("owner", "theirs", FILE);
    let mut owner = cluster.connect_to("owner", "theirs");
    let sql = "CREATE SCHEMA app; CREATE SEQUENCE app.ids;
        CREATE TABLE app.posts (id bigint PRIMARY KEY DEFAULT snowflake_managed.snowflake_nextval('app.ids', 5), n int);
        GRANT USAGE ON SCHEMA app TO app; GRANT INSERT, SELECT ON app.posts TO app";
    run(&mut owner, sql);
    let mut app = cluster.connect_to("app", "theirs");
    for privilege in ["USAGE", "SELECT", "UPDATE"] {
        assert_eq!(refused(&mut app, "INSERT INTO app.posts VALUES (DEFAULT, 1)").code().code(), "42501");
        run(&mut owner, &format!("GRANT {privilege} ON SEQUENCE app.ids TO app"));
    }
    run(&mut app, "INSERT INTO app.posts VALUES (DEFAULT, 1)");
    run(&mut app, "SELECT snowflake_managed.snowflake_nextvals('app.ids', 5, 3)");

    let dump = cluster.dump_as("owner", "theirs");
    cluster.psql_as("owner", "copy", &dump);
    let mut copy = cluster.connect_to("app", "copy");
    run(&mut copy, "INSERT INTO app.posts VALUES (DEFAULT, 2)");
    assert_eq!(printed(&mut copy, "SELECT string_agg(n::text, ',' ORDER BY id) FROM app.posts"), "1,2");
}
