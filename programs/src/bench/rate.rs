//! IDs that one backend takes without a pause, relative to the layout's limit.

use crate::bench::contender::Contender;
use crate::bench::plan::{Findings, Plan};
use crate::bench::samples::Measure;
use crate::bench::server;
use crate::bench::turns::interleaved;
use postgres::Client;
use std::time::{Duration, Instant};

/// Ours only: the others have no such limit.
const NAMES: [&str; 3] = ["ours_cache_1", "ours_cache_64", "ours_batch"];

/// How long IDs are taken without a pause, at the layout's limit.
pub(super) const TIME: Duration = Duration::from_secs(1);

/// A layout and the IDs that it allows per second.
pub(super) struct Limited {
    layout: &'static str,
    ids_per_second: f64,
    measure: Measure,
}

pub(super) const POSTGRES: Limited =
    Limited { layout: "postgres", ids_per_second: 1_024_000.0, measure: Measure::ShareOfPostgres };

const LAYOUTS: [Limited; 2] = [
    POSTGRES,
    Limited { layout: "twitter", ids_per_second: 4_096_000.0, measure: Measure::ShareOfTwitter },
];

/// A session that takes IDs of a layout.
struct Session {
    contender: &'static Contender,
    limited: &'static Limited,
    client: Client,
}

pub(super) fn run(plan: &Plan, contenders: &[&'static Contender], findings: &mut Findings) {
    let server = server::builder().start();
    let mut sessions = Vec::new();
    for &contender in contenders.iter().filter(|contender| NAMES.contains(&contender.name)) {
        drop(server::database_of(&server, contender));
        for limited in &LAYOUTS {
            let client = server::connect(&server, contender);
            sessions.push(Session { contender, limited, client });
        }
    }
    interleaved(plan.rounds, &mut sessions, |round, session| {
        let Session { contender, limited, client } = session;
        let take = |count| contender.take(count, limited.layout).expect("ours is called");
        let share = share_of_the_limit(client, limited, plan.scaled_time(TIME), take);
        findings.samples.add(round, session.contender.name, session.limited.measure, share);
    });
}

/// The rate of a session, whose statement `take` takes IDs of the sequence `ids`, relative to the layout's limit.
///
/// IDs from the lead are not a sustained rate and do not count: neither the growth of the lead, nor the part that was taken before.
pub(super) fn share_of_the_limit(
    client: &mut Client,
    limited: &Limited,
    time: Duration,
    take: impl Fn(i64) -> String,
) -> f64 {
    // The sequence has counters of other layouts or of the future.
    client.batch_execute("SELECT setval('ids', 1)").expect("a sequence can be reset");
    let count = (limited.ids_per_second * time.as_secs_f64()) as i64;
    // Up to the lead, not recorded. After that, no tick is entered in its middle with all of its IDs still free.
    client.batch_execute(&take(count / 5)).expect("IDs are returned");
    let lead_before = seconds_ahead(client, limited);
    let began = Instant::now();
    client.batch_execute(&take(count)).expect("IDs are returned");
    let lead = seconds_ahead(client, limited);
    // Until the lead is read: it shrinks as time passes, and both must be of the same moment.
    let elapsed = began.elapsed().as_secs_f64();
    (count as f64 / limited.ids_per_second - (lead - lead_before)) / elapsed
}

/// How far the session's last ID is ahead of the clock, to the part of its tick that is used.
fn seconds_ahead(client: &mut Client, limited: &Limited) -> f64 {
    let Limited { layout, ids_per_second, .. } = limited;
    let ahead = format!(
        "SELECT extract(epoch FROM snowflake_created_at(id, '{layout}') - clock_timestamp())::float8
                + (snowflake_seq(id, '{layout}') + 1) / {ids_per_second}::float8
         FROM snowflake_currval('ids') AS id"
    );
    client.query_one(&ahead, &[]).expect("the session has an ID").get(0)
}
