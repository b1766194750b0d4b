//! A sequence goes from a publisher to a subscriber by `REFRESH SEQUENCES`, which PostgreSQL has from 19 on.
//!
//! Both sequences are an hour ahead of the clock, so that it keeps no IDs apart.

use pg_snowflake_harness::installation::has_major;
use pg_snowflake_harness::prelude::*;

const TAKE: &str = "SELECT snowflake_nextval('s', 5) FROM generate_series(1, 100)";

/// What docs/operate.md shows, in its order.
const PUBLISH: &str = include_str!("../../docs/handover/publish.sql");
const SUBSCRIBE: &str = include_str!("../../docs/handover/subscribe.sql");
const REFRESH: &str = include_str!("../../docs/handover/refresh.sql");
const UNSUBSCRIBE: &str = include_str!("../../docs/handover/unsubscribe.sql");

#[test]
fn a_sequence_that_is_handed_over_repeats_no_id() {
    let Some((publisher, subscriber)) = publisher_and_subscriber("a sequence that is handed over") else {
        return;
    };
    let mut ids = take(&mut publisher.connect(), TAKE);
    let last = counter(ids[99]);
    // A sequence that is newer than the subscription.
    for cluster in [&publisher, &subscriber] {
        run(cluster, "CREATE SEQUENCE late");
    }
    run(&publisher, "SELECT setval('late', 777)");

    run(&subscriber, REFRESH);
    run(&subscriber, UNSUBSCRIBE);
    assert_eq!(take_one(&mut subscriber.connect(), "SELECT last_value FROM late"), 777);
    ids.extend(take(&mut subscriber.connect(), TAKE));

    assert_eq!(counter(ids[100]), last + 1, "the clock has moved the sequence");
    assert_eq!(count_repeats(ids), 0);
}

/// The second refresh sets the sequence below these IDs.
#[test]
fn a_subscriber_repeats_no_id_that_it_generates_between_two_refreshes() {
    let Some((publisher, subscriber)) = publisher_and_subscriber("a subscriber that is refreshed") else {
        return;
    };
    take(&mut publisher.connect(), TAKE);

    run(&subscriber, REFRESH);
    let mut ids = take(&mut subscriber.connect(), TAKE);
    run(&subscriber, REFRESH);
    ids.extend(take(&mut subscriber.connect(), TAKE));
    run(&subscriber, UNSUBSCRIBE);

    assert_eq!(count_repeats(ids), 0);
}

/// Two servers with a sequence `s`, the second of which has subscribed to that of the first.
fn publisher_and_subscriber(what: &str) -> Option<(Cluster, Cluster)> {
    if !has_major(19, what) {
        return None;
    }
    let start = counter_in_an_hour();
    let [publisher, subscriber] = [(); 2].map(|()| {
        let cluster = Cluster::builder().setting("wal_level", "logical").setting("pg_snowflake.max_lead", "2h").start();
        run(&cluster, &format!("CREATE SEQUENCE s START {start}"));
        cluster
    });
    run(&publisher, PUBLISH);
    let connection = format!("host={} user=postgres dbname=postgres", publisher.dir().display());
    run(&subscriber, &format!("\\set publisher '{connection}'\n{SUBSCRIBE}"));
    let is_copied = "SELECT EXISTS (SELECT FROM pg_subscription_rel WHERE srsubstate = 'r')";
    wait_for(&mut subscriber.connect(), is_copied, "the sequence's first value has been copied");
    Some((publisher, subscriber))
}

fn run(cluster: &Cluster, sql: &str) {
    cluster.psql(SUPERUSER, sql);
}
