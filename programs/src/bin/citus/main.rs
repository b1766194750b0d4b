//! A Citus coordinator and three workers, all of which generate IDs: a million rows by each way of inserting, what the plans say,
//! what homed IDs save, a node that is added while clients write, and the mistakes that a user can make. `./dev citus` builds what it
//! needs and runs it.

mod inserts;
mod mistakes;
mod nodes;
mod plans;
mod timings;

use pg_snowflake_harness::citus::{Fleet, RECIPE, is_available};
use pg_snowflake_programs::output::{Claims, say, step};
use std::process::ExitCode;

const WORKERS: usize = 3;

fn main() -> ExitCode {
    if !is_available() {
        eprintln!("citus: this PostgreSQL has no Citus: ./dev citus installs it");
        return ExitCode::FAILURE;
    }
    let mut claims = Claims::default();
    step(&format!("starting a coordinator and {WORKERS} workers, and on the coordinator:"));
    say(RECIPE);
    let mut fleet = Fleet::with_tables(WORKERS, inserts::ROWS / (WORKERS + 1));
    plans::show(&fleet, &mut claims);
    inserts::show(&fleet, &mut claims);
    timings::compare(&fleet, &mut claims);
    nodes::show(&mut fleet, &mut claims);
    mistakes::show(&mut fleet, &mut claims);
    claims.verdict()
}
