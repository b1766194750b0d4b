//! The steps of a round, drawn before the first one runs. So they depend on the seed alone, not on what the servers answer. Only
//! the counters that sequences are set to begin where the caller says.

use fastrand::Rng;
use std::fmt::{self, Display, Formatter};

/// The roles of the sessions. The first creates and alters, the others use.
pub const SESSIONS: [&str; 4] = ["postgres", "taker", "taker", "friend"];

/// How far the counters that two steps set are apart: more than a crash skips, which is 100 ms of counters, and more than a round takes.
pub const SPACING: i64 = 1 << 20;

/// What both servers have before the first step, with the sequences at the counter `@`.
pub const OBJECTS: &str = "
    CREATE ROLE taker LOGIN; CREATE ROLE friend LOGIN; CREATE ROLE stranger;
    GRANT friend, stranger TO taker; GRANT stranger TO friend;
    CREATE SCHEMA app; CREATE SCHEMA elsewhere;
    GRANT ALL ON SCHEMA app, elsewhere TO PUBLIC;
    ALTER DATABASE postgres SET search_path = app, elsewhere, public;
    SET search_path = app, public;
    CREATE SEQUENCE a START @; CREATE SEQUENCE b START @; CREATE SEQUENCE c CACHE 5 START @; CREATE SEQUENCE t_id_seq START @;
    CREATE TABLE marks (); CREATE TABLE busy (x int);
    CREATE TABLE many AS SELECT g AS id FROM generate_series(1, 3000) AS g;
    CREATE TABLE t (id bigint DEFAULT next('t_id_seq'));
    ALTER SEQUENCE t_id_seq OWNED BY t.id;
    GRANT ALL ON marks, many, t TO PUBLIC;
    GRANT USAGE ON SEQUENCE a, b, c, t_id_seq TO taker, friend;
    CREATE FUNCTION definer(OUT id bigint, OUT seq oid) LANGUAGE sql SECURITY DEFINER
    AS $$ SELECT next('a'), 'a'::regclass::oid $$;
    CREATE FUNCTION given_away(OUT id bigint, OUT seq oid) LANGUAGE sql SECURITY DEFINER SET work_mem = '1MB'
    AS $$ SELECT next('a'), 'a'::regclass::oid $$;
    ALTER FUNCTION given_away OWNER TO friend;
    CREATE FUNCTION invoker(OUT id bigint, OUT seq oid) LANGUAGE plpgsql SET search_path = elsewhere, app, public
    AS $$ BEGIN SELECT next('b'), 'b'::regclass::oid INTO id, seq; END $$;
    CREATE FUNCTION trapped(OUT id bigint, OUT seq oid) LANGUAGE plpgsql
    AS $$ BEGIN
        SELECT next('b'), 'b'::regclass::oid INTO id, seq;
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN END $$;";

/// A cursor that outlives its transaction.
pub const HOLD: &str = "DECLARE held CURSOR WITH HOLD FOR SELECT next('a'), 'a'::regclass::oid FROM generate_series(1, 3)";

/// What happens to the session's transaction, or to what is known of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Begin,
    Commit,
    /// Ends the transaction otherwise.
    End,
    RollBackTo,
    /// Its commit generates the IDs of [`HOLD`].
    Hold,
    /// Its commit is flushed, and all that was written before.
    Write,
    /// What is taken from a sequence after it is undone with it.
    Alter,
    /// As above, and a sequence may fall back.
    Lower,
}

/// What the rows of a statement are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    Nothing,
    /// New IDs, each with the OID of its sequence.
    Ids,
    /// New IDs of a sequence with a cache.
    CachedIds,
    /// The session's last ID and the OID of its sequence.
    Current,
    /// The same of a sequence with a cache.
    CachedCurrent,
    /// The state of a sequence, and its OID.
    State,
}

/// A step: the same on both servers, except that `next` and the like are core's functions on one and ours on the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Execute {
        by: usize,
        sql: String,
        yields: Yields,
        effect: Effect,
    },
    /// A superuser executes it, in a transaction of its own, which succeeds.
    Beside(String),
    /// A session ends, and another begins.
    Reconnect {
        by: usize,
    },
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        match self {
            Step::Execute { by, sql, .. } => write!(f, "session {by}: {sql}"),
            Step::Beside(sql) => write!(f, "beside: {sql}"),
            Step::Reconnect { by } => write!(f, "session {by} reconnects"),
        }
    }
}

/// How the servers go down at the end of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    Kill,
    KillPostmaster,
    KillBackend {
        session: usize,
    },
    Immediate,
    /// Of a synchronous standby; the server with core's functions is killed.
    Promote,
}

impl Crash {
    pub fn draw(rng: &mut Rng) -> Self {
        match rng.u8(0..8) {
            0..=2 => Crash::Kill,
            3 => Crash::KillPostmaster,
            4 => Crash::KillBackend { session: rng.usize(0..SESSIONS.len()) },
            5 => Crash::Immediate,
            _ => Crash::Promote,
        }
    }
}

/// Draws steps, each with counters [`SPACING`] above those of the last. Only in every fourth round are sequences unlogged, since
/// [`unlogs`] limits what a crash may lose.
pub fn draw(rng: &mut Rng, number: usize, first: i64) -> Vec<Step> {
    let may_unlog = rng.u8(0..4) == 0;
    let mut steps = Vec::new();
    while steps.len() < number {
        let counter = first + steps.len() as i64 * SPACING;
        match rng.u8(0..100) {
            0..=1 => steps.push(Step::Reconnect { by: rng.usize(0..SESSIONS.len()) }),
            2 => steps.push(beside(rng)),
            3 => steps.extend(parallel(rng)),
            4..=19 => steps.push(alter(rng, counter)),
            20..=23 => steps.extend(around_a_change(rng, counter)),
            24..=43 => steps.push(control(rng)),
            44..=49 => steps.extend(in_a_row(rng)),
            _ => steps.push(take(rng)),
        }
    }
    steps.truncate(number);
    for step in steps.iter_mut().filter(|step| !may_unlog && unlogs(step)) {
        *step = Step::Beside("CHECKPOINT".to_owned());
    }
    steps
}

/// Whether the step makes a sequence unlogged.
pub fn unlogs(step: &Step) -> bool {
    matches!(step, Step::Execute { sql, .. } if sql.ends_with("SET UNLOGGED"))
}

/// What concerns other objects: a checkpoint, and so many messages that a session which is idle meanwhile resets its caches.
fn beside(rng: &mut Rng) -> Step {
    const MESSAGES: &str = "DO $$ BEGIN FOR i IN 1..1500 LOOP
        EXECUTE format('ALTER TABLE app.busy ALTER x SET (n_distinct = %s)', i); END LOOP; END $$";
    Step::Beside(pick(rng, &["CHECKPOINT", MESSAGES, "VACUUM pg_class", "VACUUM ANALYZE pg_sequence"]))
}

/// The extension is loaded while a statement runs in parallel mode, by the leader or by a worker.
fn parallel(rng: &mut Rng) -> Vec<Step> {
    let by = rng.usize(0..SESSIONS.len());
    // Named force_parallel_mode before PostgreSQL 16.
    let force = |to| {
        format!("SELECT set_config(name, '{to}', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query')")
    };
    let settings = pick(rng, &["SET max_parallel_workers = 0", "SET parallel_leader_participation = off", "SELECT 1"]);
    let load = pick(
        rng,
        &[
            "SELECT max(snowflake_shard_id(id)) FROM many",
            r#"SELECT json_populate_record(null::snowflake_columns, '{"layout":"instagram"}') IS NULL FROM many LIMIT 1"#,
        ],
    );
    let statements = [settings, force("on"), load, force("off")];
    let mut steps = vec![Step::Reconnect { by }];
    steps.extend(statements.map(|sql| execute(by, sql, Yields::Nothing, Effect::Nothing)));
    steps.push(take_by(rng, by));
    steps
}

/// Takes of one session in a row, often more in the same transaction.
fn in_a_row(rng: &mut Rng) -> Vec<Step> {
    let by = rng.usize(0..SESSIONS.len());
    (0..rng.u8(2..6)).map(|_| take_by(rng, by)).collect()
}

/// A session takes two IDs, which leaves it the fast path or a cached counter, and another after the superuser has changed the
/// sequence or a role.
fn around_a_change(rng: &mut Rng, counter: i64) -> Vec<Step> {
    const OF_ROLES: [&str; 4] =
        ["GRANT friend TO taker", "REVOKE friend FROM taker", "ALTER ROLE taker SUPERUSER", "ALTER ROLE taker NOSUPERUSER"];
    let by = rng.usize(0..SESSIONS.len());
    let (sequence, yields) = match rng.u8(0..4) {
        0 => ("a", Yields::Ids),
        1 => ("b", Yields::Ids),
        _ => ("c", Yields::CachedIds),
    };
    let take = execute(by, "SELECT next('$'), '$'::regclass::oid".replace('$', sequence), yields, Effect::Nothing);
    let change = if rng.u8(0..4) == 0 {
        execute(0, pick(rng, &OF_ROLES), Yields::Nothing, Effect::Nothing)
    } else {
        alter_one(rng, 0, sequence, counter + 2 * SPACING)
    };
    vec![take.clone(), take.clone(), change, take]
}

fn take(rng: &mut Rng) -> Step {
    let by = rng.usize(0..SESSIONS.len());
    take_by(rng, by)
}

fn take_by(rng: &mut Rng, by: usize) -> Step {
    const TAKES: [&str; 12] = [
        "SELECT next('$'), '$'::regclass::oid",
        "SELECT next('$'), '$'::regclass::oid",
        "SELECT next('$'), '$'::regclass::oid FROM generate_series(1, 3)",
        "SELECT next_of('$'), '$'::regclass::oid",
        "SELECT next_homed('$'), '$'::regclass::oid",
        "SELECT next_three('$'), '$'::regclass::oid",
        "SELECT next_three_homed('$'), '$'::regclass::oid",
        "EXECUTE take_$",
        "FETCH 2 FROM of_$",
        "SELECT CASE WHEN set_config('role', 'friend', false) > '' THEN next('$') END, '$'::regclass::oid",
        "SELECT CASE WHEN set_config('role', 'none', false) > '' THEN next('$') END, '$'::regclass::oid",
        "SELECT next('$'), '$'::regclass::oid FROM (VALUES (1), (2)) AS v",
    ];
    const OF_FUNCTIONS: [&str; 4] =
        ["SELECT * FROM definer()", "SELECT * FROM given_away()", "SELECT * FROM invoker()", "SELECT * FROM trapped()"];
    const OF_CACHED: [&str; 4] = [
        "SELECT next('c'), 'c'::regclass::oid",
        "SELECT next('c'), 'c'::regclass::oid",
        "SELECT next_of('c'), 'c'::regclass::oid",
        "EXECUTE take_c",
    ];
    let sequence = pick(rng, &["a", "a", "b", "tmp"]);
    let (sql, yields) = match rng.u8(0..20) {
        0..=9 => (pick(rng, &TAKES), Yields::Ids),
        10..=11 => (pick(rng, &OF_FUNCTIONS), Yields::Ids),
        12..=13 => {
            let insert = "INSERT INTO t DEFAULT VALUES RETURNING id, 't_id_seq'::regclass::oid";
            (insert.to_owned(), Yields::Ids)
        }
        14..=16 => (pick(rng, &OF_CACHED), Yields::CachedIds),
        17..=18 if by > 0 => {
            let (sequence, yields) = match rng.u8(0..3) {
                0 => ("$", Yields::Current),
                1 => ("t_id_seq", Yields::Current),
                _ => ("c", Yields::CachedCurrent),
            };
            ("SELECT current('$'), '$'::regclass::oid".replace('$', sequence), yields)
        }
        _ => {
            let sql = "SELECT last_value, '$'::regclass::oid, is_called FROM $";
            (sql.to_owned(), Yields::State)
        }
    };
    execute(by, sql.replace('$', &sequence), yields, Effect::Nothing)
}

/// How often a statement is drawn for each other one, and what it does.
type Statement = (usize, &'static str, Effect);

fn draw_one(rng: &mut Rng, from: &[Statement]) -> Statement {
    let all = from.iter().flat_map(|&statement| std::iter::repeat_n(statement, statement.0));
    rng.choice(all.collect::<Vec<_>>()).expect("there are statements")
}

/// Transactions and what a session is set to.
fn control(rng: &mut Rng) -> Step {
    use Effect::{Begin, Commit, End, Hold, Nothing, RollBackTo, Write};
    const STATEMENTS: [Statement; 26] = [
        (2, "BEGIN", Begin),
        (1, "BEGIN READ ONLY", Begin),
        (1, "BEGIN ISOLATION LEVEL SERIALIZABLE", Begin),
        (5, "COMMIT", Commit),
        (4, "ROLLBACK", End),
        (1, "PREPARE TRANSACTION '$'", End),
        (2, "COMMIT PREPARED '$'", Nothing),
        (1, "ROLLBACK PREPARED '$'", Nothing),
        (2, "SAVEPOINT s", Nothing),
        (2, "ROLLBACK TO s", RollBackTo),
        (1, "RELEASE s", Nothing),
        (1, "SET TRANSACTION READ ONLY", Nothing),
        (1, "SET default_transaction_read_only = on", Nothing),
        (2, "RESET default_transaction_read_only", Nothing),
        (1, "SET ROLE friend", Nothing),
        (1, "SET LOCAL ROLE stranger", Nothing),
        (2, "RESET ROLE", Nothing),
        (1, "SET SESSION AUTHORIZATION taker", Nothing),
        (2, "RESET SESSION AUTHORIZATION", Nothing),
        (1, "DISCARD ALL", Nothing),
        (1, "DISCARD SEQUENCES", Nothing),
        (1, "DISCARD PLANS", Nothing),
        (2, "INSERT INTO marks DEFAULT VALUES", Write),
        (1, "PREPARE take_# AS SELECT next('#'), '#'::regclass::oid", Nothing),
        (1, "DECLARE of_# CURSOR FOR SELECT next('#'), '#'::regclass::oid FROM generate_series(1, 9)", Nothing),
        (1, HOLD, Hold),
    ];
    let (_, sql, effect) = draw_one(rng, &STATEMENTS);
    let sequence = pick(rng, if sql.starts_with("PREPARE take") { &["a", "b", "c"] } else { &["a", "b"] });
    let sql = sql.replace('$', &pick(rng, &["p", "q"])).replace('#', &sequence);
    execute(rng.usize(0..SESSIONS.len()), sql, Yields::Nothing, effect)
}

/// DDL and privileges, usually of the superuser; `$` is the sequence, `%` the counter.
fn alter(rng: &mut Rng, counter: i64) -> Step {
    use Effect::{Alter, Lower, Nothing};
    const OF_ONE: [Statement; 32] = [
        (1, "ALTER SEQUENCE a CACHE 1", Alter),
        (1, "ALTER SEQUENCE c CACHE 3", Alter),
        (1, "ALTER SEQUENCE c CACHE 10", Alter),
        (1, "ALTER SEQUENCE a RESTART", Lower),
        (1, "ALTER SEQUENCE b RESTART", Lower),
        (1, "SELECT setval('a', %)", Alter),
        (1, "SELECT setval('b', %, false)", Alter),
        (1, "SELECT setval('t_id_seq', %)", Alter),
        (1, "TRUNCATE t RESTART IDENTITY", Lower),
        (1, "TRUNCATE t", Nothing),
        (1, "ALTER TABLE t SET UNLOGGED", Alter),
        (1, "ALTER TABLE t SET LOGGED", Alter),
        (1, "DROP SEQUENCE a; CREATE SEQUENCE a START %", Alter),
        (1, "DROP SEQUENCE b; CREATE SEQUENCE b START %; GRANT USAGE ON SEQUENCE b TO taker, friend", Alter),
        (1, "DROP SEQUENCE c; CREATE SEQUENCE c CACHE 5 START %; GRANT USAGE ON SEQUENCE c TO taker", Alter),
        (1, "ALTER SEQUENCE a RENAME TO x; ALTER SEQUENCE b RENAME TO a; ALTER SEQUENCE x RENAME TO b", Alter),
        (1, "ALTER SEQUENCE a SET SCHEMA elsewhere", Alter),
        (1, "ALTER SEQUENCE IF EXISTS elsewhere.a SET SCHEMA app", Alter),
        (1, "CREATE TEMP SEQUENCE tmp START %", Nothing),
        (1, "DROP SEQUENCE IF EXISTS pg_temp.tmp", Nothing),
        (1, "CREATE TEMP TABLE IF NOT EXISTS scratch ()", Nothing),
        (2, "GRANT friend TO taker", Nothing),
        (1, "REVOKE friend FROM taker", Nothing),
        (1, "ALTER ROLE taker SUPERUSER", Nothing),
        (2, "ALTER ROLE taker NOSUPERUSER", Nothing),
        (1, "ALTER ROLE taker NOINHERIT", Nothing),
        (1, "ALTER ROLE taker INHERIT", Nothing),
        (1, "ALTER DATABASE postgres OWNER TO taker", Nothing),
        (1, "ALTER DATABASE postgres OWNER TO postgres", Nothing),
        (1, "REVOKE USAGE ON SCHEMA app FROM PUBLIC", Nothing),
        (1, "GRANT USAGE ON SCHEMA app TO PUBLIC", Nothing),
        (1, "ALTER FUNCTION definer OWNER TO CURRENT_USER", Nothing),
    ];
    // Core's currval() sees setval() in the same session, ours does not. The first session does not call it.
    let (_, sql, effect) = draw_one(rng, &OF_ONE);
    let is_of_superuser = rng.u8(0..6) > 0 || sql.contains("setval");
    let by = if is_of_superuser { 0 } else { rng.usize(0..SESSIONS.len()) };
    if rng.bool() {
        let sequence = pick(rng, &["a", "a", "b", "c", "t_id_seq"]);
        return alter_one(rng, by, &sequence, counter);
    }
    execute(by, sql.replace('%', &counter.to_string()), Yields::Nothing, effect)
}

/// What can be done to each sequence.
fn alter_one(rng: &mut Rng, by: usize, sequence: &str, counter: i64) -> Step {
    use Effect::{Alter, Nothing};
    const OF_ANY: [Statement; 21] = [
        (1, "GRANT USAGE ON SEQUENCE $ TO taker", Nothing),
        (2, "GRANT USAGE ON SEQUENCE $ TO taker, friend", Nothing),
        (1, "GRANT UPDATE ON SEQUENCE $ TO friend", Nothing),
        (1, "GRANT USAGE ON SEQUENCE $ TO PUBLIC", Nothing),
        (1, "GRANT SELECT ON SEQUENCE $ TO taker, friend", Nothing),
        (1, "GRANT ALL ON SEQUENCE $ TO pg_database_owner", Nothing),
        (1, "REVOKE ALL ON SEQUENCE $ FROM taker", Nothing),
        (1, "REVOKE ALL ON SEQUENCE $ FROM friend", Nothing),
        (1, "REVOKE ALL ON SEQUENCE $ FROM PUBLIC", Nothing),
        (1, "ALTER SEQUENCE $ OWNER TO taker", Alter),
        (1, "ALTER SEQUENCE $ OWNER TO postgres", Alter),
        (2, "ALTER SEQUENCE $ RESTART WITH %", Alter),
        (1, "ALTER SEQUENCE $ START WITH %", Alter),
        (1, "ALTER SEQUENCE $ AS bigint", Alter),
        (1, "ALTER SEQUENCE $ AS integer", Alter),
        (1, "ALTER SEQUENCE $ NO MAXVALUE", Alter),
        (1, "ALTER SEQUENCE $ MAXVALUE 4611686018427387904", Alter),
        (1, "ALTER SEQUENCE $ SET UNLOGGED", Alter),
        (2, "ALTER SEQUENCE $ SET LOGGED", Alter),
        (1, "ALTER SEQUENCE $ OWNED BY t.id", Alter),
        (1, "ALTER SEQUENCE $ OWNED BY NONE", Alter),
    ];
    let (_, sql, effect) = draw_one(rng, &OF_ANY);
    let sql = sql.replace('$', sequence).replace('%', &counter.to_string());
    execute(by, sql, Yields::Nothing, effect)
}

fn execute(by: usize, sql: String, yields: Yields, effect: Effect) -> Step {
    Step::Execute { by, sql, yields, effect }
}

fn pick(rng: &mut Rng, from: &[&str]) -> String {
    from[rng.usize(0..from.len())].to_owned()
}

#[cfg(test)]
mod tests {
    use super::{draw, unlogs};
    use fastrand::Rng;

    #[test]
    fn a_seed_draws_the_same_steps_again() {
        let steps = |seed| draw(&mut Rng::with_seed(seed), 400, 1);
        assert_eq!((steps(1).len(), steps(1)), (400, steps(1)));
        assert_ne!(steps(1), steps(2));
        assert!((0..20).any(|seed| steps(seed).iter().any(unlogs)));
    }
}
