//! What a plain C function costs that does a part of the work of `snowflake_nextval` for each ID.

use crate::bench::contender::in_loop;
use crate::bench::samples::Measure;
use pg_snowflake_harness::{Cluster, SUPERUSER, installation, top};
use postgres::Client;
use std::process::Command;

/// Returns a constant.
pub const FUNCTION: &str = "floor_function";
/// Reads the clock, too.
pub const CLOCK: &str = "floor_clock";
/// Locks the page, too.
pub const LOCK: &str = "floor_lock";

/// The functions, and their titles.
pub const FLOORS: [(&str, &str); 3] = [
    (FUNCTION, "a C function that returns a constant"),
    (CLOCK, "a C function that reads the clock"),
    (LOCK, "a C function that reads the clock, and pins and locks a page"),
];

/// The title of one of them.
pub fn title(function: &'static str) -> &'static str {
    FLOORS.into_iter().find(|&(name, _)| name == function).map_or(function, |(_, title)| title)
}

/// A way to generate IDs: the contender and its title, the function that does the least for such an ID, the measure that compares
/// them, and the limit of their ratio.
pub type Compared = (&'static str, &'static str, &'static str, Measure, f64);

/// What is left for checks and arithmetic. An ID from the cache, or of a batch, needs no page. A batch returns its rows itself, so the
/// whole statements are compared. The bounds leave room for noise above what a quiet machine shows.
pub const COMPARED: [Compared; 3] = [
    ("ours_cache_1", "`snowflake_nextval`, `CACHE 1`", LOCK, Measure::IdNs, 1.75),
    ("ours_cache_64", "`snowflake_nextval`, `CACHE 64`", CLOCK, Measure::IdNs, 1.5),
    ("ours_batch", "`snowflake_nextvals`", CLOCK, Measure::StatementNs, 1.2),
];

/// The bounds of their instructions on a major, as multiples of those of the function: 1 % above what was counted when they were
/// set. They find what no time shows on a shared machine. A major without a record has none.
pub const fn instruction_bounds(major: u32) -> Option<[f64; COMPARED.len()]> {
    match major {
        15 => Some([2.067, 7.835, 4.124]),
        18 => Some([2.178, 7.994, 4.381]),
        19 => Some([2.406, 6.064, 3.416]),
        _ => None,
    }
}

/// Compiles the functions as packages of extensions are, and creates them and a sequence in the superuser's database of a server.
pub(super) fn create(server: &Cluster) -> Client {
    let library = server.dir().join("floor.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-fPIC", "-shared", "-fno-strict-aliasing", "-fwrapv", "-I"]);
    compiler.arg(installation::pg_config("--includedir-server"));
    compiler.arg(top().join("programs/floor/floor.c")).arg("-o").arg(&library);
    installation::run(&mut compiler, b"");
    let mut client = server.connect_to(SUPERUSER, SUPERUSER);
    let functions = FLOORS.map(|(name, _)| {
        format!(
            "CREATE FUNCTION {name}(regclass, integer, bigint) RETURNS bigint LANGUAGE c STRICT AS '{}'",
            library.display()
        )
    });
    client.batch_execute(&functions.join(";")).expect("the library has the functions");
    client.batch_execute("CREATE SEQUENCE ids").expect("a sequence can be created");
    client
}

/// A statement that calls the function this many times.
pub(super) fn take(function: &str, count: i64) -> String {
    in_loop(&format!("{function}('ids', 5, 0)"), count)
}
