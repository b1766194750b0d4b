//! A shard moves to a fifth server while clients write to it.

use pg_snowflake_harness::fleet::audit::{Findings, audit, number};
use pg_snowflake_harness::fleet::relocation::{Swapped, copy, forget, swap};
use pg_snowflake_harness::fleet::writers::{Journal, users_of, while_writing};
use pg_snowflake_harness::fleet::{Fleet, schema};
use pg_snowflake_harness::id::{first_counter_at, is_increasing, now_ms, split};
use pg_snowflake_programs::output::{Claims, milliseconds, say, step};
use pg_snowflake_programs::record::thousands;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The shard that moves.
const SHARD: usize = 5;

/// How far its sequence is ahead of the clock.
const LEAD_MS: i64 = 60_000;

/// How long the clients write before and after the move.
const BESIDE: Duration = Duration::from_secs(1);

/// What the three clients wrote: through the router to the shard and to another one, and directly to the shard.
struct Journals {
    moving: Journal,
    staying: Journal,
    direct: Journal,
}

/// Moves a shard, and compares what was acknowledged to the clients with the rows afterwards.
pub fn show(fleet: &mut Fleet, claims: &mut Claims) {
    let target = fleet.add_server();
    let name = schema(SHARD);
    step(&format!("moving {name} to a fifth server while clients write"));
    let mut old = fleet.connect_to_shard(SHARD);
    if fleet.has_leases() {
        say("the old server releases the lease of the shard, and the new one claims it");
    } else {
        let ahead = first_counter_at(now_ms() + LEAD_MS);
        old.batch_execute(&format!("SELECT setval('ids', {ahead})"))
            .expect("a sequence can be set");
        say(
            "its sequence is a minute ahead of the clock, as after a clock that was fast, so that the clock alone",
        );
        say("does not keep the new server from generating the same IDs");
    }
    let count = "SELECT count(*) FROM posts";
    let before = number(&mut fleet.router.connect(), count);

    let (journals, swapped) = move_under_load(fleet, target);
    say(&format!(
        "swapped within {} (attempt {}); the slowest post to the shard took {}, to another shard {}",
        milliseconds(swapped.took),
        swapped.attempts,
        milliseconds(journals.moving.slowest.max(journals.direct.slowest)),
        milliseconds(journals.staying.slowest)
    ));

    let mut router = fleet.router.connect();
    check_rows(&audit(&mut router, &journals.all()), &journals, claims);
    let added = number(&mut router, count) - before;
    let written: usize = journals.all().iter().map(|journal| journal.posts.len()).sum();
    claims.check(
        added == written as i64,
        &format!("the router counts {added} more posts than before"),
    );
    check_ids(&journals.direct, claims);
    check_place(fleet, target, claims);
    forget(&mut old, SHARD);
}

impl Journals {
    fn all(&self) -> [&Journal; 3] {
        [&self.moving, &self.staying, &self.direct]
    }
}

fn move_under_load(fleet: &mut Fleet, target: usize) -> (Journals, Swapped) {
    let ([moving, staying, direct], swapped) = while_writing(fleet, SHARD, |fleet| {
        sleep(BESIDE);
        let began = Instant::now();
        let copied = copy(fleet, SHARD, target);
        say(&format!(
            "copied, and replication has caught up, after {}",
            milliseconds(began.elapsed())
        ));
        let swapped = swap(fleet, copied);
        sleep(BESIDE);
        swapped
    });
    (Journals { moving, staying, direct }, swapped)
}

fn check_rows(findings: &Findings, journals: &Journals, claims: &mut Claims) {
    let [moving, staying, direct] =
        journals.all().map(|journal| thousands(journal.posts.len() as i64));
    claims.check(
        findings.lost.is_empty(),
        &format!(
            "all posts that were acknowledged are there: {moving} through the router and {direct} directly to the \
             shard, {staying} to another ({} lost)",
            findings.lost.len()
        ),
    );
    claims.check(
        findings.unexpected.is_empty() && findings.duplicate_ids == 0,
        &format!(
            "no other post is there ({}), and no duplicate ID ({})",
            findings.unexpected.len(),
            findings.duplicate_ids
        ),
    );
    claims.check(
        findings.miscounted_users == 0,
        &format!(
            "every user counts as many posts as there are ({} do not)",
            findings.miscounted_users
        ),
    );
    claims.check(
        findings.misplaced == 0,
        &format!("every row is where snowflake_locate says ({} misplaced)", findings.misplaced),
    );
}

/// The direct client has seen IDs of both sequences.
fn check_ids(direct: &Journal, claims: &mut Claims) {
    let before = direct.redirected_after.unwrap_or(0);
    let after = direct.posts.len() - before;
    let ids: Vec<i64> = direct.posts.iter().map(|post| post.id).collect();
    let on_shard = ids.iter().all(|&id| split(id).shard == SHARD as i64);
    claims.check(
        before > 0 && after > 0 && on_shard && is_increasing(&ids),
        &format!(
            "the {} IDs that the old server generated and the {} of the new one are of shard {SHARD} and only go up",
            thousands(before as i64),
            thousands(after as i64)
        ),
    );
}

fn check_place(fleet: &Fleet, target: usize, claims: &mut Claims) {
    let through = number(
        &mut fleet.router.connect(),
        &format!("SELECT count(*) FROM {}.posts", schema(SHARD)),
    );
    let there = number(&mut fleet.connect_to_shard(SHARD), "SELECT count(*) FROM posts");
    let host = fleet.servers[target].dir().display().to_string();
    let user = users_of(fleet, SHARD)[0];
    let located: String = fleet
        .router
        .connect()
        .query_one("SELECT host FROM snowflake_locate('users', $1)", &[&user])
        .expect("a user can be located")
        .get(0);
    claims.check(
        through == there && located == host,
        &format!("the router finds the shard's {} posts on the fifth server", thousands(there)),
    );
}
