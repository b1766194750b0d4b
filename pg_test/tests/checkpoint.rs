//! A checkpoint that completes while a session takes an ID does not lose that ID.

use pg_snowflake_harness::debugger::{self, Debugger};
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::prelude::*;
use std::thread;

const NEXT: &str = "SELECT snowflake_nextval('s', 5)";

/// The offset of `last_value` in the file of a sequence: the tuple's header of 24 bytes begins at 8136.
const OFFSET: i32 = 8160;

/// The session has read the redo pointer, and decided that the last record covers the ID. Then a checkpoint moves the redo
/// pointer past that record. The checkpoint must write the page with the ID.
#[test]
fn a_checkpoint_between_the_decision_and_the_write_loses_no_id() {
    if let Some(need) = debugger::missing_requirement() {
        return left_out("a session stopped while a checkpoint completes", need);
    }
    // So few buffers that the page is soon written and evicted.
    let mut cluster = Cluster::builder()
        .setting("pg_snowflake.max_lead", "2h")
        .setting("shared_buffers", "128kB")
        .setting("max_connections", "10")
        .start();
    let mut client = cluster.connect();
    let start = counter_in_an_hour();
    client.batch_execute(&format!("CREATE SEQUENCE s START {start}; CREATE TABLE t (id bigint)")).unwrap();
    // The checkpoint comes before the record, which is then above the redo pointer.
    client.batch_execute("CHECKPOINT").unwrap();
    take_one(&mut client, NEXT);
    let before = counter(take_one(&mut client, NEXT));
    let mut other = cluster.connect();
    write_page(&mut other, before);

    let mut debugger = Debugger::stop_at_return_of("GetRedoRecPtr", backend_pid(&mut client));
    let (committed, has_waited) = thread::scope(|scope| {
        let insert = scope.spawn(|| take_one(&mut client, &format!("INSERT INTO t {NEXT} RETURNING id")));
        debugger.wait_until_stopped();
        let mut checkpointing = cluster.connect();
        let checkpoint = scope.spawn(move || checkpointing.batch_execute("CHECKPOINT").unwrap());
        // It either skips the page, or waits for the session that has it locked. From 19 on, the event is BufferShareExclusive.
        let is_waiting = "SELECT wait_event IN ('BufferShareExclusive', 'BufferContent')
            FROM pg_stat_activity WHERE backend_type = 'checkpointer'";
        let mut has_waited = false;
        while !checkpoint.is_finished() && !has_waited {
            has_waited = printed(&mut other, is_waiting) == "t";
        }
        drop(debugger);
        checkpoint.join().unwrap();
        (insert.join().unwrap(), has_waited)
    });
    cluster.restart(Shutdown::Immediate);

    let next = take_one(&mut cluster.connect(), NEXT);
    assert!(counter(next) > counter(committed), "{committed} was committed, then {next} returned");
    assert!(has_waited, "the checkpoint skipped the page");
}

/// Gets the page written: reading other pages takes its buffer, one of 16.
fn write_page(client: &mut Client, last_value: i64) {
    let is_written = format!(
        "SELECT count(*) > 0 AND
             (SELECT pg_read_binary_file(pg_relation_filepath('s'), {OFFSET}, 8) = decode('{}', 'hex'))
         FROM pg_depend, pg_attribute",
        last_value.to_le_bytes().map(|byte| format!("{byte:02x}")).concat()
    );
    wait_for(client, &is_written, "the page is written");
}
