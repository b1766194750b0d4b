//! Connections that generate one ID, as those of programs that connect for each request: the time of the whole, and of loading the
//! library, which each of them does unless the server preloads it.

use crate::contenders::{Contender, INSERT};
use crate::limits::is_judged;
use crate::run::{Run, connect, database_of, execute, server};
use crate::turns::interleaved;
use pg_snowflake_harness::Cluster;
use std::time::{Duration, Instant};

/// In each turn, since one takes a few milliseconds.
const CONNECTIONS: i64 = 200;

const WHOLE: &str = "ms_of_a_connection";
const LOAD: &str = "ms_of_load";

pub fn connections(run: &mut Run) {
    let (server, count) = (server().start(), run.scaled(CONNECTIONS));
    let mut contenders = run.contenders.clone();
    contenders.retain(|contender| is_judged(WHOLE, contender.name));
    for contender in &contenders {
        execute(&mut database_of(&server, contender), &contender.create_table());
    }
    interleaved(run.rounds, &mut contenders, |round, contender| {
        let mut add = |measure, time: Duration| run.samples.add(round, contender.name, measure, time.as_secs_f64() * 1e3 / count as f64);
        let began = Instant::now();
        (0..count).for_each(|_| execute(&mut connect(&server, contender), INSERT));
        add(WHOLE, began.elapsed());
        if !contender.library.is_empty() {
            add(LOAD, (0..count).map(|_| load(&server, contender)).sum());
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
