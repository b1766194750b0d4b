//! A router and four servers with a million rows: which server a statement goes to, also by homed IDs, what it costs, and a shard that
//! moves to a fifth server while clients write. `./dev cluster` builds what it needs and runs it; with `--leases` the servers
//! generate IDs by leases.

mod homed;
mod load;
mod plans;
mod relocation;
mod timings;

use pg_snowflake_harness::fleet::{Fleet, is_available};
use pg_snowflake_programs::output::{Claims, step};
use std::process::ExitCode;

const SERVERS: usize = 4;
const SHARDS: usize = 16;

fn main() -> ExitCode {
    if !is_available() {
        eprintln!(
            "cluster: this PostgreSQL has no postgres_fdw, which the router needs. It is among PostgreSQL's contrib \
             modules, which the distributions' packages of the server contain or have beside it: install one of those, \
             and run ./dev cluster MAJOR with its major version."
        );
        return ExitCode::FAILURE;
    }
    let mut claims = Claims::default();
    step(&format!("starting a router and {SERVERS} servers with {SHARDS} logical shards"));
    let mut fleet = if std::env::args().any(|argument| argument == "--leases") {
        Fleet::start_with_leases(SERVERS, SHARDS)
    } else {
        Fleet::start(SERVERS, SHARDS)
    };
    load::load(&fleet, &mut claims);
    plans::show(&fleet, &mut claims);
    homed::show(&fleet, &mut claims);
    timings::compare(&fleet, &mut claims);
    relocation::show(&mut fleet, &mut claims);
    claims.verdict()
}
