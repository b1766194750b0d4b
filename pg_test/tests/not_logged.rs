//! Sequences whose pages the WAL does not cover: temporary, unlogged, and new ones under `wal_level = minimal`. And damaged pages.

use pg_snowflake_harness::prelude::*;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;

const TAKE: &str = "SELECT snowflake_nextval('s', 5)";
const INSERT: &str = "INSERT INTO t DEFAULT VALUES RETURNING id";
const TAKE_100: &str = "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 100)";

/// Core resets such a sequence after a crash, but the clock has advanced.
#[test]
fn an_unlogged_sequence_goes_on_above_its_ids_after_a_crash() {
    let (mut cluster, mut client) = server_with("CREATE UNLOGGED SEQUENCE s");
    let mut ids = take(&mut client, TAKE_100);

    cluster.crash();

    let mut client = cluster.connect();
    let reset = State { last_value: 1, log_cnt: 0, is_called: false };
    assert_eq!(state(&mut client, "s"), reset);
    ids.extend(take(&mut client, TAKE_100));
    assert!(is_increasing(&ids));
}

#[test]
fn sequences_that_need_no_wal_write_none() {
    let (cluster, mut client) = server();
    for kind in ["TEMPORARY", "UNLOGGED"] {
        client.batch_execute(&format!("CREATE {kind} SEQUENCE s")).unwrap();
        let start = insert_lsn(&mut client);

        take(&mut client, TAKE_100);

        assert_eq!(sequence_records_since(&cluster, &mut client, &start), 0, "{kind}");
        client.batch_execute("DROP SEQUENCE s").unwrap();
    }
}

/// Before the crash, the sequence advances only by IDs that no WAL covers, and it is ahead of the clock, so that the clock
/// cannot hide a counter that fell back.
#[test]
fn a_crash_repeats_no_id_of_a_sequence_that_was_not_logged_at_first() {
    let start = counter_in_an_hour();
    let create = format!("CREATE SEQUENCE s START {start}");
    let restart = format!("ALTER SEQUENCE s RESTART {}", start + 1_000_000);
    // Ways to a sequence that is logged from then on.
    let cases = [
        format!("BEGIN; {create}; COMMIT"),
        format!("BEGIN; {create}; {TAKE}; COMMIT"),
        format!("BEGIN; {create}; SAVEPOINT p; {TAKE}; ROLLBACK TO p; {TAKE_100}; COMMIT"),
        format!("{create}; {TAKE}; BEGIN; {restart}; {TAKE}; COMMIT"),
        format!("{create}; BEGIN; {restart}; {TAKE}; ROLLBACK; {TAKE}"),
        format!("BEGIN; {create}; {TAKE}; {restart}; {TAKE}; COMMIT; CHECKPOINT"),
        format!("CREATE UNLOGGED SEQUENCE s START {start}; {TAKE}; ALTER SEQUENCE s SET LOGGED"),
    ];
    for wal_level in ["minimal", "replica"] {
        let mut cluster = Cluster::builder()
            .setting("pg_snowflake.max_lead", "2h")
            .setting("wal_level", wal_level)
            .setting("max_wal_senders", "0")
            .start();
        let mut repeats = Vec::new();
        for case in &cases {
            let mut client = cluster.connect();
            // One by one: statements sent together are one transaction.
            for statement in case.split("; ") {
                client.batch_execute(statement).unwrap();
            }
            let last = take(&mut client, TAKE_100)[99];

            cluster.crash();

            let mut client = cluster.connect();
            let next = take_one(&mut client, TAKE);
            if next <= last {
                repeats.push(format!("{next} after {last}: {case}"));
            }
            client.batch_execute("DROP SEQUENCE s").unwrap();
        }
        assert_eq!(repeats, [""; 0], "with wal_level = {wal_level}");
    }
}

/// Without checksums, or if their failure is ignored, only the magic number shows the damage.
#[test]
fn a_damaged_page_is_reported_and_not_left_locked() {
    let mut cluster = Cluster::builder().setting("ignore_checksum_failure", "on").start();
    let mut client = cluster.connect();
    let sql = "CREATE SEQUENCE s; CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval('s', 5)); ALTER SEQUENCE s OWNED BY t.id";
    run(&mut client, sql);
    let last = take_one(&mut client, INSERT);
    let file: String = client.query_one("SELECT pg_relation_filepath('s')", &[]).unwrap().get(0);
    cluster.stop(Shutdown::Fast);

    const MAGIC_AT: u64 = 8192 - 8;
    let file = OpenOptions::new().write(true).open(cluster.dir().join("data").join(file)).unwrap();
    file.write_all_at(&0xDEAD_u32.to_ne_bytes(), MAGIC_AT).unwrap();
    cluster.start();

    let named = "bad magic number in sequence \"s\": 0000DEAD";
    for sql in [TAKE, "SELECT snowflake_sequence_status('s')"] {
        for _session in 0..2 {
            assert_refused(&mut cluster.connect(), sql, Refusal { sqlstate: "XX001", message: named, hint: "snowflake_convert_column()" });
        }
    }

    // What the hint says.
    let mut client = cluster.connect();
    client.batch_execute("ALTER TABLE t ALTER id DROP DEFAULT; DROP SEQUENCE s; SELECT snowflake_convert_column('t', 'id', 5)").unwrap();
    assert!(take_one(&mut client, INSERT) > last);
}
