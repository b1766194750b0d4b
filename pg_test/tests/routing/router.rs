//! What docs/routing.md says about a router: what it sends to which server, and what it does not do.

use super::relocation::small_fleet;
use pg_snowflake_harness::fleet::audit::{Findings, audit};
use pg_snowflake_harness::fleet::writers::{Journal, MARK, Post, users_of};
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_harness::prelude::*;

/// A session on the router of a small fleet, and a user of shard 1.
fn router() -> Option<(Fleet, Client, i64)> {
    let fleet = small_fleet(Fleet::start)?;
    let (client, user) = (fleet.router.connect(), users_of(&fleet, 1)[0]);
    Some((fleet, client, user))
}

/// The servers to which a session on the router has connected.
fn asked(client: &mut Client) -> String {
    printed(client, "SELECT string_agg(server_name, ' ' ORDER BY server_name) FROM postgres_fdw_get_connections()")
}

fn post(client: &mut Client, user: i64) {
    client.execute("INSERT INTO posts VALUES (snowflake_nextval('ids', 4 + snowflake_shard_id($1) % 4), $1, 'new')", &[&user]).unwrap();
}

#[test]
fn a_users_posts_are_found_on_the_users_server_by_the_second_name() {
    let Some((fleet, mut client, _)) = router() else { return };
    let users = users_of(&fleet, 1);
    users.iter().for_each(|&user| post(&mut client, user));
    let users = users.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    for (table, servers) in [("posts_by_user", "shard_1"), ("posts", "shard_0 shard_1 shard_2 shard_3")] {
        let mut fresh = fleet.router.connect();
        assert_eq!(printed(&mut fresh, &format!("SELECT count(*) FROM {table} WHERE user_id IN ({users})")), "20", "{table}");
        assert_eq!(asked(&mut fresh), servers, "{table}");
    }
}

/// By a statement that selects the rows, by a client of the router, and by a client of the shard; to a server go 1 to 100 of them at
/// a time.
#[test]
fn rows_loaded_in_every_way_have_different_ids_and_are_where_the_ids_lead() {
    let Some((fleet, mut client, _)) = router() else { return };
    client.batch_execute("CREATE TABLE loaded AS SELECT id FROM users").unwrap();
    for rows in [1, 10, 100] {
        let values = |row: &str| vec![row; rows].join(", ");
        for shard in fleet.shards() {
            let name = schema(shard);
            client.batch_execute(&format!("ALTER SERVER {name} OPTIONS (SET batch_size '{rows}')")).unwrap();
            let user = users_of(&fleet, shard)[0];
            let routed = values("(snowflake_nextval('ids', 4 + snowflake_shard_id($1) % 4), $1, '')");
            client.execute(&format!("INSERT INTO posts VALUES {routed}"), &[&user]).unwrap();
            let direct = format!("INSERT INTO posts (user_id, body) VALUES {}", values("($1, '')"));
            fleet.connect_to_shard(shard).execute(&direct, &[&user]).unwrap();
        }
        let selected = "INSERT INTO posts SELECT snowflake_nextval('ids', 4 + snowflake_shard_id(id) % 4), id, ''
                        FROM loaded, generate_series(1, 30)";
        assert_eq!(client.execute(selected, &[]).unwrap(), 4 * 20 * 30);
    }
    let expected = 3 * 4 * 20 * 30 + 2 * 4 * (1 + 10 + 100);
    assert_eq!(printed(&mut client, "SELECT count(*) FROM posts"), expected.to_string());
    assert_eq!(audit(&mut client, &[]), Findings::default());
}

#[test]
fn the_audit_finds_each_row_that_is_lost_unexpected_duplicate_miscounted_or_misplaced() {
    let Some((fleet, mut client, user_id)) = router() else { return };
    let mut shard = fleet.connect_to_shard(1);
    let [acknowledged, unexpected] = ["one", "two"].map(|body| {
        let body = format!("{MARK} {body}");
        let insert = "INSERT INTO posts (user_id, body) VALUES ($1, $2) RETURNING id";
        Post { id: shard.query_one(insert, &[&user_id, &body]).unwrap().get(0), user_id, body }
    });
    let lost = Post { id: 1, ..unexpected.clone() };
    let other = users_of(&fleet, 2)[0];
    let sql = format!(
        "INSERT INTO posts VALUES ({user_id}, {user_id}, 'with the ID of a user');
         UPDATE users SET posts = 1 WHERE id = {user_id};
         ALTER TABLE users DROP CONSTRAINT users_id_check;
         INSERT INTO users VALUES ({other} # 4, 'of shard 2')"
    );
    run(&mut shard, &sql);
    let journal = Journal { posts: vec![acknowledged, lost.clone()], ..Journal::default() };
    let expected = Findings { lost: vec![lost], unexpected: vec![unexpected], duplicate_ids: 1, miscounted_users: 1, misplaced: 1 };
    assert_eq!(audit(&mut client, &[&journal]), expected);
}

#[test]
fn ids_of_the_router_and_of_the_shard_have_different_numbers_and_one_partition() {
    let Some((fleet, mut client, user)) = router() else { return };
    post(&mut client, user);
    let mut shard = fleet.connect_to_shard(1);
    shard.execute("INSERT INTO posts (user_id, body) VALUES ($1, 'old')", &[&user]).unwrap();
    let found = "SELECT body, snowflake_shard_id(id), tableoid::regclass FROM posts ORDER BY body";
    assert_eq!(printed(&mut client, found), "new|5|shard_1.posts\nold|1|shard_1.posts");
}

#[test]
fn the_second_of_two_concurrent_updates_through_the_router_is_refused() {
    let Some((fleet, mut first, user)) = router() else { return };
    let mut second = fleet.router.connect();
    let rename = format!("UPDATE users SET name = 'new' WHERE id = {user}");
    // Both have their snapshots of the shard.
    for client in [&mut first, &mut second] {
        client.batch_execute(&format!("BEGIN; SELECT name FROM users WHERE id = {user}")).unwrap();
    }
    first.batch_execute(&format!("{rename}; COMMIT")).unwrap();
    assert_refused(&mut second, &rename, refusal("40001", "could not serialize access"));
}

#[test]
fn a_parent_with_foreign_partitions_has_no_unique_index_no_upsert_by_key_and_no_two_phase_commit() {
    let Some((fleet, mut client, user)) = router() else { return };
    let upsert = format!("INSERT INTO users VALUES ({user}, 'new') ON CONFLICT");
    assert_eq!(client.execute(&format!("{upsert} DO NOTHING"), &[]).unwrap(), 0);
    let both = format!("BEGIN; UPDATE users SET name = 'new' WHERE id IN ({user}, {}); PREPARE TRANSACTION 'both'", users_of(&fleet, 2)[0]);
    for (sql, sqlstate, message) in [
        ("CREATE UNIQUE INDEX ON posts (id)", "42809", "cannot create unique index"),
        (&format!("{upsert} (id) DO UPDATE SET name = 'new'"), "42P10", "ON CONFLICT"),
        (&both, "0A000", "postgres_fdw foreign tables"),
    ] {
        assert_refused(&mut client, sql, refusal(sqlstate, message));
    }
}

/// PostgreSQL checks a key only when it routes an insert: not when an UPDATE changes it on a foreign table, and not when an
/// INSERT names the foreign table.
#[test]
fn the_checks_on_a_shard_refuse_a_row_that_the_router_lets_through() {
    let Some((fleet, mut client, user)) = router() else { return };
    let other = users_of(&fleet, 2)[0];
    post(&mut client, user);
    let misplacing = [
        (format!("UPDATE posts SET id = {other} # 4"), "23514"),
        (format!("UPDATE users SET id = {other} # 4 WHERE id = {user} + 0"), "23514"),
        (format!("INSERT INTO shard_1.users VALUES ({other} # 4, 'new')"), "23514"),
        (format!("UPDATE posts SET user_id = {other}"), "23503"),
    ];
    for (sql, sqlstate) in misplacing {
        assert_refused(&mut client, &sql, refusal(sqlstate, "violates"));
    }
}

/// A session that has locked the tables of shard 1, as the swap of a moving shard does.
fn hold_shard_1(fleet: &Fleet) -> Client {
    let mut holding = fleet.router.connect();
    holding.batch_execute("BEGIN; ALTER FOREIGN TABLE shard_1.users OPTIONS (SET schema_name 'shard_1')").unwrap();
    holding
}

#[test]
fn statements_whose_plan_names_a_held_shard_wait() {
    let Some((fleet, mut client, _)) = router() else { return };
    let other = users_of(&fleet, 2)[0];
    client.batch_execute("SET lock_timeout = '200ms'; PREPARE by_id (bigint) AS SELECT name FROM users WHERE id = $1").unwrap();
    let by_id = format!("EXECUTE by_id ({other});");
    let insert = "INSERT INTO users VALUES (snowflake_nextval('ids', 4 + 2), 'new')";
    let _holding = hold_shard_1(&fleet);

    client.batch_execute(&format!("{insert}; {}", by_id.repeat(5))).unwrap();
    // PostgreSQL now makes a generic plan, to estimate its cost.
    let refusal = refusal("55P03", "lock timeout");
    assert_refused(&mut client, &by_id, refusal);
    client.batch_execute("SET plan_cache_mode = force_custom_plan").unwrap();
    client.batch_execute(&by_id.repeat(12)).unwrap();

    assert_refused(&mut client, &format!("SELECT name FROM users WHERE id = (SELECT {other})"), refusal);
}

/// As a constant, as a parameter of a generic plan, and as an array however often the statement is run.
#[test]
fn a_statement_that_names_an_id_connects_one_server_and_one_that_looks_it_up_connects_all() {
    let Some((fleet, mut client, user)) = router() else { return };
    let other = users_of(&fleet, 1)[1];
    post(&mut client, user);
    run(&mut client, &format!("CREATE TABLE wanted AS SELECT {user} AS id"));
    let generic = "SET plan_cache_mode = force_generic_plan; PREPARE one (bigint) AS SELECT name FROM users WHERE id = $1;";
    let array = format!("EXECUTE many ('{{{user},{other}}}');").repeat(12);
    let array = format!("PREPARE many (bigint[]) AS SELECT count(*) FROM users WHERE id = ANY ($1); {array}");
    let joined = "SELECT name, p.body FROM users AS u JOIN posts_by_user AS p ON user_id = u.id";
    let [one, all] = ["shard_1", "shard_0 shard_1 shard_2 shard_3"];
    for (sql, answer, servers) in [
        (format!("SELECT name FROM users WHERE id = {user}"), "user 1", one),
        (format!("SELECT count(*) FROM users WHERE id IN ({user}, {other})"), "2", one),
        (format!("{generic} EXECUTE one ({user})"), "user 1", one),
        (array, &["2"; 12].join("\n"), one),
        (format!("{joined} WHERE u.id = {user}"), "user 1|new", one),
        (format!("UPDATE users SET posts = 0 WHERE id = {user} RETURNING posts"), "0", one),
        (format!("DELETE FROM users WHERE id = {user} # 4 RETURNING id"), "", one),
        ("SELECT count(*) FROM users".into(), "80", all),
        ("SELECT name FROM users WHERE id = (SELECT id FROM wanted)".into(), "user 1", all),
        ("SELECT name FROM users WHERE id IN (SELECT id FROM wanted)".into(), "user 1", all),
    ] {
        let mut fresh = fleet.router.connect();
        assert_eq!(printed(&mut fresh, &sql), answer, "{sql}");
        assert_eq!(asked(&mut fresh), servers, "{sql}");
    }
}

/// With the settings and the option that the page names: no row is joined or counted on the router.
#[test]
fn each_server_joins_and_aggregates_its_own_rows() {
    let Some((fleet, mut client, _)) = router() else { return };
    run(&mut client, "SET enable_partitionwise_join = on; SET enable_partitionwise_aggregate = on");
    for shard in fleet.shards() {
        run(&mut client, &format!("ALTER SERVER {} OPTIONS (ADD use_remote_estimate 'true')", schema(shard)));
        let rows = "INSERT INTO posts (user_id, body) SELECT id, '' FROM users, generate_series(1, 50);
            INSERT INTO comments (post_id, body) SELECT id, '' FROM posts, generate_series(1, 10); ANALYZE";
        run(&mut fleet.connect_to_shard(shard), rows);
    }
    for sql in [
        "SELECT u.id, count(*) FROM users AS u JOIN posts_by_user AS p ON p.user_id = u.id GROUP BY u.id",
        "SELECT p.id, count(*) FROM posts AS p JOIN comments AS c ON c.post_id = p.id GROUP BY p.id",
    ] {
        let plan = printed(&mut client, &format!("EXPLAIN (VERBOSE, COSTS OFF) {sql}"));
        let sent: Vec<&str> = plan.lines().filter(|line| line.contains("Remote SQL: ")).collect();
        assert_eq!(sent.len(), 4, "{plan}");
        assert!(sent.iter().all(|sent| sent.contains(" INNER JOIN ") && sent.contains(" GROUP BY ")), "{plan}");
    }
}

/// A statement about an ID of a living server works, unless it looks the ID up: then all servers are connected first.
#[test]
fn a_server_that_is_down_fails_only_the_statements_that_need_it() {
    let Some((mut fleet, mut client, on_dead)) = router() else { return };
    let on_living = users_of(&fleet, 2)[0];
    fleet.servers[1].stop(Shutdown::Fast);
    run(&mut client, &format!("SELECT snowflake_locate('users', {on_dead}); UPDATE users SET name = 'new' WHERE id = {on_living}"));
    post(&mut client, on_living);
    let dead = [
        format!("UPDATE users SET name = 'new' WHERE id = {on_dead}"),
        format!("INSERT INTO users VALUES ({on_dead} # 4, 'first')"),
        "SELECT count(*) FROM users".into(),
        format!("SELECT name FROM users WHERE id = (SELECT {on_living})"),
    ];
    for sql in &dead {
        assert_refused(&mut client, sql, refusal("08001", "could not connect to server \"shard_"));
    }
    fleet.servers[1].start();
    dead.iter().for_each(|sql| run(&mut client, sql));
}
