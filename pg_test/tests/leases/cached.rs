//! Counters that a session has fetched under a lease, and not returned yet.

use super::{LONG, NO_LEASE, set, start, wait_for_lease, wants_shard_5};
use pg_snowflake_harness::leases::{Registry, change_by_hand, first_id};
use pg_snowflake_harness::prelude::*;

const GENERATE: &str = "SELECT snowflake_nextval('cached', 5)";

/// A server that holds shard 5, and a session with a sequence `cached` that is a minute ahead of the clock, so that the
/// clock passes no counters that the session has cached.
fn session_ahead_of_the_clock(registry: &Registry) -> (Cluster, Client) {
    let builder = wants_shard_5(registry, "db-1", LONG);
    let (server, mut client) = start(builder.setting("pg_snowflake.max_lead", "2h"));
    let start = first_counter_at(now_ms() + 60_000);
    run(&mut client, &format!("CREATE SEQUENCE cached CACHE 64 START {start}"));
    first_id(&mut client, GENERATE);
    (server, client)
}

#[test]
fn no_session_goes_on_after_the_lease_has_ended() {
    let registry = Registry::start();
    let (server, _client) = session_ahead_of_the_clock(&registry);
    // With cached counters, with those of a batch, and without any.
    let cases = [
        ("", GENERATE),
        ("BEGIN; DECLARE ids CURSOR FOR SELECT snowflake_nextvals('cached', 5, 1000)", "FETCH 1 FROM ids"),
        ("", "SELECT snowflake_nextval_homed_in_ranges('cached', 5, '{[0,)}'::int8multirange)"),
    ];
    let sessions = cases.map(|(prepare, call)| {
        let mut client = server.connect();
        run(&mut client, prepare);
        // The second call takes the fast path.
        for _ in 0..2 {
            take_one(&mut client, call);
        }
        (client, call)
    });

    // The server releases shard 5, and claims shard 6.
    set(&server, "shard_id", "6");
    wait_for_lease(&registry, "state = 'released'");

    for (mut client, call) in sessions {
        assert_refused(&mut client, call, NO_LEASE);
    }
}

/// The span of shard 6 begins above the counters that the session has cached for shard 5.
#[test]
fn a_cached_counter_is_not_returned_for_a_shard_whose_span_lacks_it() {
    let registry = Registry::start();
    let (server, mut client) = session_ahead_of_the_clock(&registry);
    change_by_hand(&mut registry.cluster.connect(), "UPDATE snowflake_registry.identity SET quiet_until = clock_timestamp() + '2 min'");

    set(&server, "owned_shards", "5, 6");
    wait_for(&mut client, "SELECT count(*) = 2 FROM snowflake_lease_status() WHERE state = 'held'", "both shards are held");
    // Only a renewal drops these counters. The fast path knows the other sequence, too.
    first_id(&mut client, GENERATE);
    take_one(&mut client, "SELECT snowflake_nextval('s', 5)");

    let starts = "SELECT floor(extract(epoch FROM starts) * 1000)::bigint FROM snowflake_lease_status() WHERE shard_id = 6";
    let starts = take_one(&mut client, starts);
    for call in ["SELECT snowflake_nextval('cached', 6)", "SELECT snowflake_nextval_homed_in_ranges('s', 6, '{[0,)}'::int8multirange)"] {
        let id = first_id(&mut client, call);
        assert!(split(id).unix_ms >= starts, "{call}: {:?}", split(id));
    }
}
