//! Clients that write posts without a pause, and keep a record of every one that the server has acknowledged.

use super::{Fleet, schema};
use crate::cluster::SUPERUSER;
use crate::stop::Stop;
use postgres::error::SqlState;
use postgres::{Client, Config, NoTls};
use std::time::{Duration, Instant};

/// How the bodies of these clients' posts begin.
pub const MARK: &str = "live";

/// A post that a client was told is in the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Post {
    /// Its id, minted by whoever inserted it.
    pub id: i64,
    /// Its user, whose shard it shares.
    pub user_id: i64,
    /// No two clients and no two posts have the same.
    pub body: String,
}

/// What one client did.
#[derive(Default)]
pub struct Journal {
    /// In the order of their acknowledgements.
    pub posts: Vec<Post>,
    /// The longest that a post took.
    pub slowest: Duration,
    /// How many posts it had written when it was last sent to another server; for who follows a shard by itself.
    pub redirected_after: Option<usize>,
}

impl Journal {
    fn add(&mut self, post: Post, took: Duration) {
        self.posts.push(post);
        self.slowest = self.slowest.max(took);
    }
}

/// Posts by these users in turn, through the router, counting each in its user's row in the same transaction.
///
/// # Panics
/// Where a statement fails: whoever comes by the router notices nothing of a move.
pub fn write_through_router(
    mut client: Client,
    shards: usize,
    users: &[i64],
    stop: &Stop,
) -> Journal {
    let insert = client
        .prepare(&format!(
            "INSERT INTO posts VALUES (snowflake_nextval('ids', {shards} + snowflake_shard_id($1) % {shards}), $1, $2)
             RETURNING id"
        ))
        .expect("the statement is sound");
    let count = client
        .prepare("UPDATE users SET posts = posts + 1 WHERE id = $1")
        .expect("the statement is sound");
    let mut post = |user_id: i64, body: &str| -> Result<i64, postgres::Error> {
        let mut transaction = client.transaction()?;
        let id = transaction.query_one(&insert, &[&user_id, &body])?.get(0);
        transaction.execute(&count, &[&user_id])?;
        transaction.commit()?;
        Ok(id)
    };
    let mut journal = Journal::default();
    for (n, &user_id) in users.iter().cycle().take_while(|_| !stop.is_called()).enumerate() {
        let body = format!("{MARK} {user_id} through the router {n}");
        let began = Instant::now();
        let id = post(user_id, &body).expect("the router takes a post at any time");
        journal.add(Post { id, user_id, body }, began.elapsed());
    }
    journal
}

/// Posts by this user directly on the server that has the shard, which mints the ids. Where the shard is gone, it asks
/// the router for the new address.
///
/// # Panics
/// Where a statement fails in another way.
pub fn write_directly(mut router: Client, user_id: i64, stop: &Stop) -> Journal {
    let mut shard = Direct::connect(&mut router, user_id);
    let mut journal = Journal::default();
    while !stop.is_called() {
        let body = format!("{MARK} {user_id} directly {}", journal.posts.len());
        let began = Instant::now();
        let id = loop {
            match shard.client.query_one(&shard.insert, &[&user_id, &body]) {
                Ok(row) => break row.get(0),
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
                    shard = Direct::connect(&mut router, user_id);
                    journal.redirected_after = Some(journal.posts.len());
                }
                Err(error) => panic!("a shard refuses a post: {error:?}"),
            }
        };
        journal.add(Post { id, user_id, body }, began.elapsed());
    }
    journal
}

/// A session on the server that has a user's shard.
struct Direct {
    client: Client,
    insert: postgres::Statement,
}

impl Direct {
    /// Goes where the router says that the user is, until it is there: while a shard moves, the router's answer may be a
    /// moment old.
    fn connect(router: &mut Client, user_id: i64) -> Direct {
        loop {
            let place = router
                .query_one(
                    "SELECT server::text, host FROM snowflake_locate('users', $1)",
                    &[&user_id],
                )
                .expect("the router knows where a user is");
            let (schema, host): (String, String) = (place.get(0), place.get(1));
            let mut client = Config::new()
                .host_path(host)
                .user(SUPERUSER)
                .dbname(SUPERUSER)
                .connect(NoTls)
                .expect("a server can be reached");
            let insert =
                format!("INSERT INTO {schema}.posts (user_id, body) VALUES ($1, $2) RETURNING id");
            match client.prepare(&insert) {
                Ok(insert) => return Direct { client, insert },
                Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {}
                Err(error) => panic!("{insert}: {error:?}"),
            }
        }
    }
}

/// The ids of a shard's users.
pub fn users_of(fleet: &Fleet, shard: usize) -> Vec<i64> {
    let query = format!("SELECT id FROM {}.users ORDER BY id", schema(shard));
    let rows = fleet.home(shard).connect().query(&query, &[]).expect("users can be read");
    rows.iter().map(|row| row.get(0)).collect()
}
