//! Compares the rows of a fleet with what it acknowledged to its clients.

use super::writers::{Journal, MARK, Post};
use crate::sequence::take_one;
use postgres::Client;

/// What is wrong with a fleet. All of it is empty or 0 in a correct one.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Acknowledged, but missing.
    pub lost: Vec<Post>,
    /// Present, but never acknowledged, or more often than acknowledged.
    pub unexpected: Vec<Post>,
    /// IDs that are in a table more than once.
    pub duplicate_ids: i64,
    /// Users whose row has another count of posts than was acknowledged.
    pub miscounted_users: i64,
    /// Rows on another server than their ID says.
    pub misplaced: i64,
}

/// Compares what the router shows with the journals of all writers.
pub fn audit(router: &mut Client, journals: &[&Journal]) -> Findings {
    let acknowledged: Vec<Post> = journals.iter().flat_map(|journal| journal.posts.clone()).collect();
    let query = format!("SELECT id, user_id, body FROM posts WHERE body LIKE '{MARK} %'");
    let rows = router.query(&query, &[]).expect("posts can be read");
    let found: Vec<Post> = rows.iter().map(|row| Post { id: row.get(0), user_id: row.get(1), body: row.get(2) }).collect();
    let duplicate_ids = "SELECT count(*) - count(DISTINCT id)
        FROM (SELECT id FROM users UNION ALL SELECT id FROM posts UNION ALL SELECT id FROM comments) AS ids";
    let miscounted_users = format!(
        "SELECT count(*) FROM users AS u FULL JOIN (
             SELECT user_id, count(*) FROM posts WHERE body LIKE '{MARK} % through the router %' GROUP BY user_id
         ) AS counted ON user_id = u.id
         WHERE coalesce(count, 0) IS DISTINCT FROM u.posts"
    );
    Findings {
        lost: without(&acknowledged, &found),
        unexpected: without(&found, &acknowledged),
        duplicate_ids: take_one(router, duplicate_ids),
        miscounted_users: take_one(router, &miscounted_users),
        misplaced: count_misplaced(router),
    }
}

/// The number of rows, in all tables, that are not where `snowflake_locate` says.
fn count_misplaced(router: &mut Client) -> i64 {
    let count = |(table, key)| {
        let query =
            format!("SELECT count(*) FROM {table} AS t WHERE (snowflake_locate('{table}', {key})).partition IS DISTINCT FROM t.tableoid");
        take_one(router, &query)
    };
    [("users", "id"), ("posts", "id"), ("posts_by_user", "user_id"), ("comments", "post_id")].map(count).iter().sum()
}

/// The first without the second. Duplicates count separately.
fn without(first: &[Post], second: &[Post]) -> Vec<Post> {
    let mut left = first.to_vec();
    for post in second {
        if let Some(at) = left.iter().position(|other| other == post) {
            left.swap_remove(at);
        }
    }
    left
}
