//! A fence in the options of a connection. PostgreSQL lets them replace what the configuration file says until the
//! library is loaded, refuses them then, and has lost the file's value: the session must not be without a fence.

use super::{MINT_FOREIGN, MINT_OWN, NOT_OWNED, owner_of_shard_5};
use pg_snowflake_servertest::Cluster;
use pg_snowflake_servertest::refusal::{Refusal, assert_refused};
use pg_snowflake_servertest::sequence::{state, take};

const HIDDEN: Refusal = Refusal {
    sqlstate: "42501",
    message: "this session may not mint ids: its connection options name pg_snowflake.",
    hint: "PGOPTIONS",
};

#[test]
fn an_ordinary_user_whose_options_name_a_fence_mints_nothing() {
    let cluster = owner_of_shard_5();
    let before = state(&mut cluster.connect(), "s");
    let attempts = [
        "-c pg_snowflake.owned_shards=6",
        "-c pg_snowflake.owned_shards=",
        "-c pg_snowflake.owned_shards=5",
        "-c pg_snowflake.owned_shards=6-",
        "-c PG_Snowflake.OWNED_shards=6",
        "--pg_snowflake.owned-shards=6",
        "-c pg_snowflake.allowed_hosts=",
        "-c pg_snowflake.owned_shards=6 -c pg_snowflake.allowed_hosts=",
    ];
    for options in attempts {
        for then in ["SELECT 1", "RESET ALL", "DISCARD ALL", "SET pg_snowflake.owned_shards = '6'"]
        {
            let mut writer = cluster.connect_with_options("writer", options).unwrap();
            writer.batch_execute(then).unwrap();
            // Shown where it fails.
            println!("{options}; {then}");
            for mint in [MINT_FOREIGN, MINT_OWN] {
                assert_refused(&mut writer, mint, HIDDEN);
            }
            // Again after the library was loaded.
            let _ = writer.simple_query(then);
            assert_refused(&mut writer, MINT_FOREIGN, HIDDEN);
        }
    }
    assert_eq!(state(&mut cluster.connect(), "s"), before);
}

#[test]
fn an_ordinary_user_whose_options_name_a_databases_fence_mints_nothing() {
    let cluster = Cluster::new();
    cluster
        .connect()
        .batch_execute(
            "CREATE SEQUENCE s; CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer;
             ALTER DATABASE postgres SET pg_snowflake.allowed_hosts = 'db-1'",
        )
        .unwrap();
    // However it is spelt: here no line of the configuration file has spelt it before.
    for options in ["-c pg_snowflake.allowed_hosts=", "-c PG_Snowflake.ALLOWED_hosts="] {
        let mut writer = cluster.connect_with_options("writer", options).unwrap();
        assert_refused(&mut writer, MINT_OWN, HIDDEN);
    }
}

#[test]
fn a_superusers_options_count() {
    let cluster = owner_of_shard_5();
    let options = "-c pg_snowflake.owned_shards=6";
    let mut superuser = cluster.connect_with_options("postgres", options).unwrap();

    assert_eq!(take(&mut superuser, MINT_FOREIGN).len(), 1);
}

#[test]
fn where_the_server_loads_the_library_at_its_start_such_a_connection_is_refused() {
    let cluster = Cluster::builder()
        .setting("pg_snowflake.owned_shards", "5")
        .setting("shared_preload_libraries", "pg_snowflake")
        .start();
    cluster
        .connect()
        .batch_execute(
            "CREATE SEQUENCE s; CREATE ROLE writer LOGIN; GRANT USAGE ON SEQUENCE s TO writer",
        )
        .unwrap();

    let options = "-c pg_snowflake.owned_shards=6";
    let error = cluster.connect_with_options("writer", options).err().expect("refused");
    assert_eq!(error.code().map(|code| code.code()), Some("42501"), "{error:?}");
    let mut writer = cluster.connect_to("writer", "postgres");
    assert_refused(&mut writer, MINT_FOREIGN, NOT_OWNED);
}

#[test]
fn the_superusers_fence_comes_back_with_the_next_connection() {
    let cluster = owner_of_shard_5();
    let options = "-c pg_snowflake.owned_shards=6";
    let mut writer = cluster.connect_with_options("writer", options).unwrap();
    assert_refused(&mut writer, MINT_OWN, HIDDEN);

    assert_eq!(take(&mut cluster.connect_to("writer", "postgres"), MINT_OWN).len(), 1);
}
