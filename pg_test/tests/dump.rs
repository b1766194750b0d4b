//! A dump contains everything that IDs need to continue.

use pg_snowflake_harness::Database;
use pg_snowflake_harness::id::split;
use pg_snowflake_harness::sequence::{counter_in_an_hour, take_one};

#[test]
fn a_restored_table_goes_on_above_the_dumped_ids() {
    let source = Database::new().setting("pg_snowflake.max_lead", "2h");
    let mut client = source.connect();
    // Ahead of the clock, which would otherwise hide a counter that fell back.
    let in_an_hour = counter_in_an_hour();
    client
        .batch_execute(&format!(
            "CREATE TABLE posts (id bigint PRIMARY KEY, body text);
             CREATE SEQUENCE posts_id_seq START {in_an_hour} OWNED BY posts.id;
             ALTER TABLE posts ALTER id SET DEFAULT snowflake_nextval('posts_id_seq', 5);
             INSERT INTO posts (body) SELECT 'old' FROM generate_series(1, 1000)"
        ))
        .unwrap();
    let last = take_one(&mut client, "SELECT max(id) FROM posts");

    let target = Database::restored(&source.dump()).setting("pg_snowflake.max_lead", "2h");
    let mut restored = target.connect();
    restored.batch_execute("INSERT INTO posts (body) VALUES ('new')").unwrap();

    let next = take_one(&mut restored, "SELECT id FROM posts WHERE body = 'new'");
    assert!(next > last, "{:?} after {:?}", split(next), split(last));
    assert_eq!(split(next).shard, 5);
    assert_eq!(take_one(&mut restored, "SELECT count(*) FROM posts"), 1001);
}
