//! Connections that generate one ID, as those of programs that connect for each request: the time of the whole, and of loading the
//! library, which each of them does unless the server preloads it, and the size of its file.

use crate::contenders::{Contender, INSERT, OURS};
use crate::limits::is_judged;
use crate::run::{Run, connect, database_of, execute, server};
use crate::turns::interleaved;
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::installation::pg_config;
use std::time::{Duration, Instant};

/// In each turn, since one takes a few milliseconds.
const CONNECTIONS: i64 = 200;

const WHOLE: &str = "ms_of_a_connection";
const LOAD: &str = "ms_of_load";

/// [`OURS`], on a server that preloads its library.
pub const PRELOADED: (&str, &str) = ("ours_preloaded", "`snowflake_nextval`, preloaded");

pub fn connections(run: &mut Run) {
    let library = pg_config("--pkglibdir").join(OURS.library).with_extension("so").metadata().expect("it is installed");
    run.samples.add(0, OURS.name, "mb_of_the_library", library.len() as f64 / 1e6);
    let count = run.scaled(CONNECTIONS);
    let (plain, preloading) = (server().start(), server().setting("shared_preload_libraries", OURS.library).start());
    let judged = run.contenders.iter().filter(|contender| is_judged(WHOLE, contender.name));
    let of_plain = judged.map(|&contender| (contender.name, &plain, contender));
    let mut contenders: Vec<(&str, &Cluster, &Contender)> = of_plain.chain([(PRELOADED.0, &preloading, &OURS)]).collect();
    for (_, server, contender) in &contenders {
        execute(&mut database_of(server, contender), &contender.create_table());
    }
    interleaved(run.rounds, &mut contenders, |round, (name, server, contender)| {
        let mut add = |measure, time: Duration| run.samples.add(round, name, measure, time.as_secs_f64() * 1e3 / count as f64);
        let began = Instant::now();
        (0..count).for_each(|_| execute(&mut connect(server, contender), INSERT));
        add(WHOLE, began.elapsed());
        if !contender.library.is_empty() {
            add(LOAD, (0..count).map(|_| load(server, contender)).sum());
        }
    });
}

/// The time that a new session takes to load the library.
fn load(server: &Cluster, contender: &Contender) -> Duration {
    let mut client = connect(server, contender);
    execute(&mut client, "SELECT 1");
    let began = Instant::now();
    execute(&mut client, &format!("LOAD '{}'", contender.library));
    began.elapsed()
}
