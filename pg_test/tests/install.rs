//! The extension can be installed in any schema by every role with the privilege, and is documented.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::ask::{database, database_with_sequence, printed};
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::{take, take_one};

#[test]
fn it_works_in_any_schema_whatever_the_search_path() {
    let database = Database::empty();
    let mut client = database.connect();
    // The functions and operators in the last schema would catch unqualified calls of the extension.
    client
        .batch_execute(
            r#"CREATE SCHEMA "My Extensions";
               CREATE EXTENSION pg_snowflake SCHEMA "My Extensions";
               CREATE SEQUENCE s;
               CREATE SCHEMA trap;
               CREATE FUNCTION trap.nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint';
               CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS 'SELECT NULL::timestamptz';
               CREATE FUNCTION trap.shift(bigint, int) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint';
               CREATE OPERATOR trap.<< (FUNCTION = trap.shift, LEFTARG = bigint, RIGHTARG = int);
               CREATE OPERATOR trap.>> (FUNCTION = trap.shift, LEFTARG = bigint, RIGHTARG = int)"#,
        )
        .unwrap();
    for search_path in ["''", "public", "pg_catalog", "trap, pg_catalog", "\"My Extensions\""] {
        client
            .batch_execute(&format!(
                "SET search_path = {search_path}; SET pg_snowflake.shard_id = 6"
            ))
            .unwrap();
        let id =
            take_one(&mut client, r#"SELECT "My Extensions".snowflake_nextval('public.s', 5)"#);
        let by_setting =
            take_one(&mut client, r#"SELECT "My Extensions".snowflake_nextval('public.s')"#);
        let row = client
            .query_one(
                r#"SELECT (d).shard_id, (d).seq, "My Extensions".snowflake_shard_id($1)
                   FROM (SELECT "My Extensions".snowflake_decode($1) AS d) AS decoded"#,
                &[&id],
            )
            .unwrap();
        let seq: i32 = split(id).seq.try_into().unwrap();
        assert_eq!((row.get(0), row.get(1), row.get(2)), (5, seq, 5), "search_path {search_path}");
        assert_eq!(split(by_setting).shard, 6, "search_path {search_path}");
    }
}

#[test]
fn it_moves_to_another_schema_and_defaults_follow() {
    let (_database, mut client) = database();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5));
             CREATE SCHEMA elsewhere;
             ALTER EXTENSION pg_snowflake SET SCHEMA elsewhere;
             INSERT INTO posts DEFAULT VALUES",
        )
        .unwrap();

    assert_eq!(take(&mut client, "SELECT id FROM posts").len(), 1);
}

#[test]
fn an_ordinary_owner_of_the_database_creates_it() {
    let database = Database::empty();
    let give = format!("ALTER DATABASE {} OWNER TO owner", database.name());
    database.connect().batch_execute(&give).unwrap();
    let mut owner = database.connect_as("owner");

    owner.batch_execute("CREATE EXTENSION pg_snowflake; CREATE SEQUENCE s").unwrap();

    assert_eq!(take(&mut owner, "SELECT snowflake_nextval('s', 5)").len(), 1);
}

/// Only the registry of leases has tables, and is another extension.
#[test]
fn it_creates_no_table_and_no_function_of_its_owners_rights() {
    let database = Database::new();
    let privileged = "
        SELECT pg_describe_object(classid, objid, 0) FROM pg_depend AS d
        JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
        LEFT JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
        LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
        WHERE extname = 'pg_snowflake' AND deptype = 'e' AND (relkind <> 'v' OR prosecdef)";
    assert_eq!(printed(&mut database.connect(), privileged), "");
}

#[test]
fn each_function_has_the_right_volatility_parallel_safety_and_strictness() {
    let database = Database::new();
    let mut client = database.connect();
    client.batch_execute("CREATE EXTENSION pg_snowflake_registry").unwrap();
    let rows = client
        .query(
            "SELECT p.oid::regprocedure::text, provolatile::text || proparallel::text || proisstrict::text \
             FROM pg_proc AS p \
             JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e' \
             JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid \
             WHERE extname IN ('pg_snowflake', 'pg_snowflake_registry') ORDER BY 1",
            &[],
        )
        .unwrap();
    let found: Vec<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();

    // Volatile or immutable or stable, parallel unsafe or safe, strict.
    let expected = [
        ("_snowflake_citus_error(regclass,regclass,integer,boolean)", "ssfalse"),
        ("_snowflake_generator_calls(pg_node_tree)", "vutrue"),
        (
            "_snowflake_layout_error(regclass,name,snowflake_layout,timestamp with time zone)",
            "srfalse",
        ),
        ("_snowflake_presets()", "sstrue"),
        ("_snowflake_replaced_default_error(regclass,pg_node_tree,boolean)", "vufalse"),
        ("_snowflake_shard_hash(bigint,bigint)", "istrue"),
        ("_snowflake_shard_hash(integer,bigint)", "istrue"),
        ("_snowflake_shard_hash_instagram(bigint,bigint)", "istrue"),
        ("_snowflake_shard_hash_instagram(integer,bigint)", "istrue"),
        ("_snowflake_shard_hash_js53(bigint,bigint)", "istrue"),
        ("_snowflake_shard_hash_js53(integer,bigint)", "istrue"),
        ("_snowflake_shard_hash_sonyflake(bigint,bigint)", "istrue"),
        ("_snowflake_shard_hash_sonyflake(integer,bigint)", "istrue"),
        ("_snowflake_shard_hash_twitter(bigint,bigint)", "istrue"),
        ("_snowflake_shard_hash_twitter(integer,bigint)", "istrue"),
        ("snowflake(integer)", "istrue"),
        ("snowflake(smallint)", "istrue"),
        (
            "snowflake_between(bigint,timestamp with time zone,timestamp with time zone,snowflake_layout)",
            "isfalse",
        ),
        ("snowflake_citus_ranges(regclass)", "sutrue"),
        ("snowflake_clock()", "vutrue"),
        ("snowflake_convert_column(regclass,name,integer,snowflake_layout,boolean)", "vufalse"),
        ("snowflake_create_partitions(regclass,interval,integer,snowflake_layout)", "vufalse"),
        ("snowflake_created_at(bigint,snowflake_layout)", "istrue"),
        ("snowflake_current_shard()", "srtrue"),
        ("snowflake_currval(regclass)", "vutrue"),
        ("snowflake_decode(bigint,snowflake_layout)", "istrue"),
        ("snowflake_drop_partitions(regclass,interval,boolean,snowflake_layout)", "vufalse"),
        ("snowflake_encode(timestamp with time zone,integer,integer,snowflake_layout)", "istrue"),
        ("snowflake_explain(bigint)", "sstrue"),
        ("snowflake_explain(bigint,snowflake_layout)", "istrue"),
        ("snowflake_find_layout(bigint[],timestamp with time zone[])", "sstrue"),
        ("snowflake_find_layout(regclass,name,name)", "sutrue"),
        ("snowflake_from_base32(text)", "istrue"),
        ("snowflake_from_uuid(uuid,snowflake_layout)", "istrue"),
        ("snowflake_in(cstring)", "istrue"),
        ("snowflake_layout_eq(snowflake_layout,snowflake_layout)", "istrue"),
        ("snowflake_layout_hash(snowflake_layout)", "istrue"),
        ("snowflake_layout_in(cstring)", "sstrue"),
        ("snowflake_layout_info(snowflake_layout)", "istrue"),
        ("snowflake_layout_ne(snowflake_layout,snowflake_layout)", "istrue"),
        ("snowflake_layout_out(snowflake_layout)", "istrue"),
        ("snowflake_layout_recv(internal)", "istrue"),
        ("snowflake_layout_send(snowflake_layout)", "istrue"),
        ("snowflake_lease_mode()", "vstrue"),
        ("snowflake_lease_status()", "vstrue"),
        ("snowflake_locate(regclass,bigint,snowflake_layout)", "sstrue"),
        ("snowflake_min_id(timestamp with time zone,snowflake_layout)", "istrue"),
        ("snowflake_nextval(regclass)", "vutrue"),
        ("snowflake_nextval(regclass,integer,snowflake_layout)", "vutrue"),
        ("snowflake_nextval_homed(regclass,integer,integer,integer,snowflake_layout)", "vutrue"),
        (
            "snowflake_nextval_homed_in_ranges(regclass,integer,int8multirange,snowflake_layout)",
            "vutrue",
        ),
        ("snowflake_nextvals(regclass,integer)", "vutrue"),
        ("snowflake_nextvals(regclass,integer,integer,snowflake_layout)", "vutrue"),
        (
            "snowflake_nextvals_homed(regclass,integer,integer,integer,integer,snowflake_layout)",
            "vutrue",
        ),
        (
            "snowflake_nextvals_homed_in_ranges(regclass,integer,int8multirange,integer,snowflake_layout)",
            "vutrue",
        ),
        ("snowflake_out(snowflake)", "istrue"),
        ("snowflake_recv(internal)", "istrue"),
        (
            "snowflake_registry.claim(integer[],text,uuid,bigint[],uuid,timestamp with time zone,interval,integer[],bigint[],timestamp with time zone)",
            "vufalse",
        ),
        ("snowflake_registry.end_quiet_time()", "vufalse"),
        ("snowflake_registry.id()", "ssfalse"),
        ("snowflake_registry.is_own_change()", "vutrue"),
        ("snowflake_registry.refuse_change()", "vufalse"),
        (
            "snowflake_registry.release(uuid,integer[],bigint[],timestamp with time zone,boolean)",
            "vufalse",
        ),
        ("snowflake_registry.retire(text)", "vufalse"),
        ("snowflake_registry.take_over(integer,text)", "vufalse"),
        ("snowflake_send(snowflake)", "istrue"),
        ("snowflake_seq(bigint,snowflake_layout)", "istrue"),
        ("snowflake_sequence_status(regclass,snowflake_layout)", "vutrue"),
        ("snowflake_shard_id(bigint,snowflake_layout)", "istrue"),
        ("snowflake_to_base32(bigint)", "istrue"),
        ("snowflake_to_uuid(bigint,snowflake_layout)", "istrue"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn everything_that_a_user_can_see_has_a_comment() {
    let database = Database::new();
    let uncommented = "
        SELECT pg_describe_object(classid, objid, 0)
        FROM pg_depend AS d, pg_extension AS e
        WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass AND refobjid = e.oid
          AND extname IN ('pg_snowflake', 'pg_snowflake_registry')
          -- From 17 on the array type of a type and the row type of a view count as the extension's too. The server
          -- makes them along with the type and the view, where the comment is.
          AND NOT EXISTS (
              SELECT FROM pg_depend AS internal
              WHERE internal.classid = d.classid AND internal.objid = d.objid
                AND internal.deptype = 'i')
          AND obj_description(objid, classid::regclass::name) IS NULL
        UNION ALL
        SELECT extname FROM pg_extension AS e
        WHERE extname IN ('pg_snowflake', 'pg_snowflake_registry') AND obj_description(oid, 'pg_extension') IS NULL
        UNION ALL
        SELECT 'setting ' || name FROM pg_settings
        WHERE name LIKE 'pg\\_snowflake.%' AND coalesce(short_desc, '') = ''";
    let mut client = database.connect();
    let load = "SELECT snowflake_decode(0); CREATE EXTENSION pg_snowflake_registry";
    client.batch_execute(load).unwrap();

    let rows = client.query(uncommented, &[]).unwrap();

    let objects: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    assert!(objects.is_empty(), "{objects:?}");
}

#[test]
fn created_anew_it_goes_on_above() {
    let (_database, mut client) = database_with_sequence();
    let before = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");

    client.batch_execute("DROP EXTENSION pg_snowflake; CREATE EXTENSION pg_snowflake").unwrap();

    assert!(take_one(&mut client, "SELECT snowflake_nextval('s', 5)") > before);
}
