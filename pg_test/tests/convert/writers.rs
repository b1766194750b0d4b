//! Converting while others write.

use pg_snowflake_harness::prelude::*;
use std::thread::scope;

/// Inserts by a prepared statement until it is stopped, and returns the IDs that it got.
fn write(database: &Database, insert: &str, stop: &Stop) -> Vec<i64> {
    let mut client = database.connect();
    run(&mut client, &format!("PREPARE add AS {insert}"));
    stop.repeat(|| printed(&mut client, "EXECUTE add").parse().expect("an ID"))
}

#[test]
fn writers_lose_nothing_and_see_no_error() {
    let (database, mut client) = database();
    let tables = [
        ("wide", "id bigserial PRIMARY KEY, ref bigint"),
        ("narrow", "id serial PRIMARY KEY, ref int"),
        ("identity", "id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, ref int"),
    ];
    for (table, columns) in tables {
        let sql = format!(
            "CREATE TABLE {table} ({columns});
             INSERT INTO {table} (ref) SELECT 1 FROM generate_series(1, 20000);
             CREATE TABLE of_{table} (id bigserial, ref int NOT NULL REFERENCES {table})"
        );
        run(&mut client, &sql);
        let posts = format!("INSERT INTO {table} (ref) VALUES (1) RETURNING id::bigint");
        let comments = format!("INSERT INTO of_{table} (ref) VALUES (1) RETURNING id::bigint");
        let stop = Stop::default();
        let (posts, comments) = scope(|scope| {
            let writers = [&posts, &posts, &posts, &comments].map(|insert| scope.spawn(|| write(&database, insert, &stop)));
            let at_the_end = StopAtEnd(&stop);
            wait_for_more_rows(&mut client, table, 1000);
            run(&mut client, &format!("SELECT snowflake_convert_column('{table}', 'id', 5)"));
            wait_for_more_rows(&mut client, table, 1000);
            drop(at_the_end);
            let mut ids = writers.map(|writer| writer.join().unwrap());
            let comments = std::mem::take(&mut ids[3]);
            (ids.concat(), comments)
        });

        let (old, new): (Vec<i64>, Vec<i64>) = posts.iter().partition(|&&id| id < 1 << 31);
        assert!(!old.is_empty() && !new.is_empty(), "{table}: {} and {}", old.len(), new.len());
        assert!(new.iter().all(|&id| split(id).shard == 5), "{table}");
        assert_holds(&database, table, &posts);
        assert_holds(&database, &format!("of_{table}"), &comments);
    }
}

/// Every acknowledged ID is in the table, once.
fn assert_holds(database: &Database, table: &str, acknowledged: &[i64]) {
    let mut client = database.connect();
    let mut stored = take(&mut client, &format!("SELECT id::bigint FROM {table}"));
    stored.sort_unstable();
    let missing = acknowledged.iter().filter(|id| stored.binary_search(id).is_err()).count();
    assert_eq!(missing, 0, "missing of {} in {table}", acknowledged.len());
    assert!(stored.is_sorted_by(|a, b| a < b), "a duplicate id in {table}");
}

#[test]
fn a_value_that_is_committed_while_it_waits_for_the_lock_counts() {
    let (database, mut writer) = database_with("CREATE TABLE posts (id bigint PRIMARY KEY)");
    run(&mut writer, "BEGIN; INSERT INTO posts VALUES (5000000000000000000)");

    let too_high = Refusal { sqlstate: "55000", message: "above the next ID", hint: "layout" };
    let convert = |client: &mut Client| assert_refused(client, "SELECT snowflake_convert_column('posts', 'id', 5)", too_high);
    let (error, ()) = while_it_waits(&mut writer, &mut database.connect(), convert, |writer| run(writer, "COMMIT"));
    assert!(error.detail().unwrap().contains("5000000000000000000"), "{error:?}");
}

/// Converts a table whose lock the transaction of `holder` has, which ends with a statement once the conversion waits for it.
fn convert_while_held(database: &Database, table: &str, holder: &mut Client, end: &str) {
    let convert = format!("SELECT snowflake_convert_column('{table}', 'id', 5)");
    while_it_waits(holder, &mut database.connect(), |client| run(client, &convert), |holder| run(holder, end));
}

#[test]
fn a_foreign_key_that_is_committed_while_it_waits_for_the_lock_counts() {
    let (database, mut owner) = database_with("CREATE TABLE posts (id serial PRIMARY KEY)");
    let mut writer = database.connect();
    run(&mut writer, "BEGIN; CREATE TABLE comments (post_id int REFERENCES posts)");

    convert_while_held(&database, "posts", &mut writer, "COMMIT");

    let id = take_one(&mut owner, "WITH post AS (INSERT INTO posts DEFAULT VALUES RETURNING id) SELECT id FROM post");
    run(&mut owner, &format!("INSERT INTO comments VALUES ({id})"));
}

#[test]
fn a_child_that_is_committed_while_it_waits_for_the_lock_is_converted() {
    let (database, mut owner) = database_with("CREATE TABLE posts (id serial); CREATE TABLE child () INHERITS (posts)");
    let mut writer = database.connect();
    run(&mut writer, "BEGIN; CREATE TABLE grandchild () INHERITS (child)");

    convert_while_held(&database, "posts", &mut writer, "COMMIT");

    assert_eq!(printed(&mut owner, "INSERT INTO grandchild DEFAULT VALUES RETURNING snowflake_shard_id(id)"), "5");
}

/// Each conversion lets open sessions compile the function again.
#[test]
fn tables_whose_triggers_call_the_same_function_are_converted_at_once() {
    let sql = "CREATE TABLE posts (id serial); CREATE TABLE comments (id serial);
        CREATE FUNCTION same() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
        CREATE TRIGGER same BEFORE INSERT ON posts FOR EACH ROW EXECUTE FUNCTION same();
        CREATE TRIGGER same BEFORE INSERT ON comments FOR EACH ROW EXECUTE FUNCTION same()";
    let (database, mut owner) = database_with(sql);
    run(&mut owner, "BEGIN; SELECT snowflake_convert_column('posts', 'id', 5)");

    convert_while_held(&database, "comments", &mut owner, "ALTER FUNCTION same() SECURITY DEFINER; COMMIT");

    assert_eq!(printed(&mut owner, "SELECT prosecdef FROM pg_proc WHERE proname = 'same'"), "t");
}

/// Its rows are no longer those of the table.
#[test]
fn a_column_is_not_widened_while_a_partition_is_being_detached() {
    let sql = "CREATE TABLE posts (id serial, body text) PARTITION BY LIST (body);
        CREATE TABLE posts_a PARTITION OF posts FOR VALUES IN ('a');
        CREATE TABLE posts_b PARTITION OF posts FOR VALUES IN ('b')";
    let (database, mut owner) = database_with(sql);
    let mut reader = database.connect();
    run(&mut reader, "BEGIN; SELECT FROM posts");
    run(&mut owner, "SET lock_timeout = '1ms'");
    assert_refused(&mut owner, "ALTER TABLE posts DETACH PARTITION posts_a CONCURRENTLY", refusal("55P03", "lock timeout"));
    run(&mut reader, "ROLLBACK; BEGIN; SELECT FROM posts_a");

    let convert = "SELECT snowflake_convert_column('posts', 'id', 5)";
    let finalize = "ALTER TABLE public.posts DETACH PARTITION public.posts_a FINALIZE;";
    let message = "cannot change column id of table public.posts to bigint while partition public.posts_a is being detached";
    run(&mut owner, "SET lock_timeout = '10s'");
    assert_refused(&mut owner, convert, Refusal { sqlstate: "55000", message, hint: finalize });
    run(&mut reader, "COMMIT");
    run(&mut owner, finalize);
    // Its default uses the same sequence.
    run(&mut owner, "ALTER TABLE posts_a ALTER id DROP DEFAULT");
    run(&mut owner, convert);
    let types = "SELECT pg_typeof((SELECT min(id) FROM posts)), pg_typeof((SELECT min(id) FROM posts_a))";
    assert_eq!(printed(&mut owner, types), "bigint|integer");
}
