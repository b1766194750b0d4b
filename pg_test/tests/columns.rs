//! The view `snowflake_columns`: which columns it shows, with which shard, and to which roles.

use pg_snowflake_harness::SUPERUSER;
use pg_snowflake_harness::ask::{printed, server, server_with_sequence};
use postgres::Client;
use postgres::error::SqlState;

/// The columns of the view without the state of the sequence.
const CALL: &str = "SELECT table_name, column_name, sequence, shard_id, uses_current_shard, layout FROM snowflake_columns \
                    ORDER BY table_name::text, column_name, shard_id";

/// The sequence, the shard, whether it is from the setting, and the layout that are shown for a default.
fn shown(client: &mut Client, default: &str) -> String {
    client
        .batch_execute(&format!(
            "DROP TABLE IF EXISTS posts; CREATE TABLE posts (id text DEFAULT {default})"
        ))
        .unwrap_or_else(|error| panic!("{default}: {error:?}"));
    printed(client, "SELECT sequence, shard_id, uses_current_shard, layout FROM snowflake_columns")
}

#[test]
fn a_call_is_found_however_its_default_is_written() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SCHEMA blog; CREATE SEQUENCE s; CREATE SEQUENCE \"S\"; CREATE SEQUENCE blog.s;
             SET pg_snowflake.shard_id = 77",
        )
        .unwrap();
    for (default, call) in [
        ("snowflake_nextval('s', 5)", "s|5|f|postgres"),
        ("snowflake_nextval('\"S\"', 5, 'twitter')", "\"S\"|5|f|twitter"),
        ("snowflake_nextval('blog.s', 5, 'postgres')", "blog.s|5|f|postgres"),
        ("public.snowflake_nextval('s'::regclass, 5)", "s|5|f|postgres"),
        ("snowflake_nextval(seq => 's', layout => 'js53', shard_id => 5)", "s|5|f|js53"),
        ("snowflake_nextval(shard_id => 5, seq => 's')", "s|5|f|postgres"),
        (
            "snowflake_nextval('s', 5, 'time:41 shard:3 seq:10 epoch:2024-01-01 unit:1ms')",
            "s|5|f|time:41 shard:3 seq:10 epoch:2024-01-01 unit:1ms",
        ),
        ("'cus_' || snowflake_to_base32(snowflake_nextval('s', 5))", "s|5|f|postgres"),
        ("CASE WHEN true THEN coalesce(snowflake_nextval('s', 5), 1) END", "s|5|f|postgres"),
        ("(ARRAY[snowflake_nextval('s', 5)])[1]", "s|5|f|postgres"),
        ("snowflake_nextval('s', 3::smallint)", "s|3|f|postgres"),
        ("snowflake_nextval('s', 3::bigint::int)", "s|3|f|postgres"),
        ("snowflake_nextval('s', -1)", "s|-1|f|postgres"),
        // The setting.
        ("snowflake_nextval('s')", "s|77|t|postgres"),
        ("snowflake_nextval('s', snowflake_current_shard())", "s|77|t|postgres"),
        ("snowflake_nextval('s', snowflake_current_shard(), 'twitter')", "s|77|t|twitter"),
        // Values that only an evaluation would show.
        ("snowflake_nextval('s', 2 + 3)", "s||f|postgres"),
        ("snowflake_nextval('s', snowflake_shard_id(42))", "s||f|postgres"),
        ("snowflake_nextval('s', NULL)", "s||f|postgres"),
        ("snowflake_nextval('s', 70000::int::smallint)", "s||f|postgres"),
        // A name that the call looks up.
        ("snowflake_nextval('s'::text::regclass, 5)", "s|5|f|postgres"),
        ("snowflake_nextval('s'::varchar::regclass, 5)", "s|5|f|postgres"),
        ("snowflake_nextval('PUBLIC. S'::text::regclass, 5)", "s|5|f|postgres"),
        ("snowflake_nextval('postgres.public.\"S\"'::text::regclass, 5)", "\"S\"|5|f|postgres"),
        ("snowflake_nextval('other.public.s'::text::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval('public.\"s'::text::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval(''::text::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval('missing'::text::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval('nowhere.s'::text::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval(lower('S')::regclass, 5)", "|5|f|postgres"),
        ("snowflake_nextval('s', 5, 'twitter'::text::snowflake_layout)", "s|5|f|"),
        // Two calls are two rows.
        (
            "snowflake_nextval('s', 5) || '-' || snowflake_nextval('\"S\"', 6)",
            "s|5|f|postgres\n\"S\"|6|f|postgres",
        ),
        // Defaults that generate no IDs.
        ("'snowflake_nextval(''s'', 5)'", ""),
        ("nextval('s')", ""),
        ("snowflake_currval('s')", ""),
        ("snowflake_current_shard()", ""),
    ] {
        assert_eq!(shown(&mut client, default), call, "{default}");
    }
}

#[test]
fn no_part_of_a_default_is_evaluated() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE called ();
             CREATE FUNCTION trap() RETURNS int LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN DROP TABLE called; RETURN 5; END $$",
        )
        .unwrap();
    assert_eq!(shown(&mut client, "snowflake_nextval('s', trap())"), "s||f|postgres");
    assert_eq!(shown(&mut client, "snowflake_nextval('s', 1 / 0)"), "s||f|postgres");
    client.batch_execute("SELECT FROM called").unwrap();
}

#[test]
fn a_function_of_the_same_name_elsewhere_is_not_ours() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE SCHEMA other;
             CREATE FUNCTION other.snowflake_nextval(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
        )
        .unwrap();
    assert_eq!(shown(&mut client, "other.snowflake_nextval('s')"), "");
    assert_eq!(
        shown(&mut client, "other.snowflake_nextval('s') + public.snowflake_nextval('s', 6)"),
        "s|6|f|postgres"
    );
}

/// Its arguments can be of any type, whose bits would be shown.
#[test]
fn an_overload_added_to_the_extension_by_its_owner_is_not_ours() {
    let (cluster, mut superuser) = server();
    superuser
        .batch_execute("DROP EXTENSION pg_snowflake; CREATE ROLE owner LOGIN; GRANT CREATE ON DATABASE postgres TO owner; GRANT CREATE ON SCHEMA public TO owner")
        .unwrap();
    cluster
        .connect_to("owner", "postgres")
        .batch_execute(
            "CREATE EXTENSION pg_snowflake;
             CREATE FUNCTION snowflake_nextval(text) RETURNS bigint LANGUAGE sql RETURN 1;
             CREATE FUNCTION snowflake_nextval(text, int, text) RETURNS bigint LANGUAGE sql RETURN 1;
             ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text);
             ALTER EXTENSION pg_snowflake ADD FUNCTION snowflake_nextval(text, int, text)",
        )
        .unwrap();
    superuser.batch_execute("CREATE SEQUENCE s").unwrap();
    assert_eq!(
        shown(
            &mut superuser,
            "snowflake_nextval('s'::regclass, 6) + snowflake_nextval('s'::text) + snowflake_nextval('s'::text, 5, 'x'::text)"
        ),
        "s|6|f|postgres"
    );
}

#[test]
fn it_follows_the_extension_to_another_schema() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5));
             CREATE SCHEMA elsewhere; ALTER EXTENSION pg_snowflake SET SCHEMA elsewhere; SET search_path = ''",
        )
        .unwrap();
    assert_eq!(
        printed(
            &mut client,
            "SELECT table_name, function, sequence, layout FROM elsewhere.snowflake_columns"
        ),
        "public.posts|elsewhere.snowflake_nextval(regclass,integer,elsewhere.snowflake_layout)|public.s|postgres"
    );
}

#[test]
fn every_kind_of_relation_with_a_default_is_listed() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE TABLE parted (id bigint DEFAULT snowflake_nextval('s', 1)) PARTITION BY LIST (id);
             CREATE TABLE parted_rest PARTITION OF parted DEFAULT;
             CREATE FOREIGN DATA WRAPPER w; CREATE SERVER far FOREIGN DATA WRAPPER w;
             CREATE FOREIGN TABLE foreign_posts (id bigint DEFAULT snowflake_nextval('s', 2)) SERVER far;
             CREATE TABLE plain (id bigint); CREATE VIEW shown AS SELECT * FROM plain;
             ALTER VIEW shown ALTER id SET DEFAULT snowflake_nextval('s', 3);
             CREATE TEMPORARY TABLE mine (id bigint DEFAULT snowflake_nextval('s', 4))",
        )
        .unwrap();
    assert_eq!(
        printed(&mut client, CALL),
        "foreign_posts|id|s|2|f|postgres\n\
         mine|id|s|4|f|postgres\n\
         parted|id|s|1|f|postgres\n\
         parted_rest|id|s|1|f|postgres\n\
         shown|id|s|3|f|postgres"
    );
}

#[test]
fn a_domains_default_counts_if_the_column_has_no_default() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             CREATE DOMAIN post_id AS snowflake DEFAULT snowflake_nextval('s', 5);
             CREATE DOMAIN special_id AS post_id;
             CREATE TABLE posts (id post_id, special special_id, other post_id DEFAULT 7,
                 empty post_id DEFAULT NULL, dropped post_id, ids post_id[]);
             ALTER TABLE posts DROP dropped;
             CREATE VIEW recent AS SELECT * FROM posts;
             CREATE TYPE pair AS (a post_id);
             INSERT INTO posts DEFAULT VALUES",
        )
        .unwrap();
    assert_eq!(printed(&mut client, CALL), "posts|id|s|5|f|postgres\nposts|special|s|5|f|postgres");
    // The same as the server itself did.
    assert_eq!(
        printed(&mut client, "SELECT id > 7, special > 7, other, empty FROM posts"),
        "t|t|7|"
    );

    client.batch_execute("ALTER DOMAIN post_id DROP DEFAULT").unwrap();
    assert_eq!(printed(&mut client, CALL), "posts|special|s|5|f|postgres");
}

#[test]
fn a_dropped_default_is_not_listed() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE posts (a bigint DEFAULT snowflake_nextval('s', 5),
                 b bigint DEFAULT snowflake_nextval('s', 5));
             ALTER TABLE posts DROP a, ALTER b DROP DEFAULT",
        )
        .unwrap();
    assert_eq!(printed(&mut client, CALL), "");
}

#[test]
fn each_column_shows_where_its_sequence_stands() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5, 'twitter'));
             INSERT INTO posts DEFAULT VALUES",
        )
        .unwrap();
    let same = "SELECT c.last_id_at = s.last_id_at, c.last_id_at = snowflake_created_at(id, 'twitter'), c.lead, s.lead,
                    s.ids_left > 0, abs(c.ids_left - s.ids_left) < 4096 * 600000::bigint, c.ends_at = s.ends_at, c.error, s.error
                FROM posts, snowflake_columns AS c, snowflake_sequence_status('s', 'twitter') AS s";
    client.batch_execute("SELECT pg_sleep(0.1)").unwrap();
    // The two read the clock one after the other, well within ten minutes.
    assert_eq!(printed(&mut client, same), "t|t|00:00:00|00:00:00|t|t|t||");
}

#[test]
fn the_error_is_the_one_that_an_insert_raises() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE SEQUENCE small AS int; CREATE TABLE not_one ();
             CREATE SEQUENCE low MAXVALUE 1000;
             SET pg_snowflake.owned_shards = '5, 128, 9000'",
        )
        .unwrap();
    for default in [
        "snowflake_nextval('low', 5)",
        "snowflake_nextval('s', 6)",
        "snowflake_nextval('s', 8192)",
        "snowflake_nextval('s', 128, 'js53')",
        "snowflake_nextval('s')",
        "snowflake_nextval('small', 5)",
        "snowflake_nextval('not_one', 5)",
        "snowflake_nextval(99999::oid, 5)",
        "snowflake_nextval('small', 9000)",
    ] {
        shown(&mut client, default);
        let error = client.batch_execute("INSERT INTO posts DEFAULT VALUES").unwrap_err();
        let error = error.as_db_error().unwrap();
        let refusal = [Some(error.message()), error.detail()].into_iter().flatten();
        assert_eq!(
            without_counter(&printed(&mut client, "SELECT error FROM snowflake_columns")),
            without_counter(&refusal.collect::<Vec<_>>().join(": ")),
            "{default}"
        );
    }
}

/// The text without the next counter, which is a time.
fn without_counter(text: &str) -> &str {
    text.split_once(" below the next counter").map_or(text, |(before, _)| before)
}

#[test]
fn a_fence_is_an_error_for_every_shard() {
    let (_cluster, mut client) = server();
    client
        .batch_execute("CREATE SEQUENCE s; SET pg_snowflake.allowed_hosts = 'elsewhere'")
        .unwrap();
    for default in ["snowflake_nextval('s', 5)", "snowflake_nextval('s', 2 + 3)"] {
        shown(&mut client, default);
        let error = printed(&mut client, "SELECT error FROM snowflake_columns");
        assert!(error.contains("is not allowed to generate IDs"), "{default}: {error}");
    }
    let error = printed(&mut client, "SELECT error FROM snowflake_sequence_status('s')");
    assert!(error.contains("is not allowed to generate IDs"), "{error}");
}

#[test]
fn the_setting_is_that_of_this_session() {
    let (_cluster, mut client) = server_with_sequence();
    assert_eq!(shown(&mut client, "snowflake_nextval('s')"), "s||t|postgres");
    client.batch_execute("SET pg_snowflake.shard_id = 6").unwrap();
    assert_eq!(printed(&mut client, "SELECT shard_id, error FROM snowflake_columns"), "6|");
}

#[test]
fn an_ordinary_user_sees_all_columns_and_the_sequences_that_core_shows() {
    let (cluster, mut owner) = server();
    owner
        .batch_execute(
            "CREATE ROLE reader LOGIN; CREATE SCHEMA secret;
             CREATE SEQUENCE secret.closed; CREATE SEQUENCE open; GRANT SELECT ON SEQUENCE open TO reader;
             CREATE SEQUENCE usable; GRANT USAGE ON SEQUENCE usable TO reader;
             CREATE SEQUENCE writable; GRANT UPDATE ON SEQUENCE writable TO reader;
             CREATE SEQUENCE secret.unfit AS int;
             CREATE TABLE secret.posts (
                 closed bigint DEFAULT snowflake_nextval('secret.closed', 5),
                 open bigint DEFAULT snowflake_nextval('open', 5),
                 unfit bigint DEFAULT snowflake_nextval('secret.unfit', 5),
                 usable bigint DEFAULT snowflake_nextval('usable', 5),
                 writable bigint DEFAULT snowflake_nextval('writable', 5));
             SELECT snowflake_nextval('open', 5), snowflake_nextval('secret.closed', 5),
                    snowflake_nextval('usable', 5), snowflake_nextval('writable', 5)",
        )
        .unwrap();
    let mut reader = cluster.connect_to("reader", SUPERUSER);
    assert_eq!(
        printed(
            &mut reader,
            "SELECT column_name, shard_id, last_id_at IS NOT NULL, lead IS NOT NULL, ids_left IS NOT NULL, error
             FROM snowflake_columns ORDER BY column_name"
        ),
        "closed|5|f|f|f|\nopen|5|t|t|t|\nunfit|5|f|f|f|\nusable|5|t|t|t|\nwritable|5|f|f|f|"
    );
    // As in core's own view.
    assert_eq!(
        printed(
            &mut reader,
            "SELECT sequencename FROM pg_sequences WHERE last_value IS NOT NULL ORDER BY 1"
        ),
        "open\nusable"
    );
}

#[test]
fn temporary_tables_of_other_sessions_never_make_it_fail() {
    let (cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE TEMPORARY SEQUENCE t;
             CREATE TEMPORARY TABLE mine (id bigint DEFAULT snowflake_nextval('t', 5));
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('t', 5));
             INSERT INTO posts DEFAULT VALUES",
        )
        .unwrap();
    let seen = "SELECT table_name, last_id_at IS NOT NULL FROM snowflake_columns ORDER BY 1";
    assert_eq!(printed(&mut client, seen), "mine|t\nposts|t");
    assert_eq!(printed(&mut cluster.connect(), seen), "posts|f");
}

#[test]
fn a_standby_and_a_read_only_transaction_show_it() {
    let (primary, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE UNLOGGED SEQUENCE u;
             CREATE TABLE posts (a bigint DEFAULT snowflake_nextval('s', 5), b bigint DEFAULT snowflake_nextval('u', 5));
             INSERT INTO posts DEFAULT VALUES",
        )
        .unwrap();
    let seen = "SELECT column_name, last_id_at IS NOT NULL FROM snowflake_columns ORDER BY 1";
    let standby = primary.standby();
    assert_eq!(printed(&mut standby.connect(), seen), "a|t\nb|f");
    client.batch_execute("BEGIN READ ONLY").unwrap();
    assert_eq!(printed(&mut client, seen), "a|t\nb|t");
}

#[test]
fn a_dump_has_neither_the_view_nor_its_function() {
    let (cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s; CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 5))",
        )
        .unwrap();
    let dump = cluster.dump(SUPERUSER);
    assert!(!dump.contains("snowflake_columns") && !dump.contains("_snowflake_generator_calls"));

    let mut restored = cluster.restored_database("restored", &dump);
    assert_eq!(
        printed(
            &mut restored,
            "SELECT table_name, sequence, shard_id FROM public.snowflake_columns"
        ),
        "posts|s|5"
    );
}

/// A default with this many casts around its shard.
fn nested(casts: usize) -> String {
    format!("snowflake_nextval('s', 5{})", "::bigint::int".repeat(casts / 2))
}

#[test]
fn a_too_deeply_nested_default_has_a_row_with_the_error() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE SEQUENCE s; CREATE TABLE deep (id bigint DEFAULT {});
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 6))",
            nested(2000)
        ))
        .unwrap();
    let seen = "SELECT c.* FROM snowflake_columns AS c ORDER BY table_name::text";
    let whole = printed(
        &mut client,
        "SELECT table_name, shard_id, error FROM snowflake_columns ORDER BY table_name::text",
    );
    assert_eq!(whole, "deep|5|\nposts|6|");

    client.batch_execute("SET max_stack_depth = '200kB'").unwrap();
    let seen = printed(&mut client, seen);
    let (deep, posts) = seen.split_once('\n').unwrap();
    assert_eq!(
        deep,
        "deep|id||||||||||default is nested too deeply to read: Simplify it, or raise max_stack_depth."
    );
    assert!(
        posts.starts_with("posts|id|snowflake_nextval(regclass,integer,snowflake_layout)|s|6|"),
        "{posts}"
    );
    // The session continues, in the same transaction.
    client
        .batch_execute(
            "BEGIN; SELECT FROM snowflake_columns; SELECT FROM snowflake_columns; COMMIT",
        )
        .unwrap();
}

#[test]
fn whatever_default_the_server_accepts_has_a_row() {
    let (_cluster, mut client) = server_with_sequence();
    let mut accepted = 0;
    for casts in (500..).step_by(500) {
        let create = format!("CREATE TABLE t{casts} (id bigint DEFAULT {})", nested(casts));
        match client.batch_execute(&create) {
            Ok(()) => accepted += 1,
            Err(error) => {
                assert_eq!(error.code(), Some(&SqlState::STATEMENT_TOO_COMPLEX), "{casts}");
                break;
            }
        }
    }
    let rows = "SELECT count(DISTINCT table_name), count(*) FROM snowflake_columns WHERE (shard_id IS NOT NULL) <> (error IS NOT NULL)";
    assert_eq!(printed(&mut client, rows), format!("{accepted}|{accepted}"));
}

#[test]
fn a_too_long_default_has_a_row_with_the_error() {
    let (_cluster, mut client) = server();
    client
        .batch_execute(
            "CREATE SEQUENCE s;
             DO $$ BEGIN EXECUTE format('CREATE TABLE long (id bigint DEFAULT snowflake_nextval(''s'', length(%L)))',
                 repeat('x', 300000)); END $$;
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('s', 6))",
        )
        .unwrap();
    let seen = "SELECT table_name, column_name, sequence, shard_id, left(error, 30), right(error, 24) FROM snowflake_columns \
                ORDER BY table_name::text";
    assert_eq!(
        printed(&mut client, seen),
        "long|id|||default is too long to read: I|s; the limit is 1048576.\nposts|id|s|6||"
    );
}

/// Opening a view reads its query.
#[test]
fn a_default_that_names_a_deep_view_as_its_sequence_has_a_row() {
    let (cluster, mut client) = server();
    client
        .batch_execute(&format!(
            "CREATE VIEW deep AS SELECT 5{} AS id;
             CREATE TABLE posts (id bigint DEFAULT snowflake_nextval('deep', 5))",
            "::bigint::int".repeat(1000)
        ))
        .unwrap();
    let mut client = cluster.connect();
    client.batch_execute("SET max_stack_depth = '200kB'").unwrap();
    let seen = "SELECT table_name, sequence, shard_id, error FROM snowflake_columns";
    assert_eq!(printed(&mut client, seen), "posts|deep|5|\"deep\" is not a sequence");
}

#[test]
fn a_locked_sequence_does_not_block_the_view() {
    let (cluster, mut owner) = server();
    owner
        .batch_execute(
            "CREATE TABLE posts (id bigserial); SELECT snowflake_convert_column('posts', 'id', 5);
             CREATE SEQUENCE s; CREATE TABLE notes (id bigint DEFAULT snowflake_nextval('s', 6));
             INSERT INTO notes DEFAULT VALUES",
        )
        .unwrap();
    owner.batch_execute("BEGIN; TRUNCATE posts RESTART IDENTITY").unwrap();
    let mut client = cluster.connect();
    client.batch_execute("SET lock_timeout = '10s'").unwrap();
    let seen = "SELECT table_name, sequence, shard_id, last_id_at IS NOT NULL, error FROM snowflake_columns ORDER BY table_name::text";
    assert_eq!(
        printed(&mut client, seen),
        "notes|s|6|t|\nposts|posts_id_seq|5|f|sequence is locked by another transaction: See pg_locks."
    );
    owner.batch_execute("COMMIT").unwrap();
    assert_eq!(printed(&mut client, seen), "notes|s|6|t|\nposts|posts_id_seq|5|f|");
    let left =
        "SELECT count(*) FROM pg_locks WHERE relation IN ('s'::regclass, 'posts_id_seq'::regclass)";
    client.batch_execute("BEGIN").unwrap();
    printed(&mut client, seen);
    assert_eq!(printed(&mut client, left), "0");
}
