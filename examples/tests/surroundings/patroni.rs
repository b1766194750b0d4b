//! Patroni with etcd: three members, whose primaries are replaced in every way that it has, with writers on all of them.

mod cluster;

use super::events::Events;
use cluster::{Patronis, Version};
use pg_snowflake_harness::Shutdown;
use pg_snowflake_harness::leases::Registry;
use pg_snowflake_harness::process::Frozen;
use std::thread::sleep;
use std::time::Duration;

/// What permits a cluster to generate IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shards {
    WithoutLeases,
    /// Leases on the same shard for all members, by the same node name.
    One,
    /// Leases on another shard for each member.
    OnePerMember,
}

#[test]
fn without_leases_patroni_goes_on_after_everything() {
    run(Version::of_debian(), Shards::WithoutLeases);
}

#[test]
fn with_one_shard_no_id_is_returned_twice_under_patroni() {
    run(Version::of_debian(), Shards::One);
}

#[test]
fn with_a_shard_for_each_member_no_id_is_returned_twice_under_patroni() {
    run(Version::of_debian(), Shards::OnePerMember);
}

#[test]
fn with_one_shard_no_id_is_returned_twice_under_the_newest_patroni() {
    run(Version::of_pypi(), Shards::One);
}

/// Replaces the primary in every way.
fn run(version: Option<Version>, shards: Shards) {
    let Some(version) = version else { return };
    let mut registry = Registry::start();
    let title = format!("Patroni {}, {shards:?}", version.number());
    let Some(mut members) = Patronis::start(version, shards, &registry) else { return };
    let mut events = Events::start(title.clone(), &members);

    events.run("switchover", 5, &mut members, |members| members.switch_over());
    events.run("kill -9, restarted in place", 3, &mut members, |members| members.kill_postmaster());
    members.set(&["master_start_timeout=0", "primary_start_timeout=0"]);
    events.run("kill -9, another member promoted at once", 3, &mut members, |members| members.kill_postmaster());
    members.set(&["master_start_timeout=null", "primary_start_timeout=null"]);
    events.run("Patroni and the server killed, ttl expires", 1, &mut members, |members| {
        let leader = members.kill_patroni_and_server();
        members.wait_for_another_leader(leader);
        members.start_member(leader);
    });
    events.run("primary paused for 30 s", 1, &mut members, |members| {
        let paused = Frozen::of(members.processes_of(members.leader()));
        sleep(Duration::from_secs(30));
        drop(paused);
    });
    events.run("replica initialized again, switchover to it", 1, &mut members, |members| {
        let replica = members.replica();
        members.reinitialize(replica);
        members.switch_over_to(replica);
    });
    events.run("etcd away for 30 s", 1, &mut members, |members| {
        let paused = Frozen::of([members.etcd()]);
        sleep(Duration::from_secs(30));
        drop(paused);
    });
    if shards != Shards::WithoutLeases {
        events.run("registry away for 25 s, switchover meanwhile", 1, &mut members, |members| {
            registry.cluster.stop(Shutdown::Fast);
            members.switch_over();
            sleep(Duration::from_secs(25));
            registry.cluster.start();
        });
    }

    events.print(&format!("pg_rewind ran {} times", members.rewinds()));
    let repeats = events.stop();
    if shards != Shards::WithoutLeases {
        assert_eq!(repeats, 0, "{title}");
    }
}
