//! The behaviour of a converted column, and of converting it again.

use super::{database, run};
use pg_snowflake_harness::Cluster;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed, server};
use pg_snowflake_harness::id::{first_counter_at, now_ms, split};
use pg_snowflake_harness::sequence::{state, take_one};

const INSERT: &str = "INSERT INTO posts DEFAULT VALUES RETURNING id";

#[test]
fn the_shard_defaults_to_that_of_the_database() {
    for (layout, decoded) in
        [("postgres", "snowflake_shard_id(id)"), ("twitter", "snowflake_shard_id(id, 'twitter')")]
    {
        let cluster = Cluster::builder().setting("pg_snowflake.shard_id", "9").start();
        let mut client = cluster.connect();
        run(&mut client, "CREATE TABLE posts (id serial)");
        run(
            &mut client,
            &format!("SELECT snowflake_convert_column('posts', 'id', layout => '{layout}')"),
        );

        run(
            &mut client,
            "INSERT INTO posts DEFAULT VALUES; SET pg_snowflake.shard_id = 10; INSERT INTO posts DEFAULT VALUES",
        );

        assert_eq!(
            printed(&mut client, &format!("SELECT {decoded} FROM posts ORDER BY id")),
            "9\n10",
            "{layout}"
        );
    }
}

#[test]
fn converted_again_without_a_layout_it_keeps_its_layout() {
    let (_cluster, mut client) = server();
    let own = "time:41 seq:10 shard:12 epoch:2025-01-01 unit:1ms";
    for layout in ["twitter", "instagram", own] {
        run(
            &mut client,
            &format!(
                "DROP TABLE IF EXISTS posts; CREATE TABLE posts (id bigint);
                 SELECT snowflake_convert_column('posts', 'id', 5, '{layout}');
                 SELECT snowflake_convert_column('posts', 'id', 6)"
            ),
        );
        let default = "SELECT shard_id, layout FROM snowflake_columns";
        assert_eq!(printed(&mut client, default), format!("6|{layout}"));
    }

    run(
        &mut client,
        "CREATE FUNCTION layout() RETURNS text IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN ''twitter''; END';
         ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 6, layout()::snowflake_layout)",
    );
    let unknown = Refusal {
        sqlstate: "55000",
        message: "could not determine the layout of the IDs of column id of table public.posts",
        hint: "Pass the layout of the IDs.",
    };
    assert_refused(&mut client, "SELECT snowflake_convert_column('posts', 'id', 7)", unknown);
}

#[test]
fn a_prepared_insert_of_another_session_takes_the_new_default() {
    let (cluster, mut owner) = server();
    run(&mut owner, "CREATE TABLE posts (id serial PRIMARY KEY)");
    let mut writer = cluster.connect();
    run(
        &mut writer,
        "SET plan_cache_mode = force_generic_plan; PREPARE add AS INSERT INTO posts DEFAULT VALUES RETURNING id::bigint",
    );
    assert_eq!(printed(&mut writer, "EXECUTE add"), "1");

    run(&mut owner, "SELECT snowflake_convert_column('posts', 'id', 5)");

    let id: i64 = printed(&mut writer, "EXECUTE add").parse().unwrap();
    assert_eq!(split(id).shard, 5);
}

#[test]
fn a_prepared_statement_that_returned_an_integer_has_to_be_prepared_again() {
    let (cluster, mut owner) = server();
    run(&mut owner, "CREATE TABLE posts (id serial PRIMARY KEY)");
    let mut writer = cluster.connect();
    run(&mut writer, "PREPARE add AS INSERT INTO posts DEFAULT VALUES RETURNING id; EXECUTE add");

    run(&mut owner, "SELECT snowflake_convert_column('posts', 'id', 5)");

    let changed = Refusal { sqlstate: "0A000", message: "cached plan must not change", hint: "" };
    assert_refused(&mut writer, "EXECUTE add", changed);
}

#[test]
fn it_returns_the_sequence_which_keeps_its_name_and_cache() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE a (id serial); ALTER SEQUENCE a_id_seq CACHE 30;
         CREATE TABLE b (id int GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME ids_of_b CACHE 40));
         CREATE TABLE c (id bigint); CREATE SEQUENCE c_id_seq",
    );
    for (table, sequence) in [("a", "a_id_seq|30"), ("b", "ids_of_b|40"), ("c", "c_id_seq1|1")] {
        let convert = format!("SELECT snowflake_convert_column('{table}', 'id', 5)::oid");
        let converted = printed(&mut client, &convert);
        let sql = format!(
            "SELECT seqrelid::regclass, seqcache FROM pg_sequence WHERE seqrelid = {converted}"
        );
        assert_eq!(printed(&mut client, &sql), sequence);
    }
}

#[test]
fn the_sequence_that_replaces_an_identitys_is_like_it() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE ROLE eve; CREATE UNLOGGED TABLE posts (id int GENERATED ALWAYS AS IDENTITY (CACHE 30));
         COMMENT ON SEQUENCE posts_id_seq IS 'it''s the posts'' \\';
         GRANT USAGE ON SEQUENCE posts_id_seq TO eve WITH GRANT OPTION",
    );
    let like = "SELECT relpersistence, relacl, obj_description(oid, 'pg_class'), seqcache
        FROM pg_class JOIN pg_sequence ON oid = seqrelid";
    let before = printed(&mut client, like);

    run(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5)");

    assert_eq!(printed(&mut client, like), before);
}

#[test]
fn a_serials_sequence_is_released_if_the_default_names_another() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE TABLE posts (id bigserial); CREATE SEQUENCE s; ALTER TABLE posts ALTER COLUMN id SET DEFAULT nextval('s');
         SELECT snowflake_convert_column('posts', 'id', 5)",
    );

    assert_eq!(printed(&mut client, "SELECT pg_get_serial_sequence('posts', 'id')"), "public.s");
    run(&mut client, "DROP TABLE posts");
    assert_eq!(
        printed(&mut client, "SELECT relname FROM pg_class WHERE relkind = 'S'"),
        "posts_id_seq"
    );
}

#[test]
fn an_id_of_the_current_tick_is_not_too_high_even_if_the_tick_is_long() {
    let (_cluster, mut client) = server();
    run(&mut client, "CREATE TABLE posts (id bigint)");
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5, 'time:40 shard:13 seq:10 epoch:2020-01-01 unit:1s')";
    for _ in 0..3 {
        run(&mut client, &format!("{convert}; INSERT INTO posts DEFAULT VALUES"));
    }

    assert_eq!(take_one(&mut client, "SELECT count(DISTINCT id) FROM posts"), 3);
}

#[test]
fn converted_again_it_continues_above_in_any_shard_and_layout() {
    let (_cluster, mut client) = server();
    run(&mut client, "CREATE TABLE posts (id bigserial PRIMARY KEY)");
    let mut last = 0;
    for arguments in
        ["9, 'js53'", "9, 'pgedge'", "5, 'pgedge'", "7, 'twitter'", "9, 'postgres'", "5"]
    {
        run(&mut client, &format!("SELECT snowflake_convert_column('posts', 'id', {arguments})"));
        for _ in 0..3 {
            let id = take_one(&mut client, INSERT);
            assert!(id > last, "{arguments}: {id} after {last}");
            last = id;
        }
    }
}

#[test]
fn converted_again_in_its_layout_it_keeps_its_counter() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    for cast in ["bigint", "snowflake", "key"] {
        let name = format!("of_{cast}");
        let mut client = database(&cluster, &name, "CREATE DOMAIN key AS bigint");
        run(
            &mut client,
            &format!(
                "CREATE TABLE posts (id {cast}); SELECT snowflake_convert_column('posts', 'id', 9, 'twitter')"
            ),
        );
        // IDs that are no longer in a row may still exist elsewhere.
        let in_an_hour = (now_ms() + 3_600_000 - 1_288_834_974_657) << 12;
        run(&mut client, &format!("SELECT setval('posts_id_seq', {in_an_hour})"));

        run(&mut client, "SELECT snowflake_convert_column('posts', 'id', 5, 'twitter')");

        assert_eq!(state(&mut client, "posts_id_seq").last_value, in_an_hour, "{cast}");
    }
}

#[test]
fn a_sequence_that_generates_ids_is_not_reset_whoever_calls_it() {
    let cluster = Cluster::new();
    let owned = "CREATE SEQUENCE s;
        CREATE FUNCTION generate() RETURNS bigint LANGUAGE sql AS $$ SELECT snowflake_nextval('s', 5) $$;
        CREATE TABLE posts (id bigint); ALTER SEQUENCE s OWNED BY posts.id; ALTER TABLE posts ALTER COLUMN id";
    let columns = [
        ("wrapper", "SET DEFAULT generate()"),
        ("named", "SET DEFAULT snowflake_nextval(shard_id => 5, seq => 's')"),
        ("coalesced", "SET DEFAULT coalesce(NULL, snowflake_nextval('s', 5))"),
        ("asked_by_a_program", "DROP DEFAULT"),
        (
            "identity",
            "DROP DEFAULT; DROP SEQUENCE s; ALTER TABLE posts ALTER COLUMN id SET NOT NULL,
             ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (SEQUENCE NAME s)",
        ),
    ];
    for (name, column) in columns {
        let mut client = database(&cluster, name, &format!("{owned} {column}"));
        // A busy sequence runs ahead of the clock, here with permission.
        let far_ahead = "SET pg_snowflake.max_lead = '2h'";
        run(&mut client, far_ahead);
        let in_an_hour = first_counter_at(now_ms() + 3_600_000);
        run(&mut client, &format!("SELECT setval('s', {in_an_hour})"));
        let last = take_one(&mut client, "SELECT snowflake_nextval('s', 5)");

        run(
            &mut client,
            "RESET pg_snowflake.max_lead; SELECT snowflake_convert_column('posts', 'id', 5)",
        );

        // Another session, since a session never goes back below what it has taken itself.
        let mut writer = cluster.connect_to("postgres", name);
        run(&mut writer, far_ahead);
        let id = take_one(&mut writer, INSERT);
        assert!(id > last, "{name}: {id} after {last}");
    }
}

#[test]
fn new_ids_are_above_the_old_by_the_counter_not_by_the_clock() {
    let cluster = Cluster::builder().setting("pg_snowflake.max_lead", "2h").start();
    let mut client = cluster.connect();
    let in_an_hour = first_counter_at(now_ms() + 3_600_000) << 12;
    run(
        &mut client,
        &format!("CREATE TABLE posts (id bigint); INSERT INTO posts VALUES ({in_an_hour} | 4095)"),
    );

    run(&mut client, "SELECT snowflake_convert_column('posts', 'id', 0)");

    assert!(take_one(&mut client, INSERT) > take_one(&mut client, "SELECT min(id) FROM posts"));
}

#[test]
fn truncate_restart_identity_restarts_at_the_clock() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE SEQUENCE s START 4000000000000000000;
         CREATE TABLE posts (id bigint DEFAULT nextval('s')); SELECT snowflake_convert_column('posts', 'id', 5);
         TRUNCATE posts RESTART IDENTITY",
    );

    let before = now_ms();
    let id = take_one(&mut client, INSERT);
    assert!((before..=now_ms()).contains(&split(id).unix_ms), "{:?}", split(id));
}

#[test]
fn the_search_path_of_the_caller_does_not_matter() {
    let (_cluster, mut client) = server();
    run(
        &mut client,
        "CREATE SCHEMA trap;
         CREATE FUNCTION trap.max(bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 1 / 0::bigint';
         CREATE FUNCTION trap.snowflake_nextval(regclass, int) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
         CREATE FUNCTION trap.differ(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT true';
         CREATE OPERATOR trap.= (FUNCTION = trap.differ, LEFTARG = int, RIGHTARG = int);
         CREATE TABLE trap.pg_class (); CREATE TABLE trap.posts (id int); CREATE TABLE posts (id serial);
         SET search_path = trap, public, pg_catalog;
         SELECT public.snowflake_convert_column('public.posts', 'id', 5, 'postgres', true)",
    );

    run(&mut client, "RESET search_path");
    assert_eq!(split(take_one(&mut client, INSERT)).shard, 5);
    let text = printed(
        &mut client,
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'posts'::regclass AND contype = 'c'",
    );
    assert_eq!(text, "CHECK ((snowflake_shard_id(id, 'postgres'::snowflake_layout) = 5))");
}

#[test]
fn an_identity_removed_in_the_catalog_is_refused_until_it_is_restored() {
    let (source, mut client) = server();
    // What convert_sequence_to_snowflake() of pgEdge's extension does to an identity column.
    run(
        &mut client,
        "CREATE TABLE posts (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
         UPDATE pg_attribute SET attidentity = '' WHERE attrelid = 'posts'::regclass AND attname = 'id';
         ALTER TABLE posts ALTER COLUMN id SET DEFAULT nextval('posts_id_seq')",
    );
    let convert = "SELECT snowflake_convert_column('posts', 'id', 5, 'pgedge')";
    let half = Refusal {
        sqlstate: "55000",
        message: "belongs to an identity column",
        hint: "docs/migrate.md",
    };
    assert_refused(&mut client, convert, half);

    run(
        &mut client,
        "ALTER TABLE posts ALTER COLUMN id DROP DEFAULT;
         UPDATE pg_attribute SET attidentity = 'd' WHERE attrelid = 'posts'::regclass AND attname = 'id'",
    );
    run(&mut client, convert);

    let target = Cluster::new();
    let mut restored = target.restored_database("restored", &source.dump("postgres"));
    let id = take_one(&mut restored, INSERT);
    assert_eq!(printed(&mut client, &format!("SELECT snowflake_shard_id({id}, 'pgedge')")), "5");
}

#[test]
fn names_in_another_encoding_are_preserved() {
    let cluster = Cluster::new();
    let latin1 = "CREATE DATABASE latin1 TEMPLATE template0 ENCODING LATIN1 LOCALE 'C'";
    run(&mut cluster.connect(), latin1);
    let mut client = cluster.connect_to("postgres", "latin1");
    run(
        &mut client,
        "CREATE EXTENSION pg_snowflake;
         CREATE SCHEMA größe; CREATE TABLE größe.bücher (größe int, körper text CONSTRAINT prüfung CHECK (körper <> ''));
         CREATE TABLE größe.éditions (\"É\" serial PRIMARY KEY); CREATE TABLE prêts (édition int REFERENCES größe.éditions);
         SELECT snowflake_convert_column('größe.bücher', 'größe', 5, check_shard => true);
         SELECT snowflake_convert_column('größe.éditions', 'É', 5);
         ALTER TABLE größe.éditions ADD CONSTRAINT étroit CHECK (\"É\" < 7)",
    );

    let sequences = "SELECT seqrelid::regclass FROM pg_sequence ORDER BY 1::text COLLATE \"C\"";
    assert_eq!(
        printed(&mut client, sequences),
        "\"größe\".\"bücher_größe_seq\"\n\"größe\".\"éditions_É_seq\""
    );
    let id =
        take_one(&mut client, "INSERT INTO größe.bücher (körper) VALUES ('x') RETURNING größe");
    assert_eq!(split(id).shard, 5);
    let refusal = Refusal {
        sqlstate: "55000",
        message: "violate constraint \"?troit\" of table",
        hint: "DROP CONSTRAINT",
    };
    assert_refused(
        &mut client,
        "SELECT snowflake_convert_column('größe.éditions', 'É', 5)",
        refusal,
    );
}
