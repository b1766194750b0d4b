//! The registry as an extension: who creates it, who may do what with it, and how it is dumped.

use super::registry;
use pg_snowflake_harness::leases::{GRANTS, make_registry};
use pg_snowflake_harness::prelude::*;

const CREATE: &str = "CREATE EXTENSION pg_snowflake_registry";

const CLAIM: &str = "SELECT * FROM snowflake_registry.claim('{5}', 'db-1', '00000000-0000-4000-8000-000000000001', NULL,
    gen_random_uuid(), clock_timestamp() + interval '5 min', '5 min')";

const RELEASE: &str = "SELECT snowflake_registry.release('00000000-0000-4000-8000-000000000001', '{5}', '{1}', now())";

#[test]
fn a_node_belongs_to_the_role_that_first_claimed_it() {
    let cluster = Cluster::new();
    let mut superuser = make_registry(&cluster);
    run(&mut superuser, &format!("CREATE ROLE node LOGIN; {GRANTS}"));
    run(&mut superuser, &format!("CREATE ROLE thief LOGIN; {}", GRANTS.replace("TO node", "TO thief")));
    let [mut node, mut thief] = ["node", "thief"].map(|role| cluster.connect_to(role, "postgres"));
    run(&mut node, CLAIM);
    let serial = printed(&mut superuser, "SELECT serial FROM snowflake_registry.shards");
    let release = RELEASE.replace("{1}", &format!("{{{serial}}}"));
    let lease = "SELECT * FROM snowflake_registry.shards";
    let before = printed(&mut superuser, lease);

    let renew = CLAIM.replace("NULL", &format!("'{{{serial}}}'"));
    let other_shard = CLAIM.replace("{5}", "{6}");
    let assigned = CLAIM.replace("'{5}'", "NULL");
    let belongs = Refusal { sqlstate: "42501", message: "node \"db-1\" belongs to another role", hint: "Use another pg_snowflake.node." };
    for sql in [CLAIM, &renew, &other_shard, &assigned, &release] {
        assert_refused(&mut thief, sql, belongs);
        // Neither as a role that the thief can set.
        run(&mut superuser, "GRANT node TO thief");
        run(&mut thief, "SET ROLE node");
        assert_refused(&mut thief, sql, belongs);
        run(&mut thief, "RESET ROLE");
        run(&mut superuser, "REVOKE node FROM thief");
    }
    // Nor under a name of its own, with what proves that the node holds the lease.
    for sql in [CLAIM, &renew] {
        let sql = sql.replace("db-1", "db-3").replacen('*', "granted", 1);
        assert_eq!(printed(&mut thief, &sql), "f", "{sql}");
    }
    assert_eq!(printed(&mut superuser, lease), before);
    run(&mut thief, &other_shard.replace("db-1", "db-2"));

    // Until the node is retired. A dump keeps its role.
    let mut restored = cluster.restored_database("restored", &cluster.dump("postgres"));
    assert_eq!(
        printed(&mut restored, "SELECT node, role FROM snowflake_registry.nodes ORDER BY node"),
        "db-1|node\ndb-2|thief\ndb-3|thief"
    );
    assert_eq!(printed(&mut node, &release), "1");
    run(&mut superuser, "SELECT snowflake_registry.retire('db-1')");
    run(&mut thief, CLAIM);
    assert_refused(&mut node, CLAIM, belongs);
}

const TABLES: [&str; 3] = ["TABLE snowflake_registry.shards", "TABLE snowflake_registry.nodes", "TABLE snowflake_registry.identity"];

/// The script creates the schema, so the dump must not.
#[test]
fn a_dump_restores_the_extension_its_rows_and_the_privileges_on_it() {
    let (database, mut client) = registry();
    run(&mut client, GRANTS);
    run(&mut database.connect_as("node"), CLAIM);
    let dump = database.dump();
    assert!(!dump.contains("CREATE SCHEMA"), "{dump}");

    let of_restored = Database::restored(&dump);
    let mut restored = of_restored.connect();

    for table in TABLES {
        let rows = printed(&mut client, table);
        assert_eq!((printed(&mut restored, table), rows.is_empty()), (rows, false));
    }
    let answer = printed(&mut of_restored.connect_as("node"), CLAIM);
    assert!(answer.starts_with("5|t|"), "{answer}");
    // It is complete: it can be dropped, and made anew.
    run(&mut restored, &format!("DROP EXTENSION pg_snowflake_registry; {CREATE}"));
}

#[test]
fn a_role_that_may_not_read_the_registry_cannot_dump_it() {
    let cluster = Cluster::new();
    let mut client = make_registry(&cluster);
    run(&mut client, "CREATE ROLE owner LOGIN; ALTER DATABASE postgres OWNER TO owner; CREATE TABLE posts (id bigint)");
    run(&mut client, "ALTER TABLE posts OWNER TO owner");
    run(&mut client, CLAIM);
    let dump = |options: &[&str]| {
        let output = cluster.pg_dump("owner", SUPERUSER).args(options).output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        if output.status.success() { Ok(out) } else { Err(error) }
    };

    let error = dump(&[]).unwrap_err();
    assert!(error.contains("permission denied for schema snowflake_registry"), "{error}");

    let without = dump(&["--exclude-schema=snowflake_registry"]).unwrap();
    assert!(without.contains("TABLE public.posts") && !without.contains("COPY snowflake_registry"));
    run(&mut client, "GRANT pg_read_all_data TO owner");
    assert!(dump(&[]).unwrap().contains("COPY snowflake_registry.shards"));
}
