//! The campaign's short form: no id comes twice, whatever happens to the server. The promise for each fault is
//! stated in docs/proof.md.

use pg_snowflake_servertest::campaign::short_form;

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
fn sixty_four_clients_share_no_id() {
    short_form("clients");
}
