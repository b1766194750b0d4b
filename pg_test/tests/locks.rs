//! A transaction that took an ID locks the sequence as core's `nextval()` would.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{Refusal, assert_refused, database_with_sequence};
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::{take, take_one};
use pg_snowflake_harness::wait::wait_for;
use postgres::Client;
use std::thread::scope;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

const LOCK_TIMEOUT: Refusal = Refusal { sqlstate: "55P03", message: "lock timeout", hint: "" };

#[test]
fn nobody_drops_or_alters_a_sequence_under_a_transaction_that_took_an_id() {
    let (database, mut client) = used_sequence();
    let mut other = impatient(&database);

    client.batch_execute(&format!("BEGIN; {TAKE}")).unwrap();
    for ddl in ["DROP SEQUENCE s", "ALTER SEQUENCE s RESTART", "ALTER SEQUENCE s CACHE 10"] {
        assert_refused(&mut other, ddl, LOCK_TIMEOUT);
    }
    client.batch_execute("COMMIT").unwrap();

    other.batch_execute("DROP SEQUENCE s").unwrap();
}

#[test]
fn a_rolled_back_savepoint_keeps_the_lock() {
    let (database, mut client) = used_sequence();
    let mut other = impatient(&database);

    client.batch_execute(&format!("BEGIN; SAVEPOINT p; {TAKE}; ROLLBACK TO p")).unwrap();

    assert_refused(&mut other, "DROP SEQUENCE s", LOCK_TIMEOUT);
}

#[test]
fn open_transactions_do_not_make_each_other_wait() {
    let (database, mut client) = used_sequence();
    let mut other = impatient(&database);

    client.batch_execute(&format!("BEGIN; {TAKE}")).unwrap();

    assert_eq!(take(&mut other, TAKE).len(), 1);
}

/// Else its ID could repeat one that the holder of the lock took meanwhile.
#[test]
fn a_call_that_waits_behind_a_restart_reads_the_clock_after_its_wait() {
    let (database, mut holder) = used_sequence();
    holder.batch_execute(&format!("BEGIN; {TAKE}")).unwrap();
    let waiting = |count| {
        let waiting = format!("SELECT count(*) = {count} FROM pg_locks WHERE relation = 's'::regclass AND NOT granted");
        wait_for(&mut database.connect(), &waiting, "the others wait for the lock");
    };
    scope(|scope| {
        let mut restarting = database.connect();
        scope.spawn(move || restarting.batch_execute("ALTER SEQUENCE s RESTART").unwrap());
        waiting(1);
        let mut taking = database.connect();
        let taken = scope.spawn(move || take_one(&mut taking, TAKE));
        waiting(2);
        holder.batch_execute("SELECT pg_sleep(0.01)").unwrap();
        let last = take_one(&mut holder, TAKE);
        holder.batch_execute("COMMIT").unwrap();
        let next = taken.join().unwrap();
        assert!(split(next).unix_ms >= split(last).unix_ms, "{next} after {last}");
    });
}

/// A session that has used the sequence `s` in an earlier transaction, which has released its lock.
fn used_sequence() -> (Database, Client) {
    let (database, mut client) = database_with_sequence();
    take_one(&mut client, TAKE);
    (database, client)
}

/// A session that gives up on a lock instead of waiting for it.
fn impatient(database: &Database) -> Client {
    let mut client = database.connect();
    client.batch_execute("SET lock_timeout = '300ms'").unwrap();
    client
}
