//! Other sessions and privileges affect `snowflake_nextval()` as they affect core's `nextval()`.
//!
//! Each situation is run twice, with the same statements except for the function's name. Each statement must end alike: in
//! success, or in an error of the same SQLSTATE. The campaign's oracle does the same with random statements.

use pg_snowflake_harness::{Cluster, ask};
use postgres::Client;

/// A statement, the session that runs it, and the SQLSTATE of its result.
#[derive(Debug)]
struct Step {
    by: By,
    sql: String,
    sqlstate: String,
}

#[derive(Clone, Copy, Debug)]
enum By {
    /// A superuser, who has created the sequence `s`.
    Owner,
    /// The role `writer`, initially without privileges.
    Writer,
}

const OK: &str = "00000";

/// The steps of many situations, with the session that takes them: `o` is the owner, and `w` the writer.
const WORDS: [(&str, &str); 25] = [
    ("GRANT", "o GRANT USAGE ON SEQUENCE s TO writer"),
    ("REVOKE", "o REVOKE ALL ON SEQUENCE s FROM writer"),
    ("TAKE", "w SELECT nextval('s')"),
    ("CURRENT", "w SELECT currval('s')"),
    ("BEGIN", "w BEGIN"),
    ("COMMIT", "w COMMIT"),
    ("PREPARE", "w PREPARE take AS SELECT nextval('s')"),
    ("EXECUTE", "w EXECUTE take"),
    ("OWNER TAKES", "o SELECT nextval('s')"),
    ("OWNER BEGINS", "o BEGIN"),
    ("OWNER ROLLS BACK", "o ROLLBACK"),
    ("AS WRITER", "o SET ROLE writer"),
    ("BACK", "o RESET ROLE"),
    ("GRANT BY MEMBERSHIP", "o GRANT USAGE ON SEQUENCE s TO other; GRANT other TO writer"),
    ("GRANT BY DATABASE", "o GRANT USAGE ON SEQUENCE s TO pg_database_owner; ALTER DATABASE postgres OWNER TO writer"),
    ("SUPERUSER", "o ALTER ROLE writer SUPERUSER"),
    ("NO SCHEMA", "o REVOKE ALL ON SCHEMA app FROM writer"),
    ("RECREATE", "o DROP SEQUENCE s; CREATE SEQUENCE s"),
    ("DROP", "o DROP SEQUENCE s"),
    (
        "DEFINER",
        "o CREATE FUNCTION take() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT nextval(''s'')';
         GRANT EXECUTE ON FUNCTION take TO PUBLIC",
    ),
    (
        "INVOKER",
        "o CREATE FUNCTION take() RETURNS bigint LANGUAGE sql SECURITY INVOKER AS 'SELECT nextval(''s'')';
         GRANT EXECUTE ON FUNCTION take TO PUBLIC",
    ),
    ("CALL", "w SELECT take()"),
    ("PARALLEL TAKE", "o CREATE FUNCTION take(g int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN nextval(''s''); END'"),
    (
        "MANY",
        "o CREATE TABLE many AS SELECT g FROM generate_series(1, 10000) AS g;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
    ),
    // Named force_parallel_mode before PostgreSQL 16.
    ("FORCE", "o SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')"),
];

/// The steps of a situation, as in `GRANT | TAKE | REVOKE | TAKE => 42501`.
fn steps(situation: &str) -> Vec<Step> {
    let step = |text: &str| {
        let (step, sqlstate) = text.trim().rsplit_once(" => ").unwrap_or((text.trim(), OK));
        let step = WORDS.iter().find(|(word, _)| *word == step).map_or(step, |(_, step)| step);
        let (by, sql) = match step.split_once(' ') {
            Some(("o", sql)) => (By::Owner, sql),
            Some(("w", sql)) => (By::Writer, sql),
            _ => panic!("{step}: who?"),
        };
        Step { by, sql: sql.to_owned(), sqlstate: sqlstate.to_owned() }
    };
    situation.split('|').map(step).collect()
}

#[test]
fn grants_and_revokes_act_as_on_core_nextval() {
    let situations = [
        "TAKE => 42501",
        "GRANT | TAKE",
        "o GRANT UPDATE ON SEQUENCE s TO writer | TAKE",
        "o GRANT SELECT ON SEQUENCE s TO writer | TAKE => 42501",
        "o GRANT USAGE ON SEQUENCE s TO PUBLIC | TAKE",
        "TAKE => 42501 | GRANT | TAKE",
        "GRANT | TAKE | REVOKE | TAKE => 42501",
        // Neither function notices it before its transaction ends.
        "GRANT | BEGIN | TAKE | REVOKE | TAKE | COMMIT | TAKE => 42501",
        // An uncommitted grant or revoke has no effect yet.
        "OWNER BEGINS | GRANT | TAKE => 42501",
        "GRANT | TAKE | OWNER BEGINS | REVOKE | TAKE",
        "GRANT | TAKE | OWNER BEGINS | REVOKE | OWNER ROLLS BACK | TAKE",
        // By membership in a role, granted and revoked.
        "GRANT BY MEMBERSHIP | TAKE | o REVOKE other FROM writer | TAKE => 42501",
        // By ownership, gained and lost.
        "o ALTER SEQUENCE s OWNER TO writer | TAKE | o ALTER SEQUENCE s OWNER TO postgres | TAKE => 42501",
        "SUPERUSER | TAKE",
        // A plan from before does not bypass it.
        "GRANT | PREPARE | EXECUTE | REVOKE | EXECUTE => 42501",
        "GRANT | PREPARE | EXECUTE | NO SCHEMA | EXECUTE => 42P01",
        "GRANT | NO SCHEMA | TAKE => 42P01",
        // A default runs with the rights of the inserting role.
        "o CREATE TABLE t (id bigint DEFAULT nextval('s')); GRANT ALL ON t TO writer
     | w INSERT INTO t DEFAULT VALUES => 42501 | GRANT | w INSERT INTO t DEFAULT VALUES",
    ];
    check(&cluster(), &situations);
}

#[test]
fn set_role_and_security_definer_act_as_on_core_nextval() {
    let situations = [
        "OWNER TAKES | AS WRITER | OWNER TAKES => 42501 | BACK | OWNER TAKES",
        "OWNER TAKES | o SET SESSION AUTHORIZATION writer | OWNER TAKES => 42501",
        "o BEGIN; SET LOCAL ROLE writer; SAVEPOINT p | OWNER TAKES => 42501 | o ROLLBACK TO p; RESET ROLE | OWNER TAKES",
        "o GRANT USAGE ON SEQUENCE s TO other | o ALTER ROLE writer NOINHERIT; GRANT other TO writer
     | TAKE => 42501 | w SET ROLE other | TAKE",
        "DEFINER | CALL | TAKE => 42501",
        "INVOKER | CALL => 42501",
        // With fewer rights than the caller has.
        "DEFINER | o ALTER FUNCTION take OWNER TO writer | o SELECT take() => 42501 | OWNER TAKES",
        "DEFINER | o GRANT USAGE ON SEQUENCE s TO other | o ALTER FUNCTION take OWNER TO other | CALL
     | o REVOKE ALL ON SEQUENCE s FROM other | CALL => 42501",
    ];
    check(&cluster(), &situations);
}

/// What gives the writer the right to take values, and what takes it away.
const GIVEN_AND_TAKEN: [(&str, &str); 6] = [
    ("GRANT", "REVOKE"),
    ("o ALTER SEQUENCE s OWNER TO writer", "o ALTER SEQUENCE s OWNER TO postgres"),
    ("SUPERUSER", "o ALTER ROLE writer NOSUPERUSER"),
    ("GRANT BY MEMBERSHIP", "o REVOKE other FROM writer"),
    ("GRANT BY MEMBERSHIP", "o REVOKE USAGE ON SEQUENCE s FROM other"),
    ("GRANT BY DATABASE", "o ALTER DATABASE postgres OWNER TO postgres"),
];

/// A session relies on its permission checks until something changes. Each of these is such a change.
#[test]
fn changes_within_a_transaction_that_took_a_value_act_as_on_core_nextval() {
    let cluster = cluster();
    for (give, take) in GIVEN_AND_TAKEN {
        check(
            &cluster,
            &[&format!("OWNER BEGINS | {give} | AS WRITER | OWNER TAKES | OWNER TAKES | BACK | {take} | AS WRITER | OWNER TAKES => 42501")],
        );
    }
    let situations = [
        // The grant is rolled back with the savepoint.
        "OWNER BEGINS | o SAVEPOINT p | GRANT | AS WRITER | OWNER TAKES | OWNER TAKES | o ROLLBACK TO p | AS WRITER | OWNER TAKES => 42501",
        // Another session's change is noticed when a lock is taken.
        "GRANT | BEGIN | TAKE | TAKE | REVOKE | w TABLE posts => 42501",
        "GRANT | BEGIN | TAKE | TAKE | REVOKE | w TABLE pg_ts_dict | TAKE => 42501",
        // The current role changes.
        "OWNER BEGINS | OWNER TAKES | OWNER TAKES | o SET LOCAL ROLE writer | OWNER TAKES => 42501",
        "OWNER BEGINS | OWNER TAKES | OWNER TAKES | o SET SESSION AUTHORIZATION writer | OWNER TAKES => 42501",
        "DEFINER | BEGIN | CALL | CALL | TAKE => 42501",
        // The transaction becomes read-only.
        "GRANT | BEGIN | TAKE | TAKE | w SET TRANSACTION READ ONLY | TAKE => 25006",
        // The sequence changes, locked by this transaction alone.
        "OWNER BEGINS | OWNER TAKES | OWNER TAKES | RECREATE | OWNER TAKES | OWNER TAKES",
        "OWNER BEGINS | OWNER TAKES | OWNER TAKES | o ALTER SEQUENCE s RENAME TO t | OWNER TAKES => 42P01",
    ];
    check(&cluster, &situations);
}

/// A session relies on its checks in later transactions too. Each of these is a change in between.
#[test]
fn changes_between_transactions_that_take_values_act_as_on_core_nextval() {
    let cluster = cluster();
    for (give, take) in GIVEN_AND_TAKEN {
        check(
            &cluster,
            &[
                &format!("{give} | TAKE | TAKE | {take} | TAKE => 42501 | {give} | TAKE | TAKE"),
                &format!(
                    "OWNER BEGINS | {give} | AS WRITER | OWNER TAKES | OWNER TAKES | OWNER ROLLS BACK | AS WRITER | OWNER TAKES => 42501"
                ),
            ],
        );
    }
    let situations = [
        // The current role is another one in the next transaction.
        "OWNER TAKES | OWNER TAKES | AS WRITER | OWNER TAKES => 42501 | BACK | OWNER TAKES | OWNER TAKES",
        "OWNER TAKES | OWNER TAKES | o SET SESSION AUTHORIZATION writer | OWNER TAKES => 42501
     | o RESET SESSION AUTHORIZATION | OWNER TAKES",
        // The next transaction is read-only.
        "GRANT | TAKE | TAKE | w BEGIN READ ONLY | TAKE => 25006",
        "GRANT | TAKE | TAKE | w SET default_transaction_read_only = on | TAKE => 25006",
        // The sequence is another one, or none.
        "GRANT | TAKE | TAKE | RECREATE | TAKE => 42501 | GRANT | TAKE",
        "GRANT | TAKE | TAKE | o ALTER SEQUENCE s RENAME TO t | TAKE => 42P01",
        // The change is made after the transaction began, which then processes it when it takes the lock.
        "GRANT | PREPARE | EXECUTE | EXECUTE | BEGIN | w SELECT 1 | REVOKE | EXECUTE => 42501",
        // A transaction waits for the lock, although an earlier one had it.
        "GRANT | TAKE | TAKE | o BEGIN; DROP SEQUENCE s | TAKE => 55P03 | OWNER ROLLS BACK | TAKE",
        "GRANT | TAKE | TAKE | BEGIN | TAKE | DROP => 55P03",
    ];
    check(&cluster, &situations);
}

#[test]
fn the_last_value_is_returned_to_whom_core_returns_it() {
    let situations = [
        "GRANT | CURRENT => 55000 | TAKE | CURRENT",
        "CURRENT => 42501",
        "GRANT | TAKE | REVOKE | CURRENT => 42501 | GRANT | CURRENT",
        "GRANT | TAKE | REVOKE | o GRANT SELECT ON SEQUENCE s TO writer | CURRENT",
        "GRANT | TAKE | REVOKE | o GRANT UPDATE ON SEQUENCE s TO writer | CURRENT => 42501",
        // Not another session's value, nor that of a sequence which was dropped and created again.
        "GRANT | OWNER TAKES | CURRENT => 55000",
        "GRANT | TAKE | RECREATE | GRANT | CURRENT => 55000",
        // After any other change of the sequence.
        "GRANT | TAKE | o ALTER SEQUENCE s RESTART | CURRENT",
        "GRANT | TAKE | o ALTER SEQUENCE s OWNED BY NONE CACHE 10 | CURRENT",
        "GRANT | BEGIN | TAKE | w ROLLBACK | CURRENT",
        "GRANT | TAKE | w BEGIN READ ONLY | CURRENT",
        "GRANT | TAKE | o BEGIN; ALTER SEQUENCE s CACHE 2 | CURRENT => 55P03",
        "GRANT | TAKE | w DISCARD PLANS | CURRENT",
        "GRANT | TAKE | w DISCARD SEQUENCES | CURRENT => 55000",
        "GRANT | TAKE | w BEGIN; DISCARD SEQUENCES; ROLLBACK | CURRENT => 55000",
        "GRANT | TAKE | w DISCARD ALL | w SET search_path = app, public | CURRENT => 55000",
    ];
    check(&cluster(), &situations);
}

#[test]
fn a_transaction_keeps_the_lock_where_core_nextval_keeps_it() {
    let situations = [
        "GRANT | BEGIN | w SAVEPOINT p | TAKE | w ROLLBACK TO p | DROP => 55P03",
        "GRANT | TAKE | BEGIN | CURRENT | DROP => 55P03",
        "GRANT | BEGIN | TAKE | COMMIT | DROP",
        // A refused call has taken the lock too.
        "BEGIN | w SAVEPOINT p | TAKE => 42501 | w ROLLBACK TO p | DROP => 55P03",
        "BEGIN | TAKE => 42501 | DROP",
        // A prepared transaction keeps it, and its session takes its own.
        "GRANT | BEGIN | TAKE | w PREPARE TRANSACTION 'p' | TAKE | DROP => 55P03 | o ROLLBACK PREPARED 'p' | DROP",
    ];
    check(&cluster(), &situations);
}

#[test]
fn calls_in_unusual_places_end_as_with_core_nextval() {
    let situations = [
        "GRANT | w BEGIN READ ONLY | TAKE => 25006",
        "w CREATE TEMPORARY SEQUENCE mine | w BEGIN READ ONLY | w SELECT nextval('mine')",
        "w CREATE TEMPORARY SEQUENCE mine | BEGIN | w SELECT nextval('mine') | w PREPARE TRANSACTION 'p' => 0A000",
        "GRANT | w BEGIN ISOLATION LEVEL SERIALIZABLE | TAKE | COMMIT",
        "GRANT | BEGIN | w SELECT 1 / 0 => 22012 | TAKE => 25P02",
        "o SELECT nextval('posts') => 42809",
        "o CREATE INDEX ON posts ((id + nextval('s'))) => 42P17",
        "o CREATE TABLE t (b bigint GENERATED ALWAYS AS (nextval('s')) STORED) => 42P17",
        "o CREATE MATERIALIZED VIEW m AS SELECT nextval('s') AS id | o REFRESH MATERIALIZED VIEW m",
        "o CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''s''); RETURN NEW; END';
       CREATE CONSTRAINT TRIGGER late AFTER INSERT ON posts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION take()
     | o BEGIN; INSERT INTO posts VALUES (1) | o COMMIT",
        // Another session's temporary sequence.
        "o CREATE TEMPORARY SEQUENCE theirs; GRANT ALL ON SEQUENCE theirs TO PUBLIC;
       CREATE TABLE published AS SELECT 'theirs'::regclass AS seq; GRANT SELECT ON published TO PUBLIC
     | o SELECT nextval(seq) FROM published | w SELECT nextval(seq) FROM published => 0A000 | o SELECT nextval(seq) FROM published",
    ];
    check(&cluster(), &situations);
}

#[test]
fn parallel_mode_is_refused_as_by_core_nextval() {
    let by_workers = "o SET parallel_leader_participation = off";
    let by_leader = "o SET max_parallel_workers = 0";
    let count = "o SELECT count(take(g)) FROM many";
    let situations: &[&str] = &[
        // The first call loads the extension into the session, with its settings.
        "PARALLEL TAKE | OWNER TAKES | FORCE | o SELECT take(1) => 25000 | OWNER TAKES",
        &format!("PARALLEL TAKE | OWNER TAKES | MANY | {by_workers} | {count} => 25000 | OWNER TAKES"),
        &format!("PARALLEL TAKE | OWNER TAKES | MANY | {by_leader} | {count} => 25000 | OWNER TAKES"),
        &format!("PARALLEL TAKE | MANY | {by_leader} | OWNER BEGINS | OWNER TAKES | OWNER TAKES | {count} => 25000"),
        // A worker has no current value.
        "o CREATE FUNCTION current() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN currval(''s''); END'
     | OWNER TAKES | FORCE | o SELECT current() => 55000",
        // Our functions are parallel unsafe, which keeps the statement out of parallel mode.
        "FORCE | OWNER TAKES | o SELECT currval('s')",
        &format!("MANY | {by_workers} | o SELECT count(nextval('s')) FROM many"),
        &format!("MANY | {by_workers} | o INSERT INTO posts SELECT nextval('s') FROM many"),
    ];
    check(&cluster(), situations);
}

fn cluster() -> Cluster {
    let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "5").setting("max_prepared_transactions", "2").start();
    cluster.connect().batch_execute("CREATE ROLE writer LOGIN; CREATE ROLE other").unwrap();
    cluster
}

/// Runs each situation with core's functions and with ours.
fn check(cluster: &Cluster, situations: &[&str]) {
    for situation in situations {
        let steps = steps(situation);
        let expected: Vec<&str> = steps.iter().map(|step| &*step.sqlstate).collect();
        assert_eq!(run(cluster, &steps, str::to_owned), expected, "with core's functions: {steps:#?}");
        let ours = run(cluster, &steps, of_ours);
        assert_eq!(ours, expected, "with ours: {steps:#?}");
    }
}

fn of_ours(sql: &str) -> String {
    sql.replace("nextval(", "snowflake_nextval(").replace("currval(", "snowflake_currval(")
}

/// Runs the statements in fresh sessions on a fresh sequence, and returns their SQLSTATEs.
fn run(cluster: &Cluster, steps: &[Step], restate: fn(&str) -> String) -> Vec<String> {
    prepare(&mut cluster.connect());
    let [mut owner, mut writer] = ["postgres", "writer"].map(|role| {
        let mut client = cluster.connect_to(role, "postgres");
        client.batch_execute("SET search_path = app, public; SET lock_timeout = '200ms'").unwrap();
        client
    });
    let play_one = |step: &Step| {
        let client = match step.by {
            By::Owner => &mut owner,
            By::Writer => &mut writer,
        };
        sqlstate(client, &restate(&step.sql))
    };
    steps.iter().map(play_one).collect()
}

/// Creates the roles without privileges, and the schema `app` with the sequence `s` and a table.
fn prepare(client: &mut Client) {
    let sql = "SET client_min_messages = error;
        DROP SCHEMA IF EXISTS app CASCADE;
        REVOKE other FROM writer;
        ALTER ROLE writer NOSUPERUSER INHERIT;
        CREATE SCHEMA app;
        GRANT USAGE ON SCHEMA app TO writer;
        GRANT ALL ON SCHEMA app TO other;
        CREATE TABLE app.posts (id bigint);
        CREATE SEQUENCE app.s";
    ask::run(client, sql);
}

fn sqlstate(client: &mut Client, sql: &str) -> String {
    match client.simple_query(sql) {
        Ok(_) => OK.into(),
        Err(error) => error.code().unwrap_or_else(|| panic!("{sql}: {error:?}")).code().into(),
    }
}
