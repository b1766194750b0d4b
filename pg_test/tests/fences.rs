//! The fences: for which shards a server may generate IDs, and which servers may generate IDs at all.

mod copies;
mod options;
mod privileges;
mod settings;

use pg_snowflake_harness::prelude::*;

const GENERATE_OWN: &str = "SELECT snowflake_nextval('s', 5)";
const GENERATE_FOREIGN: &str = "SELECT snowflake_nextval('s', 6)";

/// What adds shard 6 to the list in the configuration file.
const ADDS_SHARD_6: &str = "LOAD 'pg_snowflake'; ALTER SYSTEM SET pg_snowflake.owned_shards = '5, 6'; SELECT pg_reload_conf(); Under Patroni, use patronictl edit-config instead.";

const NOT_OWNED: Refusal = Refusal { sqlstate: "55000", message: "shard 6 is not owned by this server", hint: ADDS_SHARD_6 };

/// A server that owns shard 5, with a sequence `s` and an ordinary user `writer` who may use it and create objects. No
/// session has loaded the library for another one to inherit.
fn owner_of_shard_5() -> Cluster {
    with_writer(Cluster::builder().setting("pg_snowflake.owned_shards", "5").start())
}

fn with_writer(cluster: Cluster) -> Cluster {
    let sql = "CREATE SEQUENCE s; CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer; GRANT CREATE ON SCHEMA public TO writer";
    run(&mut cluster.connect(), sql);
    cluster
}
