//! A shard that moves to another server while clients write to it.

use pg_snowflake_harness::fleet::audit::{Findings, audit};
use pg_snowflake_harness::fleet::relocation::{copy, forget, swap};
use pg_snowflake_harness::fleet::writers::{Journal, MARK, users_of, while_writing};
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_harness::installation::has_contrib;
use pg_snowflake_harness::prelude::*;
use postgres::Transaction;
use std::thread::scope;

/// The shard that moves.
const SHARD: usize = 1;

#[test]
fn a_shard_moves_under_load_and_no_row_is_lost_or_duplicated() {
    let Some(fleet) = small_fleet(Fleet::start) else { return };
    // So far ahead that the clock cannot replace the old sequence.
    let ahead = counter_in_an_hour();
    fleet.connect_to_shard(SHARD).batch_execute(&format!("SELECT setval('ids', {ahead})")).unwrap();
    moves_under_load(fleet);
}

/// The state of the sequence is not copied then.
#[test]
fn with_leases_a_shard_moves_by_a_release_and_a_claim() {
    let Some(fleet) = small_fleet(Fleet::start_with_leases) else { return };
    moves_under_load(fleet);
}

fn moves_under_load(mut fleet: Fleet) {
    let target = fleet.add_server();
    let mut old = fleet.connect_to_shard(SHARD);

    let [moving, staying, direct] = move_under_load(&mut fleet, target);

    forget(&mut old, SHARD);
    let mut router = fleet.router.connect();
    assert_eq!(audit(&mut router, &[&moving, &staying, &direct]), Findings::default());
    assert!(moving.posts.len() > 10 && staying.posts.len() > 10, "the clients have written");
    let before = direct.redirected_after.expect("the direct client was sent elsewhere");
    assert!(before > 0 && before < direct.posts.len(), "it has written to both servers");
    let ids: Vec<i64> = direct.posts.iter().map(|post| post.id).collect();
    assert!(is_increasing(&ids), "the new server continues above the old one's ids");
    assert!(ids.iter().all(|&id| split(id).shard == SHARD as i64));
    let user = users_of(&fleet, SHARD)[0];
    let located = format!("SELECT host FROM snowflake_locate('users', {user})");
    let host = fleet.servers[target].dir().display().to_string();
    assert_eq!(printed(&mut router, &located), host);
}

/// Two servers with two shards of 20 users each; `None` if the installation has no `postgres_fdw`.
pub fn small_fleet(start: fn(usize, usize) -> Fleet) -> Option<Fleet> {
    if !has_contrib("postgres_fdw", "the move of a shard") {
        return None;
    }
    let fleet = start(2, 4);
    for shard in fleet.shards() {
        run(&mut fleet.connect_to_shard(shard), "INSERT INTO users (name) SELECT 'user ' || n FROM generate_series(1, 20) AS n");
    }
    Some(fleet)
}

/// Moves the shard while one client writes to it through the router, one to another shard, and one directly to it.
fn move_under_load(fleet: &mut Fleet, target: usize) -> [Journal; 3] {
    let (journals, ()) = while_writing(fleet, SHARD, |fleet| {
        wait_until_all_write(fleet);
        let copied = copy(fleet, SHARD, target);
        let mut new = fleet.servers[target].connect();
        let is_held = keep_busy(&mut new);
        let old = fleet.connect_to_shard(SHARD);
        scope(|scope| {
            scope.spawn(|| let_go_in_the_swap(is_held, old));
            swap(fleet, copied);
        });
        wait_until_all_write(fleet);
    });
    journals
}

/// Waits until each of the three clients has written more posts.
fn wait_until_all_write(fleet: &Fleet) {
    for (shard, way) in [(SHARD, "through the router"), (SHARD + 1, "through the router"), (SHARD, "directly")] {
        wait_for_more_rows(&mut fleet.connect_to_shard(shard), &format!("posts WHERE body LIKE '{MARK} % {way} %'"), 20);
    }
}

/// Prevents the new server from applying what it receives.
fn keep_busy(client: &mut Client) -> Transaction<'_> {
    let mut transaction = client.transaction().unwrap();
    transaction.batch_execute(&format!("LOCK TABLE {}.posts IN SHARE MODE", schema(SHARD))).unwrap();
    transaction
}

/// Stops preventing it as soon as the swap has closed the old server to writers, and so waits for the new one.
fn let_go_in_the_swap(busy: Transaction, mut old: Client) {
    let is_closed = "SELECT EXISTS (SELECT FROM pg_locks WHERE granted AND relation = 'ids'::regclass AND mode = 'ShareRowExclusiveLock')";
    wait_for(&mut old, is_closed, "the swap holds the old server");
    busy.commit().unwrap();
}

#[test]
fn a_swap_gives_way_to_a_transaction_that_is_at_work_on_the_shard() {
    let Some(mut fleet) = small_fleet(Fleet::start) else { return };
    let users = users_of(&fleet, SHARD);
    let target = fleet.add_server();
    let copied = copy(&fleet, SHARD, target);
    let mut observer = fleet.router.connect();
    let mut client = fleet.router.connect();
    let mut transaction = client.transaction().unwrap();
    // It takes its locks in the opposite order of the swap.
    transaction.execute("UPDATE users SET name = 'new' WHERE id = $1", &[&users[0]]).unwrap();
    let attempts = scope(|scope| {
        let swapped = scope.spawn(|| swap(&mut fleet, copied));
        let log = "pg_read_file(current_setting('data_directory') || '/../log')";
        wait_for(&mut observer, &format!("SELECT {log} LIKE '%due to lock timeout%'"), "the swap has given way");
        transaction.execute("INSERT INTO posts SELECT id # 4, id, 'new' FROM users WHERE id = $1", &[&users[0]]).unwrap();
        transaction.commit().unwrap();
        swapped.join().unwrap()
    });
    assert!(attempts > 1, "{attempts}");
    let there = "SELECT count(*) FROM users JOIN posts ON user_id = users.id WHERE name = 'new'";
    assert_eq!(take_one(&mut fleet.connect_to_shard(SHARD), there), 1);
}

#[test]
fn nobody_generates_from_the_old_sequence_once_the_new_one_goes_on_from_it() {
    let Some(mut fleet) = small_fleet(Fleet::start) else { return };
    let ahead = counter_in_an_hour();
    fleet.connect_to_shard(SHARD).batch_execute(&format!("SELECT setval('ids', {ahead})")).unwrap();
    let target = fleet.add_server();
    let copied = copy(&fleet, SHARD, target);
    let [generating, mut observer] = [(); 2].map(|()| fleet.connect_to_shard(SHARD));
    let last = scope(|scope| {
        let generating = scope.spawn(|| generate_until_refused(generating));
        wait_for(&mut observer, &format!("SELECT last_value > {ahead} + 100 FROM ids"), "the client has generated");
        swap(&mut fleet, copied);
        generating.join().unwrap()
    });
    assert!(counter(last) > ahead, "the old sequence has generated");
    let next = take_one(&mut fleet.connect_to_shard(SHARD), "SELECT snowflake_nextval('ids', 1)");
    assert!(last < next, "the old sequence has generated {last}, the new one {next}");
}

/// Takes IDs without inserting rows, so that it locks no table while it waits for the sequence. Returns the last one.
fn generate_until_refused(mut client: Client) -> i64 {
    let mut last = 0;
    while let Ok(row) = client.query_one("SELECT snowflake_nextval('ids', 1)", &[]) {
        last = row.get(0);
    }
    last
}
