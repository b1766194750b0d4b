//! The campaign's short form: no id is returned twice, whatever happens to the server. docs/proof.md states the guarantee
//! for each fault.

use pg_snowflake_servertest::campaign::short_form;
use pg_snowflake_servertest::top;
use std::process::Command;

/// `./dev mutations` takes too long to run every day; checking that its patches still apply does not.
#[test]
fn every_mutation_still_fits_the_source() {
    let mutations: Vec<_> = std::fs::read_dir(top().join("pg_test/mutations"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(mutations.len() >= 9, "{mutations:?}");
    for mutation in mutations {
        let mut apply = Command::new("git");
        apply.current_dir(top()).args(["apply", "--check"]).arg(&mutation);
        assert!(apply.status().unwrap().success(), "{mutation:?} no longer applies");
    }
}

#[test]
fn killed_servers_repeat_no_id() {
    short_form("kill");
}

#[test]
fn servers_stopped_in_a_checkpoint_repeat_no_id() {
    short_form("checkpoint");
}

#[test]
fn a_clock_that_steps_back_and_forth_repeats_no_id() {
    short_form("steps");
}

#[test]
fn killed_servers_whose_clock_comes_back_behind_repeat_no_id() {
    short_form("behind");
}

#[test]
fn promoted_synchronous_standbys_repeat_no_id() {
    short_form("failover");
}

#[test]
fn promoted_asynchronous_standbys_repeat_no_id() {
    short_form("async");
}

#[test]
fn servers_restored_to_a_point_in_time_repeat_no_id() {
    short_form("restore");
}

#[test]
fn dumps_restored_on_another_server_repeat_no_id() {
    short_form("dump");
}

#[test]
fn upgraded_servers_repeat_no_id() {
    short_form("upgrade");
}

#[test]
fn altered_sequences_repeat_no_id_after_a_crash() {
    short_form("alter");
}

#[test]
fn copied_databases_repeat_no_id_after_a_crash() {
    short_form("template");
}

#[test]
fn sixty_four_clients_share_no_id() {
    short_form("clients");
}
