//! The contenders: ways to generate IDs, and the statements that they are measured in.

use Ids::{Column, Many, One, Ready};
use pg_snowflake_harness::copied;

/// A way to generate IDs. Each has its own database, named after it.
#[derive(Debug)]
pub struct Contender {
    pub name: &'static str,
    /// For people, in Markdown.
    pub title: &'static str,
    /// The library that the first call in a session loads.
    pub library: &'static str,
    /// The statements that create the sequence `ids`, and what else is needed.
    pub setup: &'static [&'static str],
    pub ids: Ids,
    /// What not every server has: a query that returns a row if the server has it, with the version, or NULL if that is the server's;
    /// and the sentence for a report if the server lacks it.
    pub needs: Option<(&'static str, &'static str)>,
}

/// How a contender returns IDs.
#[derive(Clone, Copy, Debug)]
pub enum Ids {
    /// One for each evaluation of this expression.
    One(&'static str),
    /// `{count}` rows for each evaluation of this expression.
    Many(&'static str),
    /// To a column that is declared so, in an INSERT. No expression returns them.
    Column(&'static str),
    /// In the table `source`, where this expression has generated them.
    Ready(&'static str),
}

/// In a layout of 262,144 IDs in a millisecond, in which no call waits for the clock.
macro_rules! ours {
    ($function:literal) => {
        concat!($function, ", 'time:41 shard:4 seq:18 epoch:2024-01-01 unit:1ms')")
    };
}

/// Creates a function of the library [`FLOOR`].
macro_rules! floor {
    ($function:literal) => {
        concat!("CREATE FUNCTION ", $function, "(regclass, integer, bigint) RETURNS bigint LANGUAGE c STRICT AS '{floor}'")
    };
}

/// The placeholder for the path of the library that is compiled from `floor.c`.
pub const FLOOR: &str = "{floor}";

const OURS_ID: &str = ours!("snowflake_nextval('ids', 5");
const CREATE: &str = "CREATE SEQUENCE ids";
const CREATE_64: &str = "CREATE SEQUENCE ids CACHE 64";
const EXTENSION: &str = "CREATE EXTENSION pg_snowflake";
const MANAGED: &str = include_str!("../../../sql/managed/pg_snowflake_managed.sql");
/// A batch reaches the rate of the layout. No call waits for the clock.
const NO_WAIT: &str = "CREATE OR REPLACE FUNCTION snowflake_managed.max_lead_us() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE
    AS 'SELECT 86400000000'";

const UUID_V7: (&str, &str) = (
    "SELECT NULL::text FROM pg_proc WHERE oid = to_regprocedure('uuidv7()')",
    "`uuidv7()` is not included, because PostgreSQL has had this function only since version 18.",
);

pub const OURS: Contender = of("ours_cache_1", "`snowflake_nextval`, `CACHE 1`", "pg_snowflake", &[EXTENSION, CREATE], One(OURS_ID));

/// In the order in which they are measured and shown. The two of each ratio that has a close limit are neighbours.
#[rustfmt::skip]
pub const ALL: [Contender; 15] = [
    // An INSERT computes its ID as a `NextValueExpr`, which looks up no function and checks no privilege on the sequence.
    of("core_identity", "core identity column", "", &[], Column("GENERATED ALWAYS AS IDENTITY")),
    of("core_cache_1", "core `nextval`, `CACHE 1`", "", &[CREATE], One("nextval('ids')")),
    OURS,
    Contender {
        needs: Some((
            "SELECT default_version FROM pg_available_extensions WHERE name = 'snowflake'",
            "pgEdge's `snowflake.nextval` is not included, because its extension is not installed.",
        )),
        ..of("pgedge", "pgEdge's `snowflake.nextval`", "snowflake", &["CREATE EXTENSION snowflake", CREATE],
            One("snowflake.nextval('ids')"))
    },
    // In its only layout, whose rate it does not reach: no call waits for the clock.
    of("managed", "the SQL edition", "plpgsql", &[MANAGED, CREATE], One("snowflake_managed.snowflake_nextval('ids', 5)")),
    of("copied_plpgsql", "the PL/pgSQL original", "plpgsql", &[copied::PLPGSQL, CREATE], One("copied_nextval('ids', 5)")),
    of(COPIED_SQL, "its formula in plain SQL", "", &[copied::SQL, CREATE], One("copied_nextval('ids', 5)")),
    of("ours_cache_64", "`snowflake_nextval`, `CACHE 64`", "pg_snowflake", &[EXTENSION, CREATE_64], One(OURS_ID)),
    of("core_cache_64", "core `nextval`, `CACHE 64`", "", &[CREATE_64], One("nextval('ids')")),
    of("ours_batch", "`snowflake_nextvals`", "pg_snowflake", &[EXTENSION, CREATE],
        Many(ours!("snowflake_nextvals('ids', 5, {count}"))),
    of("managed_batch", "the SQL edition's `snowflake_nextvals`", "plpgsql", &[MANAGED, CREATE, NO_WAIT],
        Many("snowflake_managed.snowflake_nextvals('ids', 5, {count})")),
    of("uuid_v4", "`gen_random_uuid()`", "", &[], One("gen_random_uuid()")),
    Contender { needs: Some(UUID_V7), ..of("uuid_v7", "`uuidv7()`", "", &[], One("uuidv7()")) },
    of("ready_ids", "`snowflake_nextval`, ready-made", "pg_snowflake", &[EXTENSION, CREATE], Ready(OURS_ID)),
    Contender { needs: Some(UUID_V7), ..of("ready_uuids", "`uuidv7()`, ready-made", "", &[], Ready("uuidv7()")) },
];

/// The cost that every statement of IDs includes, and C functions that do a part of the work for each of them.
#[rustfmt::skip]
pub const FLOORS: [Contender; 4] = [
    of(LOOP, "the empty loop", "", &[], One("1")),
    of("floor_function", "a C function that returns a constant", "", &[CREATE, floor!("floor_function")],
        One("floor_function('ids', 5, 0)")),
    of("floor_clock", "a C function that reads the clock", "", &[CREATE, floor!("floor_clock")], One("floor_clock('ids', 5, 0)")),
    of("floor_lock", "a C function that reads the clock, and pins and locks a page", "", &[CREATE, floor!("floor_lock")],
        One("floor_lock('ids', 5, 0)")),
];

/// Layouts of 1,024 IDs in a millisecond, which may run ahead of the clock here.
#[rustfmt::skip]
pub const OF_LAYOUTS: [Contender; 2] = [
    of("ours_postgres", "`snowflake_nextval`, layout `postgres`", "pg_snowflake",
        &[EXTENSION, CREATE, "ALTER DATABASE ours_postgres SET pg_snowflake.max_lead = '24h'"],
        One("snowflake_nextval('ids', 5, 'postgres')")),
    of("ours_instagram", "`snowflake_nextval`, layout `instagram`", "pg_snowflake",
        &[EXTENSION, CREATE, "ALTER DATABASE ours_instagram SET pg_snowflake.max_lead = '24h'"],
        One("snowflake_nextval('ids', 5, 'instagram')")),
];

/// The name of the loop around all calls.
pub const LOOP: &str = "empty_loop";

/// If a key rejects its IDs, that is the result; for every other contender it is an error.
pub const COPIED_SQL: &str = "copied_sql";

/// One row, whose ID the table supplies.
pub const INSERT: &str = "INSERT INTO posts (body) VALUES ('a post')";

const fn of(name: &'static str, title: &'static str, library: &'static str, setup: &'static [&'static str], ids: Ids) -> Contender {
    Contender { name, title, library, setup, ids, needs: None }
}

/// A statement that evaluates an expression this many times.
pub fn in_loop(expression: &str, count: i64) -> String {
    // In a sub-select the series streams; in FROM it would fill a tuplestore before the first ID.
    format!("SELECT count({expression}) FROM (SELECT generate_series(1, {count})) AS series")
}

/// A statement that evaluates an expression in this many transactions, once in each.
pub fn in_transactions(count: i64, expression: &str) -> String {
    format!("DO $$ BEGIN FOR turn IN 1..{count} LOOP PERFORM {expression}; COMMIT; END LOOP; END $$")
}

impl Contender {
    pub fn one(&self) -> Option<&'static str> {
        if let One(id) = self.ids { Some(id) } else { None }
    }

    /// A statement that takes this many IDs and returns their number.
    pub fn take(&self, count: i64) -> Option<String> {
        match self.ids {
            One(id) => Some(in_loop(id, count)),
            _ => Some(format!("SELECT count(id) FROM ({}) AS ids", self.series(count)?)),
        }
    }

    /// A query that returns this many IDs.
    pub fn series(&self, count: i64) -> Option<String> {
        match self.ids {
            One(id) => Some(format!("SELECT {id} AS id FROM (SELECT generate_series(1, {count})) AS series")),
            Many(ids) => Some(format!("SELECT {} AS id", ids.replace("{count}", &count.to_string()))),
            Column(_) | Ready(_) => None,
        }
    }

    /// Whether [`INSERT`] gets its ID from it.
    pub fn fills_single_rows(&self) -> bool {
        matches!(self.ids, One(_) | Column(_))
    }

    /// The table `posts`, whose key gets its IDs from the contender if it supplies single ones.
    pub fn create_table(&self) -> String {
        let (ids, declared) = match self.ids {
            One(id) => (id, format!("DEFAULT {id}")),
            Column(declared) => ("", declared.to_owned()),
            Many(ids) | Ready(ids) => (ids, String::new()),
        };
        let id_type = if ids.contains("uuid") { "uuid" } else { "bigint" };
        format!("CREATE TABLE posts (id {id_type} PRIMARY KEY {declared}, body text NOT NULL)")
    }

    /// A table `source` with this many rows, from which [`insert`](Self::insert) reads.
    pub fn create_source(&self, rows: i64) -> String {
        let id = if let Ready(id) = self.ids { id } else { "n::bigint" };
        format!("CREATE TABLE source AS SELECT {id} AS id FROM generate_series(1, {rows}) AS n")
    }

    /// A statement that inserts the rows of a source into `posts`. A batch makes as many rows itself.
    pub fn insert(&self, source: &str, rows: i64) -> String {
        match self.ids {
            One(_) | Column(_) => format!("INSERT INTO posts (body) SELECT 'a post' FROM {source}"),
            Many(_) | Ready(_) => {
                let series = self.series(rows).map(|series| format!("({series}) AS ids"));
                let source = series.unwrap_or_else(|| source.to_owned());
                format!("INSERT INTO posts (id, body) SELECT id, 'a post' FROM {source}")
            }
        }
    }
}
