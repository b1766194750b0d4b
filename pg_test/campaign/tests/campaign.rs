//! The campaign's short form: no ID is returned twice, whatever happens to the server. docs/proof.md states the guarantee for each fault.

use pg_snowflake_campaign::{EDITION, Tally, round_with, short_form};
use pg_snowflake_harness::top;
use std::process::Command;

/// `./dev campaign mutations` takes too long to run every day; checking that its patches still apply does not.
#[test]
fn every_mutation_still_fits_the_source() {
    let mutations: Vec<_> =
        std::fs::read_dir(top().join("pg_test/campaign/mutations")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(mutations.len() >= 10, "{mutations:?}");
    for mutation in mutations {
        let mut apply = Command::new("git");
        apply.current_dir(top()).args(["apply", "--check"]).arg(&mutation);
        assert!(apply.status().unwrap().success(), "{mutation:?} no longer applies");
    }
}

macro_rules! short_forms {
    ($($test:ident: $fault:literal;)*) => {
        $(#[test]
        fn $test() {
            short_form($fault);
        })*
    };
}

short_forms! {
    killed_servers_repeat_no_id: "kill";
    servers_stopped_in_a_checkpoint_repeat_no_id: "checkpoint";
    a_clock_that_steps_back_and_forth_repeats_no_id: "steps";
    killed_servers_whose_clock_comes_back_behind_repeat_no_id: "behind";
    promoted_synchronous_standbys_repeat_no_id: "failover";
    promoted_asynchronous_standbys_repeat_no_id: "async";
    servers_restored_to_a_point_in_time_repeat_no_id: "restore";
    dumps_restored_on_another_server_repeat_no_id: "dump";
    upgraded_servers_repeat_no_id: "upgrade";
    altered_sequences_repeat_no_id_after_a_crash: "alter";
    copied_databases_repeat_no_id_after_a_crash: "template";
    sixty_four_clients_share_no_id: "clients";
    the_sql_edition_repeats_no_id_and_leaves_no_lock_behind: "managed";
    random_statements_act_as_with_core_nextval: "oracle";
    a_base_backup_beside_its_source_repeats_no_id: "lease-backup";
    a_copied_disk_beside_its_source_repeats_no_id: "lease-disk";
    an_old_primary_beside_the_promoted_standby_repeats_no_id: "lease-promotion";
    a_primary_that_wakes_up_beside_its_promoted_standby_repeats_no_id: "lease-paused-primary";
    a_server_that_was_paused_for_longer_than_its_lease_repeats_no_id: "lease-pause";
    sessions_and_workers_that_were_paused_for_longer_than_the_lease_repeat_no_id: "lease-processes";
    servers_with_clocks_an_hour_apart_repeat_no_id: "lease-clocks";
    a_lease_that_is_taken_over_from_a_living_holder_repeats_no_id: "lease-takeover";
    a_registry_that_is_killed_repeats_no_id: "lease-registry";
    a_registry_that_is_killed_for_half_a_minute_repeats_no_id: "lease-outage";
    requests_that_reach_the_registry_late_repeat_no_id: "lease-late";
    a_registry_that_fails_over_repeats_no_id: "lease-failover";
    a_registry_that_is_restored_repeats_no_id: "lease-restore";
    a_registry_that_is_rolled_back_repeats_no_id: "lease-rollback";
    a_server_that_restarts_beside_its_copy_repeats_no_id: "lease-clone-restart";
}

const LOCK: &str = "pg_catalog.pg_advisory_xact_lock(1936617319, seq::pg_catalog.oid::pg_catalog.int4) IS NOT NULL";

#[test]
fn an_sql_edition_without_its_lock_repeats_ids() {
    assert!(EDITION.contains(LOCK));
    assert_found(&EDITION.replace(LOCK, "true"), |tally| tally.repeats > 0);
}

#[test]
fn an_sql_edition_whose_batches_take_no_lock_repeats_ids() {
    let batch = EDITION.find("FUNCTION snowflake_managed.snowflake_nextvals(").expect("a batch");
    let (before, batch) = EDITION.split_at(batch);
    assert!(batch.contains(LOCK));
    assert_found(&[before, &batch.replace(LOCK, "true")].concat(), |tally| tally.repeats > 0);
}

#[test]
fn an_sql_edition_that_sets_the_sequence_only_if_it_is_behind_repeats_ids() {
    let edition = [EDITION, include_str!("campaign/nextval_first.sql")].concat();
    assert_found(&edition, |tally| tally.repeats > 0);
}

#[test]
fn an_sql_edition_that_unlocks_in_a_handler_leaves_locks_behind() {
    let edition = [EDITION, include_str!("campaign/session_lock.sql")].concat();
    assert_found(&edition, |tally| tally.locks_left > 0);
}

/// Asserts that the campaign finds that error of an edition. A race decides in which round.
fn assert_found(edition: &str, is_found: fn(Tally) -> bool) {
    let round = (1..=100).find(|_| is_found(round_with(edition)));
    println!("found in round {round:?}");
    assert!(round.is_some(), "the campaign does not find it");
}
