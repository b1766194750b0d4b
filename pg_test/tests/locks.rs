//! A transaction that took an ID locks the sequence as core's `nextval()` would: `equal_to_core` has the other cases.

use pg_snowflake_harness::ask::database_with_sequence;
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::take_one;
use pg_snowflake_harness::wait::wait_for;
use std::thread::scope;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";

/// Else its ID could repeat one that the holder of the lock took meanwhile.
#[test]
fn a_call_that_waits_behind_a_restart_reads_the_clock_after_its_wait() {
    let (database, mut holder) = database_with_sequence();
    take_one(&mut holder, TAKE);
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
