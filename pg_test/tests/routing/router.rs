//! What docs/routing.md says about a router: what it sends to which server, and what it does not do.

use super::relocation::small_fleet;
use pg_snowflake_harness::ask::{Refusal, assert_refused, printed};
use pg_snowflake_harness::fleet::audit::{Findings, audit};
use pg_snowflake_harness::fleet::writers::users_of;
use pg_snowflake_harness::fleet::{Fleet, schema};
use postgres::Client;

/// A session on the router of a small fleet, and a user of shard 1.
fn router() -> Option<(Fleet, Client, i64)> {
    let fleet = small_fleet(Fleet::start)?;
    let (client, user) = (fleet.router.connect(), users_of(&fleet, 1)[0]);
    Some((fleet, client, user))
}

/// The servers to which a session on the router has connected.
fn asked(client: &mut Client) -> String {
    let servers = "SELECT string_agg(server_name, ' ' ORDER BY server_name) FROM postgres_fdw_get_connections()";
    printed(client, servers)
}

fn post(client: &mut Client, user: i64) {
    let insert = "INSERT INTO posts VALUES (snowflake_nextval('ids', 4 + snowflake_shard_id($1) % 4), $1, 'new')";
    client.execute(insert, &[&user]).unwrap();
}

#[test]
fn a_users_posts_are_found_on_the_users_server_by_the_second_name() {
    let Some((fleet, mut client, _)) = router() else { return };
    let users = users_of(&fleet, 1);
    users.iter().for_each(|&user| post(&mut client, user));
    let users = users.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    for (table, servers) in [("posts_by_user", "shard_1"), ("posts", "shard_0 shard_1 shard_2 shard_3")] {
        let mut fresh = fleet.router.connect();
        let posts = format!("SELECT count(*) FROM {table} WHERE user_id IN ({users})");
        assert_eq!(printed(&mut fresh, &posts), "20", "{table}");
        assert_eq!(asked(&mut fresh), servers, "{table}");
    }
    let mut fresh = fleet.router.connect();
    let with_user = "SELECT body FROM users AS u JOIN posts_by_user ON user_id = u.id WHERE u.id =";
    assert_eq!(printed(&mut fresh, &format!("{with_user} {}", users_of(&fleet, 1)[0])), "new");
    assert_eq!(asked(&mut fresh), "shard_1");
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
            let set = format!("ALTER SERVER {name} OPTIONS (SET batch_size '{rows}')");
            client.batch_execute(&set).unwrap();
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
    let refusal = Refusal { sqlstate: "40001", message: "could not serialize access", hint: "" };
    assert_refused(&mut second, &rename, refusal);
}

#[test]
fn a_transaction_over_two_shards_is_not_prepared_for_two_phase_commit() {
    let Some((fleet, mut client, _)) = router() else { return };
    let [one, two] = [1, 2].map(|shard| users_of(&fleet, shard)[0]);
    let rename = format!("UPDATE users SET name = 'new' WHERE id IN ({one}, {two})");
    client.batch_execute(&format!("BEGIN; {rename}")).unwrap();
    let refusal = Refusal { sqlstate: "0A000", message: "postgres_fdw foreign tables", hint: "" };
    assert_refused(&mut client, "PREPARE TRANSACTION 'both'", refusal);
}

#[test]
fn a_parent_with_foreign_partitions_takes_no_unique_index() {
    let Some((_fleet, mut client, _)) = router() else { return };
    let refusal = Refusal { sqlstate: "42809", message: "cannot create unique index", hint: "" };
    assert_refused(&mut client, "CREATE UNIQUE INDEX ON posts (id)", refusal);
}

#[test]
fn a_parent_with_foreign_partitions_takes_no_upsert_by_its_key() {
    let Some((_fleet, mut client, user)) = router() else { return };
    let upsert = format!("INSERT INTO users VALUES ({user}, 'new') ON CONFLICT (id) DO UPDATE SET name = 'new'");
    let refusal = Refusal { sqlstate: "42P10", message: "ON CONFLICT", hint: "" };
    assert_refused(&mut client, &upsert, refusal);
    let skipped = format!("INSERT INTO users VALUES ({user}, 'new') ON CONFLICT DO NOTHING");
    assert_eq!(client.execute(&skipped, &[]).unwrap(), 0);
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
        assert_refused(&mut client, &sql, Refusal { sqlstate, message: "violates", hint: "" });
    }
}

/// A session that has locked the tables of shard 1, as the swap of a moving shard does.
fn hold_shard_1(fleet: &Fleet) -> Client {
    let mut holding = fleet.router.connect();
    let lock = "BEGIN; ALTER FOREIGN TABLE shard_1.users OPTIONS (SET schema_name 'shard_1')";
    holding.batch_execute(lock).unwrap();
    holding
}

#[test]
fn statements_whose_plan_names_a_held_shard_wait() {
    let Some((fleet, mut client, _)) = router() else { return };
    let other = users_of(&fleet, 2)[0];
    let prepare = "SET lock_timeout = '200ms'; PREPARE by_id (bigint) AS SELECT name FROM users WHERE id = $1";
    client.batch_execute(prepare).unwrap();
    let by_id = format!("EXECUTE by_id ({other});");
    let insert = "INSERT INTO users VALUES (snowflake_nextval('ids', 4 + 2), 'new')";
    let _holding = hold_shard_1(&fleet);

    client.batch_execute(&format!("{insert}; {}", by_id.repeat(5))).unwrap();
    // PostgreSQL now makes a generic plan, to estimate its cost.
    let refusal = Refusal { sqlstate: "55P03", message: "lock timeout", hint: "" };
    assert_refused(&mut client, &by_id, refusal);
    client.batch_execute("SET plan_cache_mode = force_custom_plan").unwrap();
    client.batch_execute(&by_id.repeat(12)).unwrap();

    let to_be_found = format!("SELECT name FROM users WHERE id = (SELECT {other})");
    assert_refused(&mut client, &to_be_found, refusal);
}

#[test]
fn an_id_that_a_subquery_finds_connects_all_servers() {
    let Some((fleet, mut client, user)) = router() else { return };
    client.batch_execute(&format!("CREATE TABLE wanted AS SELECT {user} AS id")).unwrap();
    let all = "shard_0 shard_1 shard_2 shard_3";
    for (condition, servers) in
        [(format!("id = {user}"), "shard_1"), ("id = (SELECT id FROM wanted)".into(), all), ("id IN (SELECT id FROM wanted)".into(), all)]
    {
        let mut fresh = fleet.router.connect();
        let name = printed(&mut fresh, &format!("SELECT name FROM users WHERE {condition}"));
        assert_eq!(name, "user 1", "{condition}");
        assert_eq!(asked(&mut fresh), servers, "{condition}");
    }
}
