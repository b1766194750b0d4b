//! `pg_snowflake.allowed_hosts`: a copy of a server, on another host.

use super::GENERATE_OWN;
use nix::unistd::gethostname;
use pg_snowflake_harness::host_name;
use pg_snowflake_harness::installation::left_out;
use pg_snowflake_harness::prelude::*;

const FOREIGN_HOST: Refusal =
    Refusal { sqlstate: "55000", message: "host \"db-7\" is not allowed to generate IDs", hint: "'db-1, db-2, db-7'" };

/// A server on host db-1 that lists itself and db-2; `None` if the system does not let users change a host name.
fn server_on_db_1() -> Option<Cluster> {
    if !host_name::can_be_set() {
        left_out("a copy on another host", "user and UTS namespaces for ordinary users");
        return None;
    }
    let cluster = Cluster::builder().host_name("db-1").start();
    let mut client = cluster.connect();
    run(&mut client, "CREATE SEQUENCE s; ALTER DATABASE postgres SET pg_snowflake.allowed_hosts = 'db-1, db-2'");
    assert_eq!(take(&mut cluster.connect(), GENERATE_OWN).len(), 1);
    Some(cluster)
}

#[test]
fn a_base_backup_that_is_started_on_another_host_generates_no_ids_until_the_hint_is_followed() {
    let Some(primary) = server_on_db_1() else { return };
    let mut copy = primary.base_backup();
    copy.start_on_host("db-7");

    let error = assert_refused(&mut copy.connect(), GENERATE_OWN, FOREIGN_HOST);

    let page = std::fs::read_to_string(top().join("docs/operate.md")).unwrap();
    for line in [error.message(), error.detail().unwrap(), error.hint().unwrap()] {
        assert!(page.contains(line), "docs/operate.md does not show: {line}");
    }
    let last = take_one(&mut primary.connect(), GENERATE_OWN);
    drop(primary);
    copy.psql(SUPERUSER, commands_in(error.hint().unwrap()));
    assert!(take_one(&mut copy.connect(), GENERATE_OWN) > last);
}

#[test]
fn a_listed_standby_generates_as_soon_as_it_is_promoted() {
    let Some(mut primary) = server_on_db_1() else { return };
    let standby = primary.standby_on_host("db-2");
    // A session from before the promotion, with the setting of the standby.
    let mut early = standby.connect();
    assert_refused(&mut early, GENERATE_OWN, refusal("25006", "during recovery"));
    let last = take_one(&mut primary.connect(), GENERATE_OWN);
    primary.stop(Shutdown::Fast);

    standby.promote();

    assert!(take_one(&mut early, GENERATE_OWN) > last);
    assert_eq!(take(&mut standby.connect(), GENERATE_OWN).len(), 1);
}

#[test]
fn an_unlisted_standby_generates_no_ids_after_its_promotion() {
    let Some(primary) = server_on_db_1() else { return };
    let standby = primary.standby_on_host("db-7");

    standby.promote();

    assert_refused(&mut standby.connect(), GENERATE_OWN, FOREIGN_HOST);
}

#[test]
fn a_reload_opens_a_fence_in_the_configuration_file() {
    if !host_name::can_be_set() {
        return left_out("a copy on another host", "user and UTS namespaces for ordinary users");
    }
    for preload in ["", "pg_snowflake"] {
        let primary = Cluster::builder()
            .host_name("db-1")
            .setting("pg_snowflake.allowed_hosts", "db-1, db-2")
            .setting("shared_preload_libraries", preload)
            .start();
        primary.connect().batch_execute("CREATE SEQUENCE s").unwrap();
        let mut copy = primary.base_backup();
        copy.start_on_host("db-7");
        let mut client = copy.connect();
        let error = assert_refused(&mut client, GENERATE_OWN, FOREIGN_HOST);

        copy.psql(SUPERUSER, commands_in(error.hint().unwrap()));

        // A reload reaches a session between two of its statements.
        assert!(comes_true(|| client.simple_query(GENERATE_OWN).is_ok()), "the reload has no effect");
    }
}

#[test]
fn this_host_is_recognized_by_its_hostname_in_any_case() {
    let (_database, mut client) = database_with("CREATE SEQUENCE s");
    let host = gethostname().unwrap().into_string().unwrap();
    for (hosts, is_listed) in [(format!("other-1, {}", host.to_uppercase()), true), (format!("{host}x"), false)] {
        client.batch_execute(&format!("SET pg_snowflake.allowed_hosts = '{hosts}'")).unwrap();
        assert_eq!(client.simple_query(GENERATE_OWN).is_ok(), is_listed, "{hosts}");
    }
}
