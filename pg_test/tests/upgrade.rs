//! Databases created by an older version: the head's library serves them unchanged, `ALTER EXTENSION` updates them to the
//! head while they are in use, and their dumps can be restored there.

mod served;
mod used;

use pg_snowflake_harness::prelude::*;
use pg_snowflake_harness::release::{self, EXTENSIONS, Extension, SNOWFLAKE, rehearsal};
use std::thread;

/// A table with everything that depends on the extension: defaults, a column type, a check, an index, a view, partitions and a function.
const SCHEMA: &str = "
    CREATE TABLE posts (
        id bigint PRIMARY KEY CHECK (snowflake_shard_id(id) = 5),
        public_id snowflake,
        layout snowflake_layout NOT NULL DEFAULT 'twitter');
    CREATE SEQUENCE posts_id_seq OWNED BY posts.id;
    ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);
    CREATE INDEX posts_by_time ON posts (snowflake_created_at(id));
    CREATE VIEW posts_in_full AS SELECT (snowflake_decode(id)).*, snowflake_to_uuid(id) AS uuid FROM posts;
    CREATE TABLE comments (post_id bigint) PARTITION BY HASH (post_id snowflake_shard_ops);
    CREATE TABLE comments_0 PARTITION OF comments FOR VALUES WITH (MODULUS 2, REMAINDER 0);
    CREATE TABLE comments_1 PARTITION OF comments FOR VALUES WITH (MODULUS 2, REMAINDER 1);
    CREATE FUNCTION next_post() RETURNS bigint LANGUAGE sql
        RETURN (SELECT snowflake_nextval('posts_id_seq', 5));
    INSERT INTO posts (public_id) SELECT n FROM generate_series(1, 100) AS n;
    INSERT INTO comments SELECT id FROM posts";

const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

#[test]
fn a_release_is_updated_while_sessions_insert() {
    for version in release::older() {
        let (cluster, mut client) = server_of(&version);
        client.batch_execute(SCHEMA).unwrap();
        let stop = Stop::default();

        let ids = thread::scope(|scope| {
            let writers = [(); 3].map(|()| scope.spawn(|| insert_until(&cluster, &stop)));
            let at_the_end = StopAtEnd(&stop);
            wait_for_more_rows(&mut client, "posts", 100);
            update(&mut client, &SNOWFLAKE);
            wait_for_more_rows(&mut client, "posts", 100);
            drop(at_the_end);
            writers.map(|writer| writer.join().unwrap())
        });

        assert_eq!(version_of(&mut client, &SNOWFLAKE), release::head());
        for ids in &ids {
            assert!(is_increasing(ids), "{version}: {ids:?}");
        }
        let written: usize = ids.iter().map(Vec::len).sum();
        assert_eq!(take_one(&mut client, "SELECT count(*) FROM posts"), 100 + written as i64);
        assert_the_schema_works(&mut client);
    }
}

/// An omission in an upgrade script affects only databases that are updated.
#[test]
fn an_updated_extension_equals_a_new_one() {
    for extension in EXTENSIONS {
        let created = members_of_head(&extension);
        for version in release::older() {
            let (_cluster, mut client) = server_of(&version);

            update(&mut client, &extension);

            let updated = members(&mut client, &extension);
            assert_eq!(updated, created, "left: {version}, updated; right: created anew");
        }
    }
}

#[test]
fn the_comparison_sees_what_an_upgrade_script_omits() {
    let (_cluster, mut client) = server_of(release::REHEARSED);
    for extension in EXTENSIONS {
        let created = members_of_head(&extension);
        let omitted = members(&mut client, &extension);
        let differ = |line: &&String| created.contains(line) != omitted.contains(line);
        let differences: Vec<&String> = created.iter().chain(&omitted).filter(differ).collect();
        for change in rehearsal::changes(&extension) {
            assert!(differences.iter().any(|line| line.contains(change.shows)), "{}: {differences:#?}", change.shows);
        }
    }
}

#[test]
fn a_dump_of_a_release_is_restored_on_the_head_and_ids_go_on_above() {
    for version in release::older() {
        let (source, mut client) = server_of(&version);
        client.batch_execute(SCHEMA).unwrap();
        let last = take_one(&mut client, INSERT);
        let target = Cluster::new();

        let mut restored = target.restored_database("restored", &source.dump("postgres"));

        for extension in EXTENSIONS {
            assert_eq!(version_of(&mut restored, &extension), release::head());
        }
        assert!(take_one(&mut restored, INSERT) > last);
        assert_the_schema_works(&mut restored);
    }
}

/// As after an update with an older library put back. It must not fill a row that it does not know.
#[test]
fn a_row_that_the_sql_declares_with_other_columns_is_refused() {
    let (_database, mut client) = database_with(SCHEMA);
    let sql = "CREATE FUNCTION other_clock(OUT a timestamptz, OUT b timestamptz)
            LANGUAGE c AS 'pg_snowflake', 'snowflake_clock_wrapper';
        CREATE FUNCTION other_calls(pg_node_tree, OUT a oid, OUT b oid) RETURNS SETOF record
            LANGUAGE c AS 'pg_snowflake', 'snowflake_generator_calls_wrapper'";
    run(&mut client, sql);

    for query in ["SELECT * FROM other_clock()", "SELECT other_calls(adbin) FROM pg_attrdef"] {
        let message = "pg_snowflake library is incompatible with the installed extension version";
        let error = assert_refused(&mut client, query, Refusal { sqlstate: "42804", message, hint: "ALTER EXTENSION pg_snowflake UPDATE" });
        let detail = error.detail().unwrap();
        assert!(detail.contains("declared with 2 result columns, but library version"), "{detail}");
    }
}

fn server_of(version: &str) -> (Cluster, Client) {
    let cluster = Cluster::builder().release(version).start();
    let mut client = cluster.connect();
    run(&mut client, &format!("CREATE EXTENSION pg_snowflake_registry VERSION '{version}'"));
    for extension in EXTENSIONS {
        assert_eq!(version_of(&mut client, &extension), version);
    }
    (cluster, client)
}

pub fn update(client: &mut Client, extension: &Extension) {
    run(client, &format!("ALTER EXTENSION {} UPDATE", extension.name));
}

pub fn version_of(client: &mut Client, extension: &Extension) -> String {
    let name = extension.name;
    printed(client, &format!("SELECT extversion FROM pg_extension WHERE extname = '{name}'"))
}

fn members_of_head(extension: &Extension) -> Vec<String> {
    let (_cluster, mut client) = server_of(&release::head());
    members(&mut client, extension)
}

fn insert_until(cluster: &Cluster, stop: &Stop) -> Vec<i64> {
    let mut client = cluster.connect();
    stop.repeat(|| take_one(&mut client, INSERT))
}

fn assert_the_schema_works(client: &mut Client) {
    let rows = take_one(client, "SELECT count(*) FROM posts");
    let id = take_one(client, INSERT);
    assert!(take_one(client, "SELECT next_post()") > id);
    let facts = [
        ("SELECT count(*) FROM posts_in_full WHERE shard_id = 5", rows + 1),
        ("SELECT count(*) FROM posts WHERE layout = 'twitter'", rows + 1),
        ("SELECT count(*) FROM posts WHERE public_id < 51", 50),
        ("SELECT count(*) FROM comments_1", 100),
    ];
    for (query, count) in facts {
        assert_eq!(take(client, query), [count], "{query}");
    }
    let refused = client.batch_execute("INSERT INTO posts (id) VALUES (0)").unwrap_err();
    assert_eq!(refused.code().unwrap().code(), "23514", "{refused:?}");
}

/// Every object of the extension, with its definition, its privileges and its comments, one per line.
pub fn members(client: &mut Client, extension: &Extension) -> Vec<String> {
    let objects = "
        WITH member AS (
            SELECT classid, objid FROM pg_depend
            WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
              AND refobjid = (SELECT oid FROM pg_extension WHERE extname = $1))
        SELECT concat_ws(' | ', pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name),
            CASE classid
                WHEN 'pg_proc'::regclass THEN pg_get_functiondef(objid)
                WHEN 'pg_class'::regclass THEN (
                    SELECT concat_ws(' ', pg_get_viewdef(oid), reloptions, relpersistence) FROM pg_class WHERE oid = objid)
                WHEN 'pg_type'::regclass THEN (
                    SELECT concat_ws(' ', typelem::regtype, typbasetype::regtype, to_jsonb(t)
                        - '{oid,typnamespace,typowner,typarray,typrelid,typelem,typbasetype,typdefaultbin,typacl}'::text[])
                    FROM pg_type AS t WHERE oid = objid)
                WHEN 'pg_operator'::regclass THEN (
                    SELECT concat_ws(' ', oprcode, oprresult::regtype, oprcom::regoperator, oprnegate::regoperator, oprrest, oprjoin,
                        oprcanmerge, oprcanhash) FROM pg_operator WHERE oid = objid)
                WHEN 'pg_cast'::regclass THEN (
                    SELECT concat_ws(' ', castfunc::regprocedure, castcontext, castmethod)
                    FROM pg_cast WHERE oid = objid)
                WHEN 'pg_opclass'::regclass THEN (
                    SELECT concat_ws(' ', opcdefault, opckeytype::regtype, pg_describe_object('pg_opfamily'::regclass, opcfamily, 0))
                    FROM pg_opclass WHERE oid = objid)
            END)
        FROM member
        UNION ALL
        SELECT concat_ws(' | ', pg_describe_object(classid, objid, attnum), attnum, format_type(atttypid, atttypmod), attacl,
            col_description(objid, attnum), attnotnull, pg_get_expr(adbin, adrelid))
        FROM member JOIN pg_attribute ON classid = 'pg_class'::regclass AND objid = attrelid AND attnum > 0
        LEFT JOIN pg_attrdef ON (adrelid, adnum) = (attrelid, attnum)
        UNION ALL
        SELECT concat_ws(' | ', pg_describe_object('pg_constraint'::regclass, k.oid, 0), pg_get_constraintdef(k.oid))
        FROM member JOIN pg_constraint AS k ON classid = 'pg_class'::regclass AND objid = conrelid
        UNION ALL
        SELECT pg_get_indexdef(indexrelid) FROM member JOIN pg_index ON classid = 'pg_class'::regclass AND objid = indrelid
        UNION ALL
        SELECT concat_ws(' | ', tgenabled, pg_get_triggerdef(t.oid))
        FROM member JOIN pg_trigger AS t ON classid = 'pg_class'::regclass AND objid = tgrelid AND NOT tgisinternal
        UNION ALL
        SELECT concat_ws(' | ', 'dumped', unnest(extconfig)::regclass, unnest(extcondition))
        FROM pg_extension WHERE extname = $1
        UNION ALL
        SELECT concat_ws(' | ', pg_describe_object(classid, objid, 0),
            coalesce(proacl::text, relacl::text, typacl::text), initprivs::text)
        FROM member
        LEFT JOIN pg_proc AS p ON classid = 'pg_proc'::regclass AND objid = p.oid
        LEFT JOIN pg_class AS c ON classid = 'pg_class'::regclass AND objid = c.oid
        LEFT JOIN pg_type AS t ON classid = 'pg_type'::regclass AND objid = t.oid
        LEFT JOIN pg_init_privs AS i ON i.classoid = classid AND i.objoid = objid AND i.objsubid = 0
        UNION ALL
        SELECT pg_describe_object('pg_amproc'::regclass, a.oid, 0)
        FROM pg_amproc AS a JOIN member ON classid = 'pg_opfamily'::regclass AND objid = amprocfamily
        UNION ALL
        SELECT pg_describe_object('pg_amop'::regclass, a.oid, 0)
        FROM pg_amop AS a JOIN member ON classid = 'pg_opfamily'::regclass AND objid = amopfamily
        ORDER BY 1";
    client.query(objects, &[&extension.name]).unwrap().iter().map(|row| row.get(0)).collect()
}
