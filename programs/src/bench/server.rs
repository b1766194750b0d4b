//! The servers that are measured, and the contenders' databases in them.

use crate::bench::contender::Contender;
use crate::bench::contenders::ALL;
use crate::bench::plan::Findings;
use pg_snowflake_harness::{Builder, Cluster, SUPERUSER};
use postgres::Client;

/// A server with enough memory and WAL for the measurements.
pub(super) fn builder() -> Builder {
    Cluster::builder()
        .setting("shared_buffers", "1GB")
        .setting("wal_buffers", "64MB")
        .setting("max_wal_size", "16GB")
        .setting("jit", "off")
        .setting("max_parallel_workers_per_gather", "0")
        // pgEdge's extension generates no IDs without it.
        .setting("snowflake.node", "1")
}

/// The contenders that this PostgreSQL has.
pub(super) fn available(findings: &mut Findings) -> Vec<&'static Contender> {
    let server = Cluster::new();
    let mut client = server.connect();
    let has = |contender: &&&'static Contender| match contender.version(&mut client) {
        Err(why) => {
            findings.note(why.to_owned());
            false
        }
        Ok(version) => {
            if let Some(version) = version {
                findings.note(format!(
                    "{} is from version {version} of its extension.",
                    contender.title
                ));
            }
            true
        }
    };
    ALL.iter().filter(has).copied().collect()
}

/// Creates a contender's database, and returns a session in it.
pub(super) fn database_of(server: &Cluster, contender: &Contender) -> Client {
    let create = format!("CREATE DATABASE {}", contender.name);
    server.connect().batch_execute(&create).expect("a database can be created");
    let mut client = connect(server, contender);
    for statement in contender.setup {
        client
            .batch_execute(statement)
            .unwrap_or_else(|error| panic!("{}: {statement}: {error:?}", contender.name));
    }
    client
}

/// A session in a contender's database.
pub(super) fn connect(server: &Cluster, contender: &Contender) -> Client {
    server.connect_to(SUPERUSER, contender.name)
}

/// The WAL that the server has written so far.
pub(super) fn wal_bytes(client: &mut Client) -> f64 {
    let bytes = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
    client.query_one(bytes, &[]).expect("a primary").get(0)
}
