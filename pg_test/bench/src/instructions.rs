//! Instructions per ID and per inserted row, counted by valgrind. They show changes that the noise of timings hides.

use crate::contenders::{Contender, FLOORS, INSERT, LOOP, OF_LAYOUTS, OURS, in_loop, in_transactions};
use crate::run::{Run, connect, database_of, execute, server};
use pg_snowflake_harness::leases::{Registry, as_node, first_id};
use pg_snowflake_harness::process::backend_pid;
use pg_snowflake_harness::valgrind::{self, Tool};
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{Cluster, Shutdown, installation};

/// Servers of the same build, with a registry and without: the name in the CSV and the title.
pub const LEASES: [(&str, &str); 2] =
    [("without_leases", "`snowflake_nextval` without leases"), ("with_leases", "`snowflake_nextval` with leases")];

/// Two lengths, so that startup and shutdown cancel out.
const IDS: [i64; 2] = [1_000, 11_000];
const ROWS: [i64; 2] = [500, 2_500];

/// More, since the postmaster executes some more instructions before each session that it forks.
const IDS_OF_A_SESSION: [i64; 2] = [1_000, 51_000];

/// Creates `insert_rows(count)`, which inserts each row in a transaction of its own and returns their number. PL/pgSQL prepares the
/// statement once, and starts and ends an execution for each row, as a client's prepared statement does.
const INSERT_ROWS: &str = "CREATE PROCEDURE insert_rows(INOUT count bigint) LANGUAGE plpgsql AS
    $$ BEGIN FOR turn IN 1..count LOOP {insert}; COMMIT; END LOOP; END $$";

pub fn instructions(run: &mut Run) {
    let mut server = server().setting("shared_buffers", "32MB").start();
    let contenders = FLOORS.iter().chain(run.contenders.iter().copied()).chain(&OF_LAYOUTS);
    let contenders: Vec<&'static Contender> = contenders.collect();
    for contender in &contenders {
        let mut client = database_of(&server, contender);
        execute(&mut client, &contender.create_table());
        execute(&mut client, &INSERT_ROWS.replace("{insert}", INSERT));
    }
    server.stop(Shutdown::Fast);
    // One round: the next differs by a few in a thousand.
    let mut add = |name, measure, instructions: f64| {
        println!("      {name}: {measure} {instructions:.0}");
        run.samples.add(0, name, measure, instructions);
    };
    let mut of_the_loop = 0.0;
    for &contender in &contenders {
        let count = |statement: &str| instructions_of(&server, contender.name, statement);
        if contender.take(1).is_some() {
            let of_ids = each(IDS, |ids| count(&contender.take(ids).expect("as for one")));
            if contender.name == LOOP {
                of_the_loop = of_ids;
            } else {
                add(contender.name, "instructions_per_id", of_ids - of_the_loop);
            }
        }
        if contender.fills_single_rows() && run.contenders.iter().any(|has| has.name == contender.name) {
            let of_rows = each(ROWS, |rows| count(&format!("CALL insert_rows({rows})")));
            add(contender.name, "instructions_per_insert", of_rows);
        }
    }
    let registry = Registry::start();
    let id = OURS.one().expect("it returns single IDs");
    for ((name, _), conninfo) in LEASES.into_iter().zip([String::new(), registry.conninfo()]) {
        let server = as_node(self::server(), "db-1", &conninfo).setting("pg_snowflake.owned_shards", "5").valgrind(Tool::Callgrind).start();
        drop(database_of(&server, &OURS));
        let of = |statement: &dyn Fn(i64) -> String| each(IDS_OF_A_SESSION, |count| instructions_of_a_session(&server, &statement(count)));
        let of_ids = of(&|count| in_loop(id, count)) - of(&|count| in_loop("1", count));
        add(name, "instructions_per_id", of_ids);
        let first = of(&|count| in_transactions(count, id)) - of(&|count| in_transactions(count, "1"));
        add(name, "instructions_per_first_id", first);
    }
}

/// The instructions of one, from those of statements with two numbers of them.
fn each(counts: [i64; 2], instructions: impl Fn(i64) -> u64) -> f64 {
    let [short, long] = counts.map(|count| instructions(count) as f64);
    (long - short) / (counts[1] - counts[0]) as f64
}

/// The instructions of a stopped server that starts in single-user mode, runs one statement and exits.
fn instructions_of(stopped: &Cluster, database: &str, statement: &str) -> u64 {
    let mut valgrind = valgrind::counted_postgres(stopped.dir(), "callgrind.log");
    valgrind.args(["--single", "-D", "data", database]);
    let said = installation::run(&mut valgrind, format!("{statement}\n").as_bytes());
    let said = String::from_utf8_lossy(&said);
    assert!(said.contains("count = "), "the statement failed:\n{said}");
    let log = std::fs::read_to_string(stopped.dir().join("callgrind.log")).expect("valgrind's log");
    valgrind::instructions_in(&log).unwrap_or_else(|| panic!("valgrind counted nothing:\n{log}"))
}

/// The instructions of a session that runs one statement in a running server. Leases need the server's other processes.
fn instructions_of_a_session(server: &Cluster, statement: &str) -> u64 {
    let mut client = connect(server, &OURS);
    first_id(&mut client, &format!("SELECT {}", OURS.one().expect("it returns single IDs")));
    let log = server.dir().join(format!("callgrind.{}.log", backend_pid(&mut client)));
    execute(&mut client, statement);
    drop(client);
    let counted = || valgrind::instructions_in(&std::fs::read_to_string(&log).unwrap_or_default());
    assert!(comes_true(|| counted().is_some()), "{}: the session has not ended", log.display());
    counted().expect("just found")
}
