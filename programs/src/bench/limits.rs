//! The limits that a run must meet.

use crate::bench::contender::Contender;
use crate::bench::limit::Bound::{self, AtLeast, AtMost};
use crate::bench::limit::{Figure, Limit};
use crate::bench::plan::{CLIENTS, INSERT_ROUNDS};
use crate::bench::samples::Measure::{self, *};
use crate::bench::{floor, hashing, homed, large, leases, reading, registry, retention};
use pg_snowflake_harness::installation;
use std::sync::LazyLock;

/// The median of fewer rounds is not reliable.
const ROUNDS: usize = 9;

/// What is counted rather than timed, or needs minutes.
const ONE_COUNT: usize = 1;

/// All limits of a run on this installation.
pub static LIMITS: LazyLock<Vec<Limit>> =
    LazyLock::new(|| on(installation::major(installation::bindir())));

/// All limits of a run on that major.
pub fn on(major: u32) -> Vec<Limit> {
    [
        of_ids(major),
        by_the_floor(major),
        of_cache(),
        of_rows(),
        by_pgedge(),
        by_uuidv7(),
        of_layouts(),
        of_reading(),
        of_large_tables(),
        of_leases(),
        of_a_registry(),
        of_homed_ids(),
        of_hash_tables(),
        of_retention(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const OURS: &str = "ours_cache_1";
const OURS_64: &str = "ours_cache_64";
const BATCH: &str = "ours_batch";
const CORE: &str = "core_cache_1";
const CORE_64: &str = "core_cache_64";
const PGEDGE: &str = "pgedge";
const MANAGED: &str = "managed";
const MANAGED_BATCH: &str = "managed_batch";

/// The bound of what is the same size but for a page or two.
const SAME_SIZE: f64 = 1.01;

/// The cost of an ID.
fn of_ids(major: u32) -> Vec<Limit> {
    vec![
        ratio(
            "one session: `snowflake_nextval` relative to core's `nextval`, both `CACHE 1`",
            (IdNs, OURS),
            (IdNs, CORE),
            AtMost(0.6),
        ),
        ratio(
            "one session: `snowflake_nextval` relative to core's `nextval`, both `CACHE 64`",
            (IdNs, OURS_64),
            (IdNs, CORE_64),
            AtMost(0.45),
        ),
        ratio(
            "one session: `snowflake_nextvals` relative to core's `nextval`, `CACHE 64`, with their loops",
            (StatementNs, BATCH),
            (StatementNs, CORE_64),
            AtMost(0.65),
        ),
        ratio(
            "one session: `snowflake_nextval`, `CACHE 1`, relative to the PL/pgSQL original",
            (IdNs, OURS),
            (IdNs, "copied_plpgsql"),
            AtMost(0.07),
        ),
        ratio(
            "one session: the SQL edition relative to the PL/pgSQL original",
            (IdNs, MANAGED),
            (IdNs, "copied_plpgsql"),
            AtMost(managed_bound(major)),
        ),
        ratio(
            "8 clients, 100 IDs a transaction: batches of the SQL edition per second relative to the PL/pgSQL original",
            (TakingTps(8), MANAGED_BATCH),
            (TakingTps(8), "copied_plpgsql"),
            AtLeast(0.5),
        ),
        ratio(
            "the first ID of a transaction: `snowflake_nextval` relative to core's `nextval`, both `CACHE 1`",
            (FirstIdNs, OURS),
            (FirstIdNs, CORE),
            AtMost(0.8),
        ),
        ratio(
            "the first ID of a transaction: `snowflake_nextval` relative to core's `nextval`, both `CACHE 64`",
            (FirstIdNs, OURS_64),
            (FirstIdNs, CORE_64),
            AtMost(1.0),
        ),
        ratio(
            "an ID of 100,000 sequences in turn, each used before, relative to one of a single sequence",
            (InTurnNs(100_000), OURS),
            (InTurnNs(1), OURS),
            AtMost(2.0),
        ),
        ratio(
            "WAL records at full rate, `CACHE 1`, layout with 18 bits of `seq`, relative to core's",
            (WalRecords, OURS),
            (WalRecords, CORE),
            AtMost(0.01),
        ),
    ]
}

/// PostgreSQL 19 runs the original three times as fast as 18, and what the lock of the SQL edition needs hardly faster: a subtransaction,
/// the lock and `setval` alone take more than twice the time of the original there. `docs/benchmarks.md` has the steps.
fn managed_bound(major: u32) -> f64 {
    if major < 19 { 1.5 } else { 3.6 }
}

/// The least that an ID can cost.
fn by_the_floor(major: u32) -> Vec<Limit> {
    let limit = |(name, title, floor, measure, bound)| {
        let title = format!("one session: {title}, relative to {}", floor::title(floor));
        ratio(&title, (measure, name), (measure, floor), AtMost(bound))
    };
    let bounds = floor::instruction_bounds(major);
    let counted = |((name, title, floor, ..), bound): (floor::Compared, f64)| {
        let title = format!("instructions of an ID: {title}, relative to {}", floor::title(floor));
        let ratio = ratio(&title, (Instructions, name), (Instructions, floor), AtMost(bound));
        Limit { rounds: ONE_COUNT, ..ratio }
    };
    let counted = floor::COMPARED.into_iter().zip(bounds.into_iter().flatten()).map(counted);
    floor::COMPARED.into_iter().map(limit).chain(counted).collect()
}

/// What a user gains by `CACHE` where several sessions share a sequence.
fn of_cache() -> Vec<Limit> {
    let taking = |peer: &str, under, bound| {
        let title = format!(
            "8 clients, 100 IDs a transaction, `CACHE 64`: transactions per second relative to {peer}"
        );
        ratio(&title, (TakingTps(8), OURS_64), (TakingTps(8), under), AtLeast(bound))
    };
    vec![
        taking("core's `CACHE 1`", CORE, 3.0),
        taking("core's `CACHE 64`", CORE_64, 2.0),
        taking("pgEdge's, which ignores `CACHE`", PGEDGE, 1.5),
    ]
}

/// The cost of a row, by `bigserial`'s.
fn of_rows() -> Vec<Limit> {
    let mut limits = vec![
        ratio(
            "bulk `INSERT`: time relative to `bigserial`",
            (BulkSeconds, OURS),
            (BulkSeconds, CORE),
            AtMost(0.97),
        ),
        ratio(
            "primary key after a bulk `INSERT`: size relative to `bigserial`",
            (KeyBytes, OURS),
            (KeyBytes, CORE),
            AtMost(SAME_SIZE),
        ),
    ];
    limits.extend(at_least(INSERTS, INSERT_ROUNDS * ROUNDS, "`bigserial`'s", CORE, SAME_RATE));
    // The differences of times are lost in those of the disk. These are not.
    limits.push(insert_instructions("`bigserial`'s", CORE, 1.01));
    limits
}

/// pgEdge's extension. [`of_large_tables`] has the others.
fn by_pgedge() -> Vec<Limit> {
    let at_most = |title: &str, measure, bound| {
        let title = format!("{title}: `snowflake_nextval`, `CACHE 1`, relative to pgEdge's");
        ratio(&title, (measure, OURS), (measure, PGEDGE), AtMost(bound))
    };
    let mut limits = vec![
        at_most("one session", IdNs, 1.0),
        at_most("the first ID of a transaction", FirstIdNs, 1.0),
        at_most("100,000 sequences in turn", InTurnNs(100_000), 1.0),
        at_most("bulk `INSERT`: time", BulkSeconds, 1.0),
        at_most("primary key after a bulk `INSERT`: size", KeyBytes, SAME_SIZE),
    ];
    limits.extend(at_least(
        [("100 IDs a transaction", TakingTps)],
        ROUNDS,
        "pgEdge's",
        PGEDGE,
        1.0,
    ));
    limits.extend(at_least(INSERTS, INSERT_ROUNDS * ROUNDS, "pgEdge's", PGEDGE, SAME_RATE));
    limits.push(insert_instructions("pgEdge's", PGEDGE, 1.0));
    limits
}

fn by_uuidv7() -> Vec<Limit> {
    let by_uuidv7 =
        |title, measure| ratio(title, (measure, OURS), (measure, "uuid_v7"), AtMost(1.0));
    vec![
        by_uuidv7("bulk `INSERT`: time relative to `uuidv7()`", BulkSeconds),
        ratio(
            "bulk `INSERT` of ready-made IDs: time relative to ready-made `uuidv7()`",
            (BulkSeconds, "ready_ids"),
            (BulkSeconds, "ready_uuids"),
            AtMost(1.0),
        ),
        by_uuidv7("one session: `snowflake_nextval`, `CACHE 1`, relative to `uuidv7()`", IdNs),
        by_uuidv7("primary key after a bulk `INSERT`: size relative to `uuidv7()`", KeyBytes),
    ]
}

/// Rates that layouts allow, and repeats, of which there are none.
fn of_layouts() -> Vec<Limit> {
    let alone = |title: &str, measure, name, bound, rounds| Limit {
        title: title.to_owned(),
        over: (measure, name),
        under: None,
        bound,
        rounds,
    };
    let repeats = |what: &str, name| {
        let title = format!("repeats among the IDs of one statement: {what}");
        alone(&title, Repeats, name, AtMost(0.0), ONE_COUNT)
    };
    vec![
        alone(
            "IDs per second relative to the limit of `postgres`, 1,024,000: one session, `CACHE 1`",
            ShareOfPostgres,
            OURS,
            AtLeast(0.99),
            ROUNDS,
        ),
        alone(
            "IDs per second relative to the limit of `twitter`, 4,096,000: one session, `CACHE 1`",
            ShareOfTwitter,
            OURS,
            AtLeast(0.95),
            ROUNDS,
        ),
        repeats("`snowflake_nextval`, `CACHE 1`", OURS),
        repeats("`snowflake_nextval`, `CACHE 64`", OURS_64),
        repeats("`snowflake_nextvals`", BATCH),
        repeats("the SQL edition", MANAGED),
        repeats("the SQL edition's `snowflake_nextvals`", MANAGED_BATCH),
        Limit {
            rounds: ONE_COUNT,
            ..ratio(
                "instructions of an ID in layout `postgres` relative to `instagram`",
                (InstructionsOfPostgres, OURS),
                (InstructionsOfInstagram, OURS),
                // The XOR takes eleven, of about a thousand.
                AtMost(1.015),
            )
        },
    ]
}

/// Reading the fields of stored IDs, by their arithmetic in SQL; and finding rows by time, by a column with an index.
fn of_reading() -> Vec<Limit> {
    let functions = [
        ("snowflake_shard_id", reading::SHARD, reading::SHARD_SQL),
        ("snowflake_created_at", reading::TIME, reading::TIME_SQL),
        ("snowflake_decode", reading::DECODE, reading::DECODE_SQL),
        ("snowflake_between", reading::IS_BETWEEN, reading::IS_BETWEEN_SQL),
    ];
    // With the scan: what is left of a small time without it may be below 0.
    let scans = [("", ScanNs), (", two parallel workers", ParallelScanNs)];
    let limit = |(function, name, in_sql), (how, measure)| {
        let title =
            format!("a scan with `{function}` relative to one with its arithmetic in SQL{how}");
        // The last is inlined, so both are the same plan.
        let bound = if name == reading::IS_BETWEEN { SAME_TIME } else { 1.0 };
        ratio(&title, (measure, name), (measure, in_sql), AtMost(bound))
    };
    let mut limits: Vec<Limit> = functions
        .into_iter()
        .flat_map(|function| scans.map(|scan| limit(function, scan)))
        .collect();
    limits.push(ratio(
        "rows of a span of time by `snowflake_between` and the primary key: per second relative to a column with an index",
        (SpanRowsPerSecond, reading::BETWEEN),
        (SpanRowsPerSecond, reading::COLUMN_BETWEEN),
        AtLeast(0.9),
    ));
    limits
}

/// A key that is larger than memory, relative to other kinds of keys.
fn of_large_tables() -> Vec<Limit> {
    let by = |title, name, rows_per_second, wal_bytes, key_bytes| {
        let limit = |what, measure, bound| {
            let title = format!("a key larger than `shared_buffers`: {what} relative to {title}");
            let rounds = large::ROUNDS;
            Limit { rounds, ..ratio(&title, (measure, OURS), (measure, name), bound) }
        };
        [
            limit("rows inserted per second", LargeRowsPerSecond, AtLeast(rows_per_second)),
            limit("WAL bytes", LargeWalBytes, AtMost(wal_bytes)),
            limit("size", LargeKeyBytes, AtMost(key_bytes)),
        ]
    };
    let others = [
        by("pgEdge's", PGEDGE, SAME_RATE, SAME_SIZE, SAME_SIZE),
        by("`uuidv7()`", "uuid_v7", 1.0, 0.92, 0.75),
        by("`gen_random_uuid()`", "uuid_v4", 1.5, 0.5, 0.65),
    ];
    others.into_iter().flatten().collect()
}

/// Hash tables of layout `postgres`, relative to those of sequential numbers.
fn of_hash_tables() -> Vec<Limit> {
    let cases = [
        ("1 per ms", "postgres_1"),
        ("10 per ms", "postgres_10"),
        ("100 per ms", "postgres_100"),
        ("1,000 per ms", "postgres_1000"),
        ("100 per ms of 16 shards", "postgres_100_16shards"),
        ("100 per ms of 100 shards", "postgres_100_100shards"),
    ];
    let tables = [("HashAggregate", AggregateSeconds), ("hash join", JoinSeconds)];
    let limit = |(what, measure), (ids, case)| {
        let title = format!("{what} of `postgres` relative to `bigserial`, {ids}");
        let ratio = ratio(&title, (measure, case), (measure, "bigserial"), AtMost(1.1));
        Limit { rounds: hashing::ROUNDS, ..ratio }
    };
    tables.into_iter().flat_map(|table| cases.map(|case| limit(table, case))).collect()
}

/// Loads of several clients, for people and as measures.
type Load = (&'static str, fn(u32) -> Measure);

const INSERTS: [Load; 2] = [
    ("one-row `INSERT`", InsertingTps),
    ("one-row `INSERT`, `synchronous_commit` off", InsertingAsyncTps),
];

/// The bounds of what takes the same time but for noise: a bound of 1 would be missed by chance.
const SAME_RATE: f64 = 0.97;
const SAME_TIME: f64 = 1.05;

/// With every number of clients at least that many transactions per second relative to the peer, `CACHE 1`.
fn at_least<const LOADS: usize>(
    loads: [Load; LOADS],
    rounds: usize,
    whose: &str,
    peer: &'static str,
    bound: f64,
) -> impl Iterator<Item = Limit> {
    let limit = move |(what, measure): Load, clients| {
        let plural = if clients == 1 { "" } else { "s" };
        let title = format!(
            "{clients} client{plural}, {what}: transactions per second relative to {whose}"
        );
        let ratio =
            ratio(&title, (measure(clients), OURS), (measure(clients), peer), AtLeast(bound));
        Limit { rounds, ..ratio }
    };
    loads.into_iter().flat_map(move |load| CLIENTS.map(|clients| limit(load, clients)))
}

fn insert_instructions(peer: &str, under: &'static str, bound: f64) -> Limit {
    let title = format!("one-row `INSERT`: instructions relative to {peer}");
    let ratio =
        ratio(&title, (InsertInstructions, OURS), (InsertInstructions, under), AtMost(bound));
    Limit { rounds: ONE_COUNT, ..ratio }
}

/// What leases cost the server that has them.
fn of_leases() -> Vec<Limit> {
    let relative = |what: &str, measure, bound| {
        let title = format!("{what} with leases, relative to the same build without a registry");
        ratio(&title, (measure, leases::WITH), (measure, leases::WITHOUT), AtMost(bound))
    };
    let counted =
        |what: &str, measure| Limit { rounds: ONE_COUNT, ..relative(what, measure, 1.02) };
    let timed = |what: &str, measure| relative(what, measure, SAME_TIME);
    vec![
        timed("one session: `snowflake_nextval`, `CACHE 1`,", IdNs),
        timed("the first ID of a transaction: `snowflake_nextval`, `CACHE 1`,", FirstIdNs),
        counted("instructions of `snowflake_nextval`, `CACHE 1`,", Instructions),
        counted("instructions of the first ID of a transaction, `CACHE 1`,", FirstIdInstructions),
    ]
}

/// What the search for a homed ID costs.
fn of_homed_ids() -> Vec<Limit> {
    let relative = |modulus: &str, name, bound| {
        let title = format!(
            "one session: `snowflake_nextval_homed`, modulus {modulus}, relative to `snowflake_nextval`"
        );
        ratio(&title, (IdNs, name), (IdNs, homed::PLAIN), bound)
    };
    let rate = |modulus: &str, name| {
        let title = format!(
            "IDs per second relative to the limit of `postgres`: `snowflake_nextval_homed`, modulus {modulus}"
        );
        Limit {
            title,
            over: (ShareOfPostgres, name),
            under: None,
            bound: AtLeast(0.99),
            rounds: ROUNDS,
        }
    };
    vec![
        relative("2", homed::MODULUS_2, AtMost(1.4)),
        relative("16", homed::MODULUS_16, AtMost(2.2)),
        rate("2", homed::MODULUS_2),
        rate("4", homed::MODULUS_4),
        rate("16", homed::MODULUS_16),
    ]
}

/// What it costs to drop a month instead of deleting its rows.
fn of_retention() -> Vec<Limit> {
    let relative = |what: &str, measure, bound| {
        let title = format!(
            "{what} of the removal of a month: `snowflake_drop_partitions` relative to `DELETE` and `VACUUM`"
        );
        ratio(&title, (measure, retention::DROP), (measure, retention::DELETE), AtMost(bound))
    };
    vec![relative("seconds", RetentionSeconds, 0.3), relative("WAL bytes", RetentionWalBytes, 0.01)]
}

/// A registry of 8,192 shards with leases of 10 s, in few nodes and in many.
fn of_a_registry() -> Vec<Limit> {
    let limits = |case: &str, name| {
        let limit = |what: &str, measure, bound| Limit {
            title: format!("a registry with {case}: {what}"),
            over: (measure, name),
            under: None,
            bound,
            rounds: ONE_COUNT,
        };
        [
            limit("spans that ended before they were renewed", RegistrySpansEnded, AtMost(0.0)),
            limit("claims answered within a third of the lease", RegistryShareInTime, AtLeast(1.0)),
        ]
    };
    let few = limits("8 nodes of 1,024 shards", registry::FEW_LARGE);
    let many = limits("1,024 nodes of 8 shards", registry::MANY_SMALL);
    few.into_iter().chain(many).collect()
}

/// The limit of the ratio of two figures of one run.
fn ratio(title: &str, over: Figure, under: Figure, bound: Bound) -> Limit {
    Limit { title: title.to_owned(), over, under: Some(under), bound, rounds: ROUNDS }
}

/// Whether a limit uses this figure of this contender, by itself or in a ratio.
fn is_judged(measure: Measure, contender: &str) -> bool {
    LIMITS.iter().any(|limit| limit.figures().any(|figure| figure == (measure, contender)))
}

/// Whether a turn that takes seconds is due: in each of the rounds if a limit uses its figure, else in three of them.
pub fn is_due(round: usize, rounds: usize, measure: Measure, contender: &Contender) -> bool {
    round.is_multiple_of((rounds / 3).max(1)) || is_judged(measure, contender.name)
}

#[cfg(test)]
mod tests {
    use super::{LIMITS, is_judged};
    use crate::bench::samples::{Measure, Samples};
    use std::collections::HashSet;

    #[test]
    fn both_figures_of_a_ratio_are_judged() {
        for name in ["ours_cache_64", "core_cache_1"] {
            assert!(is_judged(Measure::TakingTps(8), name), "{name}");
        }
        assert!(!is_judged(Measure::TakingTps(8), "copied_sql"));
        assert!(!is_judged(Measure::TakingTps(2), "ours_cache_64"));
    }

    #[test]
    fn each_limit_has_a_title_of_its_own() {
        let titles: HashSet<&str> = LIMITS.iter().map(|limit| limit.title.as_str()).collect();
        assert_eq!(titles.len(), LIMITS.len());
    }

    #[test]
    fn one_repeat_of_ours_is_a_miss() {
        for name in ["ours_cache_1", "ours_cache_64", "ours_batch", "managed", "managed_batch"] {
            let misses = |repeats| {
                let mut samples = Samples::default();
                samples.add(0, name, Measure::Repeats, repeats);
                LIMITS.iter().filter(|limit| limit.verdict(&samples, false).is_miss()).count()
            };
            assert_eq!((misses(0.0), misses(1.0)), (0, 1), "{name}");
        }
    }
}
