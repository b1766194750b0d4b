//! Instructions per ID and per inserted row, counted by valgrind. They show changes that the noise of timings hides.

use crate::bench::backend::LOOP;
use crate::bench::contender::{Contender, INSERT, ROOMY, empty_loop, in_transactions};
use crate::bench::floor::{self, FLOORS};
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::{leases, server};
use pg_snowflake_harness::leases::{Registry, first_id};
use pg_snowflake_harness::process::backend_pid;
use pg_snowflake_harness::valgrind::{self, Tool};
use pg_snowflake_harness::wait::comes_true;
use pg_snowflake_harness::{Cluster, SUPERUSER, Shutdown, installation};
use std::path::Path;

/// Two lengths, so that startup and shutdown cancel out.
const IDS: [i64; 2] = [1_000, 11_000];
const ROWS: [i64; 2] = [500, 2_500];

/// More, since the postmaster executes some more instructions before each session that it forks.
const IDS_OF_A_SESSION: [i64; 2] = [1_000, 51_000];

/// The contender whose IDs are also counted in these layouts, each in a database of its own: counters of two layouts do
/// not mix.
const OURS: &str = "ours_cache_1";
const LAYOUTS: [(&str, Measure); 2] = [
    ("instagram", Measure::InstructionsOfInstagram),
    ("postgres", Measure::InstructionsOfPostgres),
];

pub(super) fn run(_: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let mut server = server::builder().setting("shared_buffers", "32MB").start();
    for contender in contenders.iter().filter(|contender| contender.is_called()) {
        let mut client = server::database_of(&server, contender);
        if contender.fills_single_rows() {
            client.batch_execute(&contender.create_table()).expect("a table can be created");
            client.batch_execute(&insert_rows()).expect("a procedure can be created");
        }
    }
    for (layout, _) in LAYOUTS {
        let copy = format!("CREATE DATABASE {} TEMPLATE {OURS}", database_of(layout));
        server.connect().batch_execute(&copy).expect("a database without sessions can be copied");
    }
    drop(floor::create(&server));
    server.stop(Shutdown::Fast);
    let of_the_loop = instructions_each(&server, SUPERUSER, IDS, empty_loop);
    println!("      {LOOP}: {of_the_loop:.0}");
    let mut add = |name, measure, instructions: f64| {
        println!("      {name}: {measure} {instructions:.0}");
        // One round: the next differs by a few in a thousand.
        findings.samples.add(0, name, measure, instructions);
    };
    for (name, _) in FLOORS {
        let take = |count| floor::take(name, count);
        let instructions = instructions_each(&server, SUPERUSER, IDS, take) - of_the_loop;
        add(name, Measure::Instructions, instructions);
    }
    for contender in contenders {
        let name = contender.name;
        if contender.take_one().is_some() {
            let take = |count| contender.take(count, ROOMY).expect("it is called");
            let instructions = instructions_each(&server, name, IDS, take) - of_the_loop;
            add(name, Measure::Instructions, instructions);
        }
        if contender.fills_single_rows() {
            let insert = |count| format!("CALL insert_rows({count})");
            let instructions = instructions_each(&server, name, ROWS, insert);
            add(name, Measure::InsertInstructions, instructions);
        }
    }
    let ours = contenders.iter().find(|contender| contender.name == OURS);
    let ours = ours.expect("the extension is always measured");
    for (layout, measure) in LAYOUTS {
        let take = |count| ours.take(count, layout).expect("ours is called");
        let database = database_of(layout);
        let instructions = instructions_each(&server, &database, IDS, take) - of_the_loop;
        add(OURS, measure, instructions);
    }
    let registry = Registry::start();
    for (name, conninfo) in [(leases::WITHOUT, String::new()), (leases::WITH, registry.conninfo())]
    {
        let server = leases::builder(&conninfo, "db-1").valgrind(Tool::Callgrind).start();
        drop(server::database_of(&server, ours));
        let take_one = ours.take_one().expect("a call returns one");
        let take = |count| ours.take(count, ROOMY).expect("ours is called");
        let of_transactions = |taken: &str| {
            instructions_of_a_session(&server, ours, |count| in_transactions(count, taken))
        };
        let of_ids = instructions_of_a_session(&server, ours, take);
        let of_the_loop = instructions_of_a_session(&server, ours, empty_loop);
        add(name, Measure::Instructions, of_ids - of_the_loop);
        let first = of_transactions(&take_one) - of_transactions("1");
        add(name, Measure::FirstIdInstructions, first);
    }
}

/// The instructions of one in a statement that has a given number of them, in a session of a running server. Leases need the server's other
/// processes.
fn instructions_of_a_session(
    server: &Cluster,
    contender: &Contender,
    statement: impl Fn(i64) -> String,
) -> f64 {
    let count = |count| {
        let mut client = server::connect(server, contender);
        first_id(
            &mut client,
            &format!("SELECT {}", contender.take_one().expect("a call returns one")),
        );
        let log = server.dir().join(format!("callgrind.{}.log", backend_pid(&mut client)));
        client.batch_execute(&statement(count)).expect("IDs are returned");
        drop(client);
        let collected =
            || valgrind::instructions_in(&std::fs::read_to_string(&log).unwrap_or_default());
        assert!(
            comes_true(|| collected().is_some()),
            "{}: the session has not ended",
            log.display()
        );
        collected().expect("just found")
    };
    let [short, long] = IDS_OF_A_SESSION.map(count);
    (long as f64 - short as f64) / (IDS_OF_A_SESSION[1] - IDS_OF_A_SESSION[0]) as f64
}

fn database_of(layout: &str) -> String {
    format!("of_{layout}")
}

/// Creates `insert_rows(count)`, which inserts each row in a transaction of its own and returns their number. PL/pgSQL
/// prepares the statement once, and starts and ends an execution for each row, as a client's prepared statement does.
fn insert_rows() -> String {
    format!(
        "CREATE PROCEDURE insert_rows(INOUT count bigint) LANGUAGE plpgsql AS $$
         BEGIN FOR turn IN 1..count LOOP {INSERT}; COMMIT; END LOOP; END $$"
    )
}

/// The instructions of one in a statement that has a given number of them.
fn instructions_each(
    stopped: &Cluster,
    database: &str,
    counts: [i64; 2],
    statement: impl Fn(i64) -> String,
) -> f64 {
    let [short, long] = counts.map(|number| count(stopped.dir(), database, &statement(number)));
    (long as f64 - short as f64) / (counts[1] - counts[0]) as f64
}

/// The instructions of a server that starts in single-user mode, runs one statement and exits.
fn count(dir: &Path, database: &str, statement: &str) -> u64 {
    let mut valgrind = valgrind::counted_postgres(dir, "callgrind.log");
    valgrind.args(["--single", "-D", "data", database]);
    let said = installation::run(&mut valgrind, format!("{statement}\n").as_bytes());
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("count = "), "the statement failed:\n{said}");
    let log = std::fs::read_to_string(dir.join("callgrind.log")).expect("valgrind writes its log");
    valgrind::instructions_in(&log)
        .unwrap_or_else(|| panic!("valgrind does not say what it counted:\n{log}"))
}
