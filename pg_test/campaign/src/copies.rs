//! A server that continues elsewhere: from a base backup, a dump, or as another major version.

use crate::episode::{self, Episode};
use crate::load::{self, CREW, permit};
use crate::tally::Tally;
use pg_snowflake_harness::installation;
use pg_snowflake_harness::prelude::*;

const RESTORE_POINT: &str = "here";

/// Takes a base backup and names a restore point, both under load; the server is lost and restored to the point.
pub fn point_in_time(episode: &mut Episode) -> Tally {
    let archive = "mkdir -p ../archive && cp %p ../archive/%f";
    let builder = || Cluster::builder().setting("archive_mode", "on").setting("archive_command", archive);
    episode.on_new_servers(builder, |episode, mut server, _| {
        let load = load::start(&server, &mut episode.rng, 0, &CREW);
        let mut copy = server.base_backup();
        episode.sleep_ms(20..200);
        let name_point = format!("SELECT pg_walfile_name(pg_create_restore_point('{RESTORE_POINT}'))");
        let segment = printed(&mut server.connect(), &name_point);
        episode.sleep_ms(20..200);
        let mut journals = load.stop();
        wait_until_archived(&mut server.connect(), &segment);
        server.kill_9();
        copy.start_at_restore_point(&server.dir().join("archive"), RESTORE_POINT);
        episode::cut_to_marks(&copy, &mut journals);
        (copy, journals)
    })
}

fn wait_until_archived(client: &mut Client, segment: &str) {
    client.execute("SELECT pg_switch_wal()", &[]).expect("a superuser");
    wait_for(client, &format!("SELECT last_archived_wal >= '{segment}' FROM pg_stat_archiver"), &format!("{segment} is archived"));
}

/// Dumps a database under load and restores it on another server, which continues in its place.
pub fn dump_and_restore(episode: &mut Episode) -> Tally {
    episode.on_new_servers(Cluster::builder, |episode, server, lead| {
        let load = load::start(&server, &mut episode.rng, 0, &CREW);
        episode.sleep_ms(20..200);
        let dump = server.dump("postgres");
        let mut journals = load.stop();
        drop(server);
        let other = Cluster::new();
        other.psql("postgres", &dump);
        permit(&other, lead);
        episode::cut_to_marks(&other, &mut journals);
        (other, journals)
    })
}

pub fn upgrade(episode: &mut Episode) -> Tally {
    let bindir = installation::next_bindir().expect("there is another major");
    episode.on_new_servers(Cluster::builder, |episode, server, _| {
        let load = load::start(&server, &mut episode.rng, 0, &CREW);
        episode.sleep_ms(100..300);
        let journals = load.stop();
        let upgraded = server.upgrade(bindir);
        episode::assert_kept(&upgraded, &journals);
        (upgraded, journals)
    })
}
