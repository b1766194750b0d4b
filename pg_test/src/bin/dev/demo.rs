//! Two shards, a million rows from eight clients, and checks of their IDs. The SQL is in `pg_test/demo`.

use crate::tools::Result;
use pg_snowflake_servertest::output::{Claims, say, step};
use pg_snowflake_servertest::record::thousands;
use pg_snowflake_servertest::{Cluster, SUPERUSER};
use std::process::ExitCode;
use std::time::Instant;

const ROWS: i64 = 1_000_000;
const ROWS_PER_INSERT: i64 = 100;
const CLIENTS_PER_SHARD: i64 = 4;

/// Runs the demo; fails if a claim does not hold.
pub fn run() -> Result<ExitCode> {
    step("starting two private servers: shard 1 and shard 2");
    let shards = [start(), start()];
    step("setting the number of each, and creating the same table on both:");
    for (shard, number) in shards.iter().zip(1..) {
        let set = format!("ALTER DATABASE {SUPERUSER} SET pg_snowflake.shard_id = {number}");
        say(&set);
        shard.psql(SUPERUSER, &set);
        shard.psql(SUPERUSER, include_str!("../../../demo/schema.sql"));
    }
    say("CREATE TABLE posts (id bigint PRIMARY KEY DEFAULT snowflake_nextval('posts_id_seq'), …)");
    insert(&shards);
    step("collecting the IDs of both shards in one table, to look at them together");
    gather(&shards)?;
    let [first, _] = &shards;
    step("some rows from the middle of the run, their IDs taken apart by snowflake_decode(id):");
    print!("{}", first.psql(SUPERUSER, include_str!("../../../demo/sample.sql")));
    step("rows per shard, found from the IDs alone by snowflake_shard_id(id):");
    let per_shard = "SELECT snowflake_shard_id(id) AS shard_id, count(*) FROM posts_of_both GROUP BY 1 ORDER BY 1";
    print!("{}", first.psql(SUPERUSER, per_shard));
    step("checking the IDs of both shards:");
    let check = include_str!("../../../demo/check.sql");
    let answers =
        first.psql(SUPERUSER, &format!("\\pset tuples_only on\n\\pset format unaligned\n{check}"));
    let mut claims = Claims::default();
    for (holds, claim) in claims_in(&answers)? {
        claims.check(holds, claim);
    }
    Ok(claims.verdict())
}

/// A server that flushes its commits, as a user's does.
fn start() -> Cluster {
    let settings = [
        ("fsync", "on"),
        ("shared_buffers", "128MB"),
        ("max_wal_size", "4GB"),
        ("work_mem", "64MB"),
    ];
    let builder = Cluster::builder().background_work();
    settings.iter().fold(builder, |builder, (name, value)| builder.setting(name, value)).start()
}

fn insert(shards: &[Cluster; 2]) {
    let clients = CLIENTS_PER_SHARD * 2;
    step(&format!(
        "inserting {} rows from {clients} clients at once, {ROWS_PER_INSERT} rows a transaction, each commit flushed \
         to disk",
        thousands(ROWS)
    ));
    let options = [
        "--protocol=prepared".to_owned(),
        format!("--define=rows={ROWS_PER_INSERT}"),
        format!("--client={CLIENTS_PER_SHARD}"),
        format!("--jobs={CLIENTS_PER_SHARD}"),
        format!("--transactions={}", ROWS / clients / ROWS_PER_INSERT),
    ];
    let script = include_str!("../../../demo/insert.sql");
    let started = Instant::now();
    std::thread::scope(|scope| {
        for shard in shards {
            scope.spawn(|| shard.pgbench(SUPERUSER, &options, script));
        }
    });
    let seconds = started.elapsed().as_secs_f64();
    // Whole rows: a fraction has no meaning.
    let rate = (ROWS as f64 / seconds) as i64;
    say(&format!("{seconds:.1} s: {} rows per second", thousands(rate)));
}

fn gather([first, second]: &[Cluster; 2]) -> Result {
    const COPY: &str = "COPY posts_of_both FROM STDIN (FORMAT binary)";
    const ROWS_OF_SECOND: &str =
        "COPY (SELECT 2, began, id, ended, body FROM posts) TO STDOUT (FORMAT binary)";
    first.psql(SUPERUSER, include_str!("../../../demo/gather.sql"));
    let (mut from, mut to) = (second.connect(), first.connect());
    let mut copy = || -> std::result::Result<(), Box<dyn std::error::Error>> {
        let mut writer = to.copy_in(COPY)?;
        std::io::copy(&mut from.copy_out(ROWS_OF_SECOND)?, &mut writer)?;
        writer.finish()?;
        Ok(to.batch_execute("ANALYZE posts_of_both")?)
    };
    copy().map_err(|error| format!("the rows of shard 2 cannot be copied to shard 1: {error}"))
}

/// The claims, and whether each holds, from lines of the form "t|claim".
fn claims_in(answers: &str) -> Result<Vec<(bool, &str)>> {
    let lines = answers.lines().filter(|line| !line.is_empty());
    let claims: Vec<(bool, &str)> = lines
        .map(|line| match line.split_once('|') {
            Some(("t", claim)) => Ok((true, claim)),
            Some(("f", claim)) => Ok((false, claim)),
            _ => Err(format!("the checks answer \"{line}\"")),
        })
        .collect::<Result<_>>()?;
    if claims.is_empty() { Err("the checks answer nothing".to_owned()) } else { Ok(claims) }
}

#[cfg(test)]
mod tests {
    use super::claims_in;

    #[test]
    fn a_claim_holds_only_where_the_server_says_so() {
        assert_eq!(
            claims_in("t|one\n\nf|two | three\n").unwrap(),
            [(true, "one"), (false, "two | three")]
        );
        assert!(claims_in("t|one\n|unknown\n").is_err());
        assert!(claims_in("").is_err());
    }
}
