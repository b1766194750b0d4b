//! PgBouncer: which shard number a client's IDs have that shares its server session with others.

use super::pooler::{PORT, Package, Pooler};
use pg_snowflake_harness::prelude::*;
use postgres::{Config, NoTls};
use std::{fs, thread};

const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING snowflake_shard_id(id)";

/// The settings of PgBouncer, what a client runs who wants IDs of shard 8, and the shard of its IDs.
const MODES: [[&str; 3]; 3] = [
    ["pool_mode = session", "SET pg_snowflake.shard_id = 8", "8"],
    ["pool_mode = transaction", "BEGIN; SET LOCAL pg_snowflake.shard_id = 8", "8"],
    ["pool_mode = transaction\nserver_reset_query_always = 1", "SET pg_snowflake.shard_id = 8", "5"],
];

#[test]
fn a_setting_of_one_client_is_not_that_of_the_next() {
    let Some(package) = package() else { return };
    let server = server();
    for [mode, set, own] in MODES {
        let bouncer = start(&package, &server, mode);

        let mut first = bouncer.connect();
        run(&mut first, set);
        assert_eq!(printed(&mut first, INSERT), own, "{mode}: of the client itself");
        run(&mut first, "COMMIT");
        let process = printed(&mut first, "SELECT pg_backend_pid()");
        drop(first);

        let mut next = bouncer.connect();
        assert_eq!(printed(&mut next, INSERT), "5", "{mode}: of the next client");
        assert_eq!(printed(&mut next, "SELECT pg_backend_pid()"), process, "{mode}: it has another session");
    }
}

#[test]
fn a_shard_number_in_the_options_is_refused_and_that_of_the_role_is_used() {
    let Some(package) = package() else { return };
    let server = server();
    run(&mut server.connect(), &format!("ALTER ROLE {SUPERUSER} SET pg_snowflake.shard_id = 7"));
    for mode in ["session", "transaction", "statement"] {
        let bouncer = start(&package, &server, &format!("pool_mode = {mode}"));

        let refused = bouncer.config.clone().options("-c pg_snowflake.shard_id=8").connect(NoTls).err().expect("refused");

        assert_eq!(refused.as_db_error().unwrap().message(), "unsupported startup parameter: options");
        assert_eq!(printed(&mut bouncer.connect(), INSERT), "7", "{mode}");
    }
}

#[test]
fn clients_that_share_sessions_get_different_ids() {
    let Some(package) = package() else { return };
    let server = server();
    let bouncer = start(&package, &server, "pool_mode = transaction\ndefault_pool_size = 2");
    let ids = thread::scope(|scope| {
        let clients = [(); 4].map(|()| scope.spawn(|| insert(&bouncer.config)));
        clients.map(|client| client.join().unwrap()).concat()
    });
    assert_eq!((ids.len(), count_repeats(ids)), (2000, 0));
}

fn insert(config: &Config) -> Vec<i64> {
    let mut client = config.connect(NoTls).unwrap();
    // Not prepared, since PgBouncer 1.18 does not know in which session a statement is.
    let id = |_| printed(&mut client, "INSERT INTO posts DEFAULT VALUES RETURNING id").parse().unwrap();
    (0..500).map(id).collect()
}

fn package() -> Option<Package> {
    Package::get("PgBouncer", "pgbouncer", "pgbouncer")
}

fn server() -> Cluster {
    let server = Cluster::new();
    let schema = "ALTER DATABASE postgres SET pg_snowflake.shard_id = 5; CREATE SEQUENCE s;
                  CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s'))";
    run(&mut server.connect(), schema);
    server
}

/// One session with the server, unless the settings have another number.
fn start(package: &Package, server: &Cluster, settings: &str) -> Pooler {
    let (files, server) = (package.dir().display(), server.dir().display());
    let configuration = format!(
        "[databases]\npostgres = host={server} port=5432 user={SUPERUSER}\n[pgbouncer]\nlisten_addr =\nunix_socket_dir = {files}\n\
         listen_port = {PORT}\nauth_type = any\ndefault_pool_size = 1\n{settings}\n"
    );
    fs::write(package.dir().join("ini"), configuration).unwrap();
    package.start(&["ini"])
}
