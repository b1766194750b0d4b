//! Commands that copy a sequence's tuple or page into new storage, whose WAL has no record of the IDs that the old storage's WAL covers.

use pg_snowflake_harness::ask;
use pg_snowflake_harness::prelude::*;

/// Commands on a sequence `{s}` and its table `{s}_ids`; `{later}` is a counter that is not taken yet. The statements are sent one by one.
const COMMANDS: [&str; 19] = [
    "ALTER SEQUENCE {s} START WITH 7",
    "ALTER TABLE {s}_ids ALTER id SET START WITH 7",
    "ALTER SEQUENCE {s} START WITH 7; ALTER SEQUENCE {s} START WITH 8",
    "BEGIN; ALTER SEQUENCE {s} START WITH 7; COMMIT",
    "BEGIN; ALTER SEQUENCE {s} START WITH 7; SELECT snowflake_nextval('{s}', 5); COMMIT",
    "BEGIN; ALTER SEQUENCE {s} START WITH 7; ROLLBACK",
    // Copies log_cnt if MAXVALUE is not the type's own.
    "ALTER SEQUENCE {s} AS bigint",
    "ALTER SEQUENCE {s} MINVALUE 2",
    "ALTER SEQUENCE {s} MAXVALUE 9100000000000000000",
    "ALTER SEQUENCE {s} CACHE 32",
    "ALTER SEQUENCE {s} SET UNLOGGED; ALTER SEQUENCE {s} SET LOGGED",
    "BEGIN; ALTER SEQUENCE {s} SET UNLOGGED; ALTER SEQUENCE {s} SET LOGGED; COMMIT",
    "ALTER SEQUENCE {s} SET UNLOGGED; SELECT snowflake_nextval('{s}', 5); ALTER SEQUENCE {s} SET LOGGED",
    // Core also counts log_cnt for an unlogged sequence.
    "ALTER SEQUENCE {s} SET UNLOGGED; SELECT nextval('{s}'); ALTER SEQUENCE {s} SET LOGGED",
    "ALTER TABLE {s}_ids SET UNLOGGED; ALTER TABLE {s}_ids SET LOGGED",
    "ALTER SEQUENCE {s} RESTART",
    "ALTER SEQUENCE {s} RESTART WITH {later}",
    "TRUNCATE {s}_ids RESTART IDENTITY",
    "BEGIN; TRUNCATE {s}_ids RESTART IDENTITY; SELECT snowflake_nextval('{s}', 5); COMMIT",
];

/// Commands on a database `{d}`, and the database in which its sequences continue. The first two make checkpoints, after
/// which IDs are logged again. The last makes none, and comes after them.
const DATABASE_COMMANDS: [(&str, &str); 3] = [
    ("CREATE DATABASE {d}_copy TEMPLATE {d} STRATEGY FILE_COPY", "{d}_copy"),
    ("ALTER DATABASE {d} SET TABLESPACE elsewhere", "{d}"),
    ("CREATE DATABASE {d}_copy TEMPLATE {d} STRATEGY WAL_LOG", "{d}_copy"),
];

/// Which session takes IDs after the command.
#[derive(Clone, Copy, Debug)]
enum Taker {
    /// A session that took an ID before the command, and ran it.
    Itself,
    /// A session that took an ID before the command, and did not run it.
    Other,
    New,
}

/// How IDs are taken.
#[derive(Clone, Copy, Debug)]
enum Way {
    /// So few that the values which core's `nextval` logs ahead would cover them.
    Few,
    Cached,
    Batch,
}

const WAYS: [Way; 3] = [Way::Few, Way::Cached, Way::Batch];

#[test]
fn a_crash_repeats_no_id_of_a_sequence_whose_tuple_was_copied() {
    try_commands(cluster("replica"));
}

/// With `wal_level = minimal` the new storage is synced at commit instead of logged.
#[test]
fn a_crash_repeats_no_id_of_a_sequence_whose_tuple_was_copied_without_wal() {
    try_commands(cluster("minimal"));
}

#[test]
fn a_crash_repeats_no_id_of_a_database_that_was_copied_or_moved() {
    try_database_commands(cluster("replica"));
}

/// The pages of the copy are those of the original to the last byte, their LSNs too.
#[test]
fn a_crash_repeats_no_id_of_a_database_that_was_copied_without_wal() {
    try_database_commands(cluster("minimal").setting("wal_skip_threshold", "0"));
}

fn try_database_commands(cluster: Builder) {
    let mut cluster = cluster.start();
    let mut admin = cluster.connect();
    run(&mut admin, "SET allow_in_place_tablespaces = on; CREATE TABLESPACE elsewhere LOCATION ''");
    let mut databases = Vec::new();
    for has_checkpoint in [true, false] {
        for (command, goes_on_in) in DATABASE_COMMANDS {
            let name = format!("d{}", databases.len());
            let mut client = cluster.fresh_database(&name);
            let sequences = WAYS.map(|way| Sequence::create(&mut client, &format!("{way:?}"), way));
            for sequence in &sequences {
                sequence.take(&mut client, 1);
            }
            drop(client);
            run(&mut admin, &command.replace("{d}", &name));
            databases.push((goes_on_in.replace("{d}", &name), sequences, format!("{command}; {}New", checkpoint(has_checkpoint))));
        }
        if has_checkpoint {
            run(&mut admin, "CHECKPOINT");
        }
    }
    for (database, sequences, _) in &databases {
        let mut client = cluster.connect_to(SUPERUSER, database);
        for sequence in sequences {
            sequence.take_many(&mut client);
        }
    }

    cluster.restart(Shutdown::Immediate);

    let mut repeats = Vec::new();
    for (database, sequences, case) in &databases {
        let mut client = cluster.connect_to(SUPERUSER, database);
        repeats.extend(sequences.iter().filter_map(|sequence| sequence.repeats(&mut client, case)));
    }
    assert_eq!(repeats, [""; 0]);
}

fn try_commands(cluster: Builder) {
    let mut cluster = cluster.start();
    let [mut one, mut other] = [cluster.connect(), cluster.connect()];
    let mut sequences = Vec::new();
    for has_checkpoint in [true, false] {
        for command in COMMANDS {
            for taker in [Taker::Itself, Taker::Other, Taker::New] {
                for way in WAYS {
                    let name = format!("s{}", sequences.len());
                    let sequence = Sequence::create(&mut one, &name, way);
                    let first = if let Taker::Other = taker { &mut other } else { &mut one };
                    sequence.take(first, 1);
                    let later = (counter_in_an_hour() + 1_000_000).to_string();
                    run(&mut one, &command.replace("{s}", &name).replace("{later}", &later));
                    sequences.push((sequence, taker, format!("{command}; {}{taker:?}", checkpoint(has_checkpoint))));
                }
            }
        }
        if has_checkpoint {
            run(&mut one, "CHECKPOINT");
        }
    }
    let mut new = cluster.connect();
    for (sequence, taker, _) in &sequences {
        let client = match taker {
            Taker::Itself => &mut one,
            Taker::Other => &mut other,
            Taker::New => &mut new,
        };
        sequence.take_many(client);
    }

    cluster.restart(Shutdown::Immediate);

    let mut client = cluster.connect();
    let repeats: Vec<String> = sequences.iter().filter_map(|(sequence, _, case)| sequence.repeats(&mut client, case)).collect();
    assert_eq!(repeats, [""; 0]);
}

fn checkpoint(has_checkpoint: bool) -> &'static str {
    if has_checkpoint { "CHECKPOINT; " } else { "" }
}

fn cluster(wal_level: &str) -> Builder {
    Cluster::builder().setting("pg_snowflake.max_lead", "2h").setting("wal_level", wal_level).setting("max_wal_senders", "0")
}

/// Statements sent together would be one transaction.
fn run(client: &mut Client, statements: &str) {
    for statement in statements.split("; ") {
        ask::run(client, statement);
    }
}

/// A sequence an hour ahead of the clock, and a table of what was taken from it. The IDs have no unique index, which
/// would refuse a repeat before the tests could see it.
struct Sequence {
    name: String,
    way: Way,
}

impl Sequence {
    fn create(client: &mut Client, name: &str, way: Way) -> Self {
        let cache = if let Way::Cached = way { 64 } else { 1 };
        let start = counter_in_an_hour();
        let create = format!(
            "CREATE TABLE {name}_ids (id bigint GENERATED BY DEFAULT AS IDENTITY \
             (SEQUENCE NAME {name} CACHE {cache} START {start} MAXVALUE 9000000000000000000))"
        );
        run(client, &create);
        Sequence { name: name.to_lowercase(), way }
    }

    /// Takes IDs after the command.
    fn take_many(&self, client: &mut Client) {
        self.take(client, if let Way::Few = self.way { 10 } else { 2000 });
    }

    fn take(&self, client: &mut Client, count: i32) {
        let Sequence { name, way } = self;
        let ids = match way {
            Way::Batch => format!("snowflake_nextvals('{name}', 5, {count})"),
            _ => format!("snowflake_nextval('{name}', 5) FROM generate_series(1, {count})"),
        };
        run(client, &format!("INSERT INTO {name}_ids SELECT {ids}"));
    }

    /// The next ID, if it is not above all committed ones.
    fn repeats(&self, client: &mut Client, case: &str) -> Option<String> {
        let name = &self.name;
        let last = take_one(client, &format!("SELECT max(id) FROM {name}_ids"));
        let next = take_one(client, &format!("SELECT snowflake_nextval('{name}', 5)"));
        (next <= last).then(|| format!("{next} after {last}: {case}, {:?}", self.way))
    }
}
