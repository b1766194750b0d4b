//! Other sessions and privileges affect `snowflake_nextval()` as they affect core's `nextval()`.
//!
//! Each situation is run twice, with the same statements except for the function's name. Each statement must end alike: in
//! success, or in an error of the same SQLSTATE. The campaign's oracle does the same with random statements.

use pg_snowflake_harness::Cluster;
use postgres::Client;

/// A statement, the session that runs it, and the SQLSTATE of its result.
#[derive(Clone, Copy, Debug)]
struct Step<'a> {
    by: By,
    sql: &'a str,
    sqlstate: &'a str,
}

#[derive(Clone, Copy, Debug)]
enum By {
    /// A superuser, who has created the sequence `s`.
    Owner,
    /// The role `writer`, initially without privileges.
    Writer,
}

const OK: &str = "00000";
const DENIED: &str = "42501";
const LOCK_TIMEOUT: &str = "55P03";
const NOT_SUPPORTED: &str = "0A000";
const NO_VALUE_YET: &str = "55000";
const CANNOT_BE_IMMUTABLE: &str = "42P17";

const GRANT: Step = owner("GRANT USAGE ON SEQUENCE s TO writer");
const REVOKE: Step = owner("REVOKE ALL ON SEQUENCE s FROM writer");
const TAKE: Step = writer("SELECT nextval('s')");
const CURRENT: Step = writer("SELECT currval('s')");
const BEGIN: Step = writer("BEGIN");

const fn owner(sql: &str) -> Step<'_> {
    Step { by: By::Owner, sql, sqlstate: OK }
}

const fn writer(sql: &str) -> Step<'_> {
    Step { by: By::Writer, sql, sqlstate: OK }
}

impl<'a> Step<'a> {
    const fn ends(self, sqlstate: &'a str) -> Self {
        Step { sqlstate, ..self }
    }
}

#[test]
fn grants_and_revokes_act_as_on_core_nextval() {
    let prepare = writer("PREPARE take AS SELECT nextval('s')");
    let execute = writer("EXECUTE take");
    let to_other = owner("GRANT USAGE ON SEQUENCE s TO other; GRANT other TO writer");
    let give = owner("ALTER SEQUENCE s OWNER TO writer");
    let no_schema = owner("REVOKE ALL ON SCHEMA app FROM writer");
    check(
        &cluster(),
        &[
            &[TAKE.ends(DENIED)],
            &[GRANT, TAKE],
            &[owner("GRANT UPDATE ON SEQUENCE s TO writer"), TAKE],
            &[owner("GRANT SELECT ON SEQUENCE s TO writer"), TAKE.ends(DENIED)],
            &[owner("GRANT USAGE ON SEQUENCE s TO PUBLIC"), TAKE],
            &[TAKE.ends(DENIED), GRANT, TAKE],
            &[GRANT, TAKE, REVOKE, TAKE.ends(DENIED)],
            // Neither function notices it before its transaction ends.
            &[GRANT, BEGIN, TAKE, REVOKE, TAKE, writer("COMMIT"), TAKE.ends(DENIED)],
            // An uncommitted grant or revoke has no effect yet.
            &[owner("BEGIN"), GRANT, TAKE.ends(DENIED)],
            &[GRANT, TAKE, owner("BEGIN"), REVOKE, TAKE],
            &[GRANT, TAKE, owner("BEGIN"), REVOKE, owner("ROLLBACK"), TAKE],
            // By membership in a role, granted and revoked.
            &[to_other, TAKE, owner("REVOKE other FROM writer"), TAKE.ends(DENIED)],
            // By ownership, gained and lost.
            &[give, TAKE, owner("ALTER SEQUENCE s OWNER TO postgres"), TAKE.ends(DENIED)],
            &[owner("ALTER ROLE writer SUPERUSER"), TAKE],
            // A plan from before does not bypass it.
            &[GRANT, prepare, execute, REVOKE, execute.ends(DENIED)],
            &[GRANT, prepare, execute, no_schema, execute.ends("42P01")],
            &[GRANT, no_schema, TAKE.ends("42P01")],
            // A default runs with the rights of the inserting role.
            &[
                owner("CREATE TABLE t (id bigint DEFAULT nextval('s')); GRANT ALL ON t TO writer"),
                writer("INSERT INTO t DEFAULT VALUES").ends(DENIED),
                GRANT,
                writer("INSERT INTO t DEFAULT VALUES"),
            ],
        ],
    );
}

#[test]
fn set_role_and_security_definer_act_as_on_core_nextval() {
    let function = |rights| {
        format!(
            "CREATE FUNCTION take() RETURNS bigint LANGUAGE sql SECURITY {rights} \
             AS 'SELECT nextval(''s'')'; GRANT EXECUTE ON FUNCTION take TO PUBLIC"
        )
    };
    let (definer, invoker) = (function("DEFINER"), function("INVOKER"));
    let (definer, invoker) = (owner(&definer), owner(&invoker));
    let call = writer("SELECT take()");
    let take = owner("SELECT nextval('s')");
    let to_other = owner("GRANT USAGE ON SEQUENCE s TO other");
    check(
        &cluster(),
        &[
            &[take, owner("SET ROLE writer"), take.ends(DENIED), owner("RESET ROLE"), take],
            &[take, owner("SET SESSION AUTHORIZATION writer"), take.ends(DENIED)],
            &[
                owner("BEGIN; SET LOCAL ROLE writer; SAVEPOINT p"),
                take.ends(DENIED),
                owner("ROLLBACK TO p; RESET ROLE"),
                take,
            ],
            &[
                to_other,
                owner("ALTER ROLE writer NOINHERIT; GRANT other TO writer"),
                TAKE.ends(DENIED),
                writer("SET ROLE other"),
                TAKE,
            ],
            &[definer, call, TAKE.ends(DENIED)],
            &[invoker, call.ends(DENIED)],
            // With fewer rights than the caller has.
            &[
                definer,
                owner("ALTER FUNCTION take OWNER TO writer"),
                owner("SELECT take()").ends(DENIED),
                take,
            ],
            &[
                definer,
                to_other,
                owner("ALTER FUNCTION take OWNER TO other"),
                call,
                owner("REVOKE ALL ON SEQUENCE s FROM other"),
                call.ends(DENIED),
            ],
        ],
    );
}

/// A session relies on its permission checks until something changes. Each of these is such a change.
#[test]
fn changes_within_a_transaction_that_took_a_value_act_as_on_core_nextval() {
    let take = owner("SELECT nextval('s')");
    let (as_writer, back) = (owner("SET ROLE writer"), owner("RESET ROLE"));
    let begin = owner("BEGIN");
    let savepoint = owner("SAVEPOINT p");
    let give = |from_writer, to_writer| {
        [begin, to_writer, as_writer, take, take, back, from_writer, as_writer, take.ends(DENIED)]
    };
    let definer = owner(
        "CREATE FUNCTION take() RETURNS bigint LANGUAGE sql SECURITY DEFINER \
         AS 'SELECT nextval(''s'')'; GRANT EXECUTE ON FUNCTION take TO PUBLIC",
    );
    let call = writer("SELECT take()");
    check(
        &cluster(),
        &[
            &give(REVOKE, GRANT),
            &give(
                owner("ALTER SEQUENCE s OWNER TO postgres"),
                owner("ALTER SEQUENCE s OWNER TO writer"),
            ),
            &give(owner("ALTER ROLE writer NOSUPERUSER"), owner("ALTER ROLE writer SUPERUSER")),
            &give(
                owner("REVOKE other FROM writer"),
                owner("GRANT USAGE ON SEQUENCE s TO other; GRANT other TO writer"),
            ),
            &give(
                owner("ALTER DATABASE postgres OWNER TO postgres"),
                owner(
                    "GRANT USAGE ON SEQUENCE s TO pg_database_owner; \
                     ALTER DATABASE postgres OWNER TO writer",
                ),
            ),
            // The grant is rolled back with the savepoint.
            &[
                begin,
                savepoint,
                GRANT,
                as_writer,
                take,
                take,
                owner("ROLLBACK TO p"),
                as_writer,
                take.ends(DENIED),
            ],
            // Another session's change is noticed when a lock is taken.
            &[GRANT, BEGIN, TAKE, TAKE, REVOKE, writer("TABLE posts").ends(DENIED)],
            &[GRANT, BEGIN, TAKE, TAKE, REVOKE, writer("TABLE pg_ts_dict"), TAKE.ends(DENIED)],
            // The current role changes.
            &[begin, take, take, owner("SET LOCAL ROLE writer"), take.ends(DENIED)],
            &[begin, take, take, owner("SET SESSION AUTHORIZATION writer"), take.ends(DENIED)],
            &[definer, BEGIN, call, call, TAKE.ends(DENIED)],
            // The transaction becomes read-only.
            &[GRANT, BEGIN, TAKE, TAKE, writer("SET TRANSACTION READ ONLY"), TAKE.ends("25006")],
            // The sequence changes, locked by this transaction alone.
            &[begin, take, take, owner("DROP SEQUENCE s; CREATE SEQUENCE s"), take, take],
            &[begin, take, take, owner("ALTER SEQUENCE s RENAME TO t"), take.ends("42P01")],
        ],
    );
}

/// A session relies on its checks in later transactions too. Each of these is a change in between.
#[test]
fn changes_between_transactions_that_take_values_act_as_on_core_nextval() {
    let take = owner("SELECT nextval('s')");
    let (as_writer, back) = (owner("SET ROLE writer"), owner("RESET ROLE"));
    let begin = owner("BEGIN");
    let rollback = owner("ROLLBACK");
    let lost = |gain, lose| [gain, TAKE, TAKE, lose, TAKE.ends(DENIED), gain, TAKE, TAKE];
    let rolled_back =
        |gain| [begin, gain, as_writer, take, take, rollback, as_writer, take.ends(DENIED)];
    let member = owner("GRANT USAGE ON SEQUENCE s TO other; GRANT other TO writer");
    let owner_of_database = owner(
        "GRANT USAGE ON SEQUENCE s TO pg_database_owner; ALTER DATABASE postgres OWNER TO writer",
    );
    let superuser = owner("ALTER ROLE writer SUPERUSER");
    let (prepare, execute) =
        (writer("PREPARE take AS SELECT nextval('s')"), writer("EXECUTE take"));
    check(
        &cluster(),
        &[
            &lost(GRANT, REVOKE),
            &lost(member, owner("REVOKE other FROM writer")),
            &lost(member, owner("REVOKE USAGE ON SEQUENCE s FROM other")),
            &lost(superuser, owner("ALTER ROLE writer NOSUPERUSER")),
            &lost(owner_of_database, owner("ALTER DATABASE postgres OWNER TO postgres")),
            &rolled_back(GRANT),
            &rolled_back(member),
            &rolled_back(superuser),
            &rolled_back(owner_of_database),
            // The current role is another one in the next transaction.
            &[take, take, as_writer, take.ends(DENIED), back, take, take],
            &[
                take,
                take,
                owner("SET SESSION AUTHORIZATION writer"),
                take.ends(DENIED),
                owner("RESET SESSION AUTHORIZATION"),
                take,
            ],
            // The next transaction is read-only.
            &[GRANT, TAKE, TAKE, writer("BEGIN READ ONLY"), TAKE.ends("25006")],
            &[
                GRANT,
                TAKE,
                TAKE,
                writer("SET default_transaction_read_only = on"),
                TAKE.ends("25006"),
            ],
            // The sequence is another one, or none.
            &[
                GRANT,
                TAKE,
                TAKE,
                owner("DROP SEQUENCE s; CREATE SEQUENCE s"),
                TAKE.ends(DENIED),
                GRANT,
                TAKE,
            ],
            &[GRANT, TAKE, TAKE, owner("ALTER SEQUENCE s RENAME TO t"), TAKE.ends("42P01")],
            // The change is made after the transaction began, which then processes it when it takes the lock.
            &[
                GRANT,
                prepare,
                execute,
                execute,
                BEGIN,
                writer("SELECT 1"),
                REVOKE,
                execute.ends(DENIED),
            ],
            // A transaction waits for the lock, although an earlier one had it.
            &[
                GRANT,
                TAKE,
                TAKE,
                owner("BEGIN; DROP SEQUENCE s"),
                TAKE.ends(LOCK_TIMEOUT),
                rollback,
                TAKE,
            ],
            &[GRANT, TAKE, TAKE, BEGIN, TAKE, owner("DROP SEQUENCE s").ends(LOCK_TIMEOUT)],
        ],
    );
}

#[test]
fn the_last_value_is_returned_to_whom_core_returns_it() {
    let recreate = owner("DROP SEQUENCE s; CREATE SEQUENCE s");
    let unknown = CURRENT.ends(NO_VALUE_YET);
    check(
        &cluster(),
        &[
            &[GRANT, unknown, TAKE, CURRENT],
            &[CURRENT.ends(DENIED)],
            &[GRANT, TAKE, REVOKE, CURRENT.ends(DENIED), GRANT, CURRENT],
            &[GRANT, TAKE, REVOKE, owner("GRANT SELECT ON SEQUENCE s TO writer"), CURRENT],
            &[
                GRANT,
                TAKE,
                REVOKE,
                owner("GRANT UPDATE ON SEQUENCE s TO writer"),
                CURRENT.ends(DENIED),
            ],
            // Not another session's value, nor that of a sequence which was dropped and created again.
            &[GRANT, owner("SELECT nextval('s')"), unknown],
            &[GRANT, TAKE, recreate, GRANT, unknown],
            // After any other change of the sequence.
            &[GRANT, TAKE, owner("ALTER SEQUENCE s RESTART"), CURRENT],
            &[GRANT, TAKE, owner("ALTER SEQUENCE s OWNED BY NONE CACHE 10"), CURRENT],
            &[GRANT, BEGIN, TAKE, writer("ROLLBACK"), CURRENT],
            &[GRANT, TAKE, writer("BEGIN READ ONLY"), CURRENT],
            &[GRANT, TAKE, owner("BEGIN; ALTER SEQUENCE s CACHE 2"), CURRENT.ends(LOCK_TIMEOUT)],
            &[GRANT, TAKE, writer("DISCARD PLANS"), CURRENT],
            &[GRANT, TAKE, writer("DISCARD SEQUENCES"), unknown],
            &[GRANT, TAKE, writer("BEGIN; DISCARD SEQUENCES; ROLLBACK"), unknown],
            &[GRANT, TAKE, writer("DISCARD ALL"), writer("SET search_path = app, public"), unknown],
        ],
    );
}

#[test]
fn open_ddl_of_another_session_acts_as_on_core_nextval() {
    let cases = [
        ("ALTER SEQUENCE s RESTART", LOCK_TIMEOUT),
        ("ALTER SEQUENCE s CACHE 10", LOCK_TIMEOUT),
        ("ALTER SEQUENCE s OWNED BY NONE", LOCK_TIMEOUT),
        ("ALTER SEQUENCE s OWNER TO other", LOCK_TIMEOUT),
        ("ALTER SEQUENCE s SET UNLOGGED", LOCK_TIMEOUT),
        ("ALTER SEQUENCE s RENAME TO t", LOCK_TIMEOUT),
        ("DROP SEQUENCE s", LOCK_TIMEOUT),
        ("TRUNCATE posts RESTART IDENTITY", LOCK_TIMEOUT),
        ("TRUNCATE posts", OK),
        ("SELECT nextval('s')", OK),
        ("SELECT setval('s', 1000)", OK),
        ("GRANT ALL ON SEQUENCE s TO other", OK),
        ("COMMENT ON SEQUENCE s IS 'busy'", OK),
    ];
    let cluster = cluster();
    for (ddl, sqlstate) in cases {
        // TRUNCATE restarts the sequences that its table owns; an owned sequence cannot change its owner.
        let own = if ddl.starts_with("TRUNCATE") { "posts.id" } else { "NONE" };
        let own = format!("ALTER SEQUENCE s OWNED BY {own}");
        check(
            &cluster,
            &[
                // While the DDL is uncommitted.
                &[GRANT, owner(&own), TAKE, owner("BEGIN"), owner(ddl), TAKE.ends(sqlstate)],
                // While a transaction is open that took a value.
                &[GRANT, owner(&own), BEGIN, TAKE, owner(ddl).ends(sqlstate)],
            ],
        );
    }
}

#[test]
fn a_transaction_keeps_the_lock_where_core_nextval_keeps_it() {
    let drop = owner("DROP SEQUENCE s");
    let (savepoint, back) = (writer("SAVEPOINT p"), writer("ROLLBACK TO p"));
    check(
        &cluster(),
        &[
            &[GRANT, BEGIN, savepoint, TAKE, back, drop.ends(LOCK_TIMEOUT)],
            &[GRANT, TAKE, BEGIN, CURRENT, drop.ends(LOCK_TIMEOUT)],
            &[GRANT, BEGIN, TAKE, writer("COMMIT"), drop],
            // A refused call has taken the lock too.
            &[BEGIN, savepoint, TAKE.ends(DENIED), back, drop.ends(LOCK_TIMEOUT)],
            &[BEGIN, TAKE.ends(DENIED), drop],
            // A prepared transaction keeps it, and its session takes its own.
            &[
                GRANT,
                BEGIN,
                TAKE,
                writer("PREPARE TRANSACTION 'p'"),
                TAKE,
                drop.ends(LOCK_TIMEOUT),
                owner("ROLLBACK PREPARED 'p'"),
                drop,
            ],
        ],
    );
}

#[test]
fn calls_in_unusual_places_end_as_with_core_nextval() {
    let temporary = writer("CREATE TEMPORARY SEQUENCE mine");
    let take_mine = writer("SELECT nextval('mine')");
    let deferred = "CREATE FUNCTION take() RETURNS trigger LANGUAGE plpgsql AS \
                    'BEGIN PERFORM nextval(''s''); RETURN NEW; END'; \
                    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON posts \
                    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION take()";
    check(
        &cluster(),
        &[
            &[GRANT, writer("BEGIN READ ONLY"), TAKE.ends("25006")],
            &[temporary, writer("BEGIN READ ONLY"), take_mine],
            &[temporary, BEGIN, take_mine, writer("PREPARE TRANSACTION 'p'").ends(NOT_SUPPORTED)],
            &[GRANT, writer("BEGIN ISOLATION LEVEL SERIALIZABLE"), TAKE, writer("COMMIT")],
            &[GRANT, BEGIN, writer("SELECT 1 / 0").ends("22012"), TAKE.ends("25P02")],
            &[owner("SELECT nextval('posts')").ends("42809")],
            &[owner("CREATE INDEX ON posts ((id + nextval('s')))").ends(CANNOT_BE_IMMUTABLE)],
            &[owner("CREATE TABLE t (b bigint GENERATED ALWAYS AS (nextval('s')) STORED)")
                .ends(CANNOT_BE_IMMUTABLE)],
            &[
                owner("CREATE MATERIALIZED VIEW m AS SELECT nextval('s') AS id"),
                owner("REFRESH MATERIALIZED VIEW m"),
            ],
            &[owner(deferred), owner("BEGIN; INSERT INTO posts VALUES (1)"), owner("COMMIT")],
        ],
    );
}

#[test]
fn another_sessions_temporary_sequence_is_refused_as_by_core_nextval() {
    let publish = owner(
        "CREATE TEMPORARY SEQUENCE theirs; GRANT ALL ON SEQUENCE theirs TO PUBLIC; \
         CREATE TABLE published AS SELECT 'theirs'::regclass AS seq; GRANT SELECT ON published TO PUBLIC",
    );
    let take = "SELECT nextval(seq) FROM published";
    check(&cluster(), &[&[publish, owner(take), writer(take).ends(NOT_SUPPORTED), owner(take)]]);
}

#[test]
fn parallel_mode_is_refused_as_by_core_nextval() {
    let wrong = owner(
        "CREATE FUNCTION take(g int) RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE \
         AS 'BEGIN RETURN nextval(''s''); END'",
    );
    let wrong_current = owner(
        "CREATE FUNCTION current() RETURNS bigint LANGUAGE plpgsql PARALLEL SAFE \
         AS 'BEGIN RETURN currval(''s''); END'",
    );
    let rows = owner(
        "CREATE TABLE many AS SELECT g FROM generate_series(1, 10000) AS g; \
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0",
    );
    let by_workers = owner("SET parallel_leader_participation = off");
    let by_leader = owner("SET max_parallel_workers = 0");
    // Named force_parallel_mode before PostgreSQL 16.
    let force = owner(
        "SELECT set_config(name, 'on', false) FROM pg_settings \
         WHERE name IN ('force_parallel_mode', 'debug_parallel_query')",
    );
    // Loads the extension into the session, with its settings.
    let take = owner("SELECT nextval('s')");
    let count = owner("SELECT count(take(g)) FROM many");
    let refused = "25000";
    check(
        &cluster(),
        &[
            &[wrong, take, force, owner("SELECT take(1)").ends(refused), take],
            &[wrong, take, rows, by_workers, count.ends(refused), take],
            &[wrong, take, rows, by_leader, count.ends(refused), take],
            &[wrong, rows, by_leader, owner("BEGIN"), take, take, count.ends(refused)],
            // A worker has no current value.
            &[wrong_current, take, force, owner("SELECT current()").ends(NO_VALUE_YET)],
            // Our functions are parallel unsafe, which keeps the statement out of parallel mode.
            &[force, take, owner("SELECT currval('s')")],
            &[rows, by_workers, owner("SELECT count(nextval('s')) FROM many")],
            &[rows, by_workers, owner("INSERT INTO posts SELECT nextval('s') FROM many")],
        ],
    );
}

fn cluster() -> Cluster {
    let cluster = Cluster::builder()
        .setting("pg_snowflake.shard_id", "5")
        .setting("max_prepared_transactions", "2")
        .start();
    cluster.connect().batch_execute("CREATE ROLE writer LOGIN; CREATE ROLE other").unwrap();
    cluster
}

/// Runs each situation with core's functions and with ours.
fn check(cluster: &Cluster, situations: &[&[Step]]) {
    for steps in situations {
        let expected: Vec<_> = steps.iter().map(|step| step.sqlstate).collect();
        let cores = run(cluster, steps, str::to_owned);
        assert_eq!(cores, expected, "with core's functions: {steps:#?}");
        let ours = run(cluster, steps, of_ours);
        assert_eq!(ours, expected, "with ours: {steps:#?}");
    }
}

/// A statement with our functions in place of core's.
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
        sqlstate(client, &restate(step.sql))
    };
    steps.iter().map(play_one).collect()
}

/// Creates the roles without privileges, and the schema `app` with the sequence `s` and a table.
fn prepare(client: &mut Client) {
    client
        .batch_execute(
            "SET client_min_messages = error;
             DROP SCHEMA IF EXISTS app CASCADE;
             REVOKE other FROM writer;
             ALTER ROLE writer NOSUPERUSER INHERIT;
             CREATE SCHEMA app;
             GRANT USAGE ON SCHEMA app TO writer;
             GRANT ALL ON SCHEMA app TO other;
             CREATE TABLE app.posts (id bigint);
             CREATE SEQUENCE app.s",
        )
        .unwrap();
}

fn sqlstate(client: &mut Client, sql: &str) -> String {
    match client.simple_query(sql) {
        Ok(_) => OK.into(),
        Err(error) => error.code().unwrap_or_else(|| panic!("{sql}: {error:?}")).code().into(),
    }
}
