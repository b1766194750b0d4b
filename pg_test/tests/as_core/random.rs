//! Random statements: `snowflake_nextval()` of one sequence and `nextval()` of another end alike after each, whatever was granted,
//! revoked, altered, rolled back or set before.

use super::{OK, sqlstate};
use fastrand::Rng;
use pg_snowflake_servertest::Cluster;
use postgres::Client;

const STEPS: u32 = 4_000;

/// What the role that takes IDs runs.
const OF_THE_TAKER: [&str; 16] = [
    "BEGIN",
    "BEGIN READ ONLY",
    "COMMIT",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT a",
    "ROLLBACK TO a",
    "RELEASE a",
    "SET TRANSACTION READ ONLY",
    "SET ROLE friend",
    "SET LOCAL ROLE stranger",
    "RESET ROLE",
    "DISCARD SEQUENCES",
    "SET default_transaction_read_only = on",
    "RESET default_transaction_read_only",
    "CREATE TEMP TABLE IF NOT EXISTS t ()",
];

/// What a superuser runs beside, on both sequences in one transaction; `$` is the sequence.
const OF_THE_OWNER: [&str; 17] = [
    "GRANT USAGE ON SEQUENCE $ TO taker",
    "GRANT UPDATE ON SEQUENCE $ TO friend",
    "GRANT USAGE ON SEQUENCE $ TO PUBLIC",
    "REVOKE ALL ON SEQUENCE $ FROM taker",
    "REVOKE ALL ON SEQUENCE $ FROM friend",
    "REVOKE ALL ON SEQUENCE $ FROM PUBLIC",
    "GRANT friend TO taker",
    "REVOKE friend FROM taker",
    "ALTER SEQUENCE $ OWNER TO taker",
    "ALTER SEQUENCE $ OWNER TO postgres",
    "ALTER SEQUENCE $ CACHE 3",
    "ALTER SEQUENCE $ RESTART",
    "ALTER SEQUENCE $ RENAME TO other; ALTER SEQUENCE other RENAME TO $",
    "DROP SEQUENCE $; CREATE SEQUENCE $",
    "DROP SEQUENCE $; CREATE SEQUENCE $; GRANT USAGE ON SEQUENCE $ TO taker",
    "ALTER SEQUENCE $ SET UNLOGGED",
    "ALTER SEQUENCE $ SET LOGGED",
];

#[test]
fn random_statements_act_as_on_core_nextval() {
    let cluster = Cluster::new();
    let mut owner = cluster.connect();
    owner
        .batch_execute(
            "CREATE ROLE taker LOGIN; CREATE ROLE friend; CREATE ROLE stranger;
             GRANT friend, stranger TO taker;
             CREATE SEQUENCE ours; CREATE SEQUENCE core;
             CREATE TABLE never_locked (); GRANT SELECT ON never_locked TO PUBLIC;
             GRANT USAGE ON SEQUENCE ours, core TO taker;
             SET lock_timeout = '20ms'",
        )
        .expect("a superuser");
    let mut taker = cluster.connect_to("taker", "postgres");
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    let (mut returned, mut refused) = (0, 0);
    let mut history = Vec::new();
    for _ in 0..STEPS {
        let statement = if rng.u8(0..3) == 0 {
            let of_both = alter_both(&mut rng);
            // A lock that the taker's transaction holds undoes it for both sequences.
            let _ = owner.batch_execute(&format!("BEGIN; {of_both}; COMMIT"));
            let _ = owner.batch_execute("ROLLBACK");
            of_both
        } else {
            let statement = OF_THE_TAKER[rng.usize(0..OF_THE_TAKER.len())];
            let _ = taker.batch_execute(statement);
            statement.to_owned()
        };
        history.push(statement);
        notice_changes(&mut taker);
        let [ours, core] =
            ["snowflake_nextval('ours', 5)", "nextval('core')"].map(|call| take(&mut taker, call));
        let recent = &history[history.len().saturating_sub(30)..];
        assert_eq!(ours, core, "seed {seed}, after {recent:#?}");
        *if ours == OK { &mut returned } else { &mut refused } += 1;
    }
    // Else it shows nothing.
    assert!(returned > STEPS / 10 && refused > STEPS / 10, "{returned} and {refused}, seed {seed}");
}

fn alter_both(rng: &mut Rng) -> String {
    let statement = OF_THE_OWNER[rng.usize(0..OF_THE_OWNER.len())];
    ["ours", "core"].map(|sequence| statement.replace('$', sequence)).join("; ")
}

/// Lets the session see what others have committed. It looks when it locks a relation, and in a transaction that has used both
/// sequences, a catalog that only the second call reads would do that between the two.
fn notice_changes(taker: &mut Client) {
    let look = "TABLE public.never_locked";
    if taker.batch_execute("SAVEPOINT look").is_ok() {
        let _ = taker.batch_execute(look);
        let _ = taker.batch_execute("ROLLBACK TO look; RELEASE look");
    }
}

/// The SQLSTATE of a call. In a transaction, an error does not keep the other call from running.
fn take(taker: &mut Client, call: &str) -> String {
    let is_in_transaction = taker.batch_execute("SAVEPOINT call").is_ok();
    let outcome = sqlstate(taker, &format!("SELECT {call}"));
    if is_in_transaction {
        let end = if outcome == OK { "RELEASE call" } else { "ROLLBACK TO call; RELEASE call" };
        let _ = taker.batch_execute(end);
    }
    outcome
}
