//! The registry as an extension: who creates it, who may do what with it, and how it is dumped.

use super::registry;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, refused, run};
use pg_snowflake_harness::leases::{GRANTS, make_registry};
use pg_snowflake_harness::{Cluster, Database, SUPERUSER};

const CREATE: &str = "CREATE EXTENSION pg_snowflake_registry";

const CLAIM: &str = "SELECT * FROM snowflake_registry.claim('{5}', 'db-1', '00000000-0000-4000-8000-000000000001', NULL,
    gen_random_uuid(), clock_timestamp() + interval '5 min', '5 min')";

const RELEASE: &str = "SELECT snowflake_registry.release('00000000-0000-4000-8000-000000000001', '{5}', '{1}', now())";

const TAKE_OVER: &str = "SELECT snowflake_registry.take_over(5, 'db-2')";

const RETIRE: &str = "SELECT snowflake_registry.retire('db-2')";

const END_QUIET_TIME: &str = "SELECT snowflake_registry.end_quiet_time()";

/// Its owner could put other tables in place of ours.
#[test]
fn it_is_not_created_in_a_schema_that_exists() {
    let database = Database::new();
    let mut client = database.connect();
    for owner in ["CURRENT_USER", "other"] {
        run(&mut client, &format!("CREATE SCHEMA snowflake_registry AUTHORIZATION {owner}"));
        let message = "schema \"snowflake_registry\" already exists";
        let exists = Refusal { sqlstate: "42P06", message, hint: "" };
        assert_refused(&mut client, CREATE, exists);
        run(&mut client, "DROP SCHEMA snowflake_registry");
    }
    run(&mut client, CREATE);
    run(&mut client, CLAIM);
}

#[test]
fn only_a_superuser_creates_it() {
    let database = Database::new();
    let give = format!("ALTER DATABASE {} OWNER TO owner", database.name());
    run(&mut database.connect(), &give);
    let denied = Refusal { sqlstate: "42501", message: "permission denied to create", hint: "" };
    assert_refused(&mut database.connect_as("owner"), CREATE, denied);
}

#[test]
fn it_has_its_own_schema_whatever_the_search_path() {
    let (_database, mut client) = registry();
    run(&mut client, "DROP EXTENSION pg_snowflake_registry; CREATE SCHEMA other; SET search_path = other");
    assert_eq!(refused(&mut client, &format!("{CREATE} SCHEMA other")).code().code(), "0A000");
    run(&mut client, &format!("DROP SCHEMA public; {CREATE}"));

    let elsewhere = "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        WHERE extname = 'pg_snowflake_registry' AND deptype = 'e'
            AND (pg_identify_object(classid, objid, 0)).identity !~ '^snowflake_registry(\\.|$)'
            AND classid <> 'pg_type'::regclass";
    assert_eq!(printed(&mut client, elsewhere), "");
    assert_eq!(refused(&mut client, "ALTER EXTENSION pg_snowflake_registry SET SCHEMA other").code().code(), "0A000");
    run(&mut client, "DROP SCHEMA other CASCADE");
    run(&mut client, CLAIM);
}

#[test]
fn the_database_where_ids_are_generated_and_the_registrys_need_nothing_of_each_other() {
    let (_database, mut client) = registry();
    run(&mut client, CLAIM);
    run(&mut client, "CREATE EXTENSION pg_snowflake; CREATE SEQUENCE s");
    run(&mut client, "SELECT snowflake_nextval('s', 5)");
    run(&mut client, "DROP EXTENSION pg_snowflake");
    run(&mut client, TAKE_OVER);
    run(&mut client, "CREATE EXTENSION pg_snowflake; DROP EXTENSION pg_snowflake_registry");
    run(&mut client, "SELECT snowflake_nextval('s', 5)");
}

/// Even if new objects of the superuser are granted to everybody, or to a role.
#[test]
fn nobody_has_a_privilege_at_first() {
    for default in [
        "",
        "GRANT ALL ON TABLES TO PUBLIC",
        "GRANT ALL ON FUNCTIONS TO PUBLIC",
        "GRANT ALL ON SCHEMAS TO PUBLIC",
        "GRANT ALL ON TABLES TO other WITH GRANT OPTION",
        "GRANT ALL ON FUNCTIONS TO other",
        "GRANT ALL ON SCHEMAS TO other",
    ] {
        let (database, mut client) = registry();
        run(&mut client, "DROP EXTENSION pg_snowflake_registry");
        if !default.is_empty() {
            run(&mut client, &format!("ALTER DEFAULT PRIVILEGES {default}"));
        }
        run(&mut client, CREATE);
        run(&mut client, CLAIM);

        let granted = "
            SELECT 'schema' WHERE has_schema_privilege('other', 'snowflake_registry', 'USAGE, CREATE')
            UNION ALL
            SELECT relname FROM pg_class
            WHERE relnamespace = 'snowflake_registry'::regnamespace AND relkind IN ('r', 'v')
                AND (has_table_privilege('other', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                    OR has_any_column_privilege('other', oid, 'SELECT, INSERT, UPDATE, REFERENCES'))
            UNION ALL
            SELECT proname FROM pg_proc
            WHERE pronamespace = 'snowflake_registry'::regnamespace AND has_function_privilege('other', oid, 'EXECUTE')";
        assert_eq!(printed(&mut client, granted), "", "{default}");
        let mut other = database.connect_as("other");
        for sql in calls().iter().chain(&["TABLE snowflake_registry.leases"]).chain(&tables()) {
            assert_eq!(refused(&mut other, sql).code().code(), "42501", "{sql}");
        }
    }
}

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

fn calls() -> [&'static str; 6] {
    ["SELECT snowflake_registry.id()", CLAIM, RELEASE, TAKE_OVER, RETIRE, END_QUIET_TIME]
}

fn tables() -> [&'static str; 3] {
    ["TABLE snowflake_registry.shards", "TABLE snowflake_registry.nodes", "TABLE snowflake_registry.identity"]
}

#[test]
fn a_server_may_claim_and_release_and_nothing_else() {
    let (database, mut superuser) = registry();
    run(&mut superuser, GRANTS);
    let mut node = database.connect_as("node");

    assert_eq!(printed(&mut node, "SELECT snowflake_registry.id() IS NULL"), "t");
    run(&mut node, CLAIM);
    let identity = printed(&mut superuser, "SELECT id FROM snowflake_registry.identity");
    assert_eq!(printed(&mut node, "SELECT snowflake_registry.id()"), identity);
    let serial = printed(&mut superuser, "SELECT serial FROM snowflake_registry.shards");
    assert_eq!(printed(&mut node, &RELEASE.replace("{1}", &format!("{{{serial}}}"))), "1");
    for sql in [
        TAKE_OVER,
        "TABLE snowflake_registry.leases",
        "TABLE snowflake_registry.shards",
        "SELECT id FROM snowflake_registry.identity",
        "INSERT INTO snowflake_registry.shards SELECT * FROM snowflake_registry.shards",
        "UPDATE snowflake_registry.shards SET ends = now()",
        "DELETE FROM snowflake_registry.shards",
        "TRUNCATE snowflake_registry.identity",
        "UPDATE snowflake_registry.identity SET quiet_until = '-infinity'",
        "CREATE TRIGGER t BEFORE UPDATE ON snowflake_registry.shards EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "CREATE TABLE snowflake_registry.planted ()",
    ] {
        assert_eq!(refused(&mut node, sql).code().code(), "42501", "{sql}");
    }
}

#[test]
fn who_may_see_the_leases_sees_no_serial_nonce_or_incarnation() {
    let (database, mut superuser) = registry();
    run(&mut superuser, CLAIM);
    run(
        &mut superuser,
        "GRANT USAGE ON SCHEMA snowflake_registry TO reader;
         GRANT SELECT ON snowflake_registry.leases TO reader",
    );
    let mut reader = database.connect_as("reader");

    let seen = reader.query_one("SELECT * FROM snowflake_registry.leases", &[]).unwrap();

    let columns: Vec<&str> = seen.columns().iter().map(|column| column.name()).collect();
    assert_eq!(columns, ["shard_id", "node", "starts", "ends", "state", "renewed_at"]);
    assert_eq!((seen.get("node"), seen.get("state")), ("db-1", "held"));
    let change = "UPDATE snowflake_registry.leases SET ends = now()";
    for sql in calls().iter().chain(&tables()).chain(&[change]) {
        assert_eq!(refused(&mut reader, sql).code().code(), "42501", "{sql}");
    }
}

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

    for table in tables() {
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
