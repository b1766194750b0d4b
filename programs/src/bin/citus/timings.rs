//! Transactions with homed IDs against the same with other IDs.

use pg_snowflake_harness::ask::run;
use pg_snowflake_harness::citus::{Fleet, TABLES};
use pg_snowflake_harness::wait::{Stop, StopAtEnd};
use pg_snowflake_programs::output::{Claims, say, step};
use pg_snowflake_programs::record::thousands;
use postgres::{Client, Statement};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;

/// How long each of them runs in a round.
const TURN: Duration = Duration::from_millis(1500);

/// On each worker.
const CLIENTS: usize = 2;

/// A client, and its insert into one of the tables.
struct Writer {
    client: Client,
    insert: Statement,
}

/// Times transactions of one row and of three on all workers, the tables in turn.
pub fn compare(fleet: &Fleet, claims: &mut Claims) {
    run(&mut fleet.coordinator(), "TRUNCATE posts, homed_posts");
    // They stay connected, as the connections of Citus between the nodes do.
    let mut writers = TABLES.map(|table| writers(fleet, table));
    for rows in [1, 3] {
        let rows_in_words = if rows == 1 { "a row" } else { "three rows" };
        step(&format!(
            "transactions of {rows_in_words} by {CLIENTS} clients of each worker, the medians of {ROUNDS} rounds:"
        ));
        let (mut other, mut homed, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let mut tps = [0.0; 2];
            for turn in 0..2 {
                let table = (round + turn) % 2;
                tps[table] = transactions_per_second(&mut writers[table], rows);
            }
            other.push(tps[0]);
            homed.push(tps[1]);
            ratios.push(tps[1] / tps[0]);
        }
        let [least, most] =
            [f64::min, f64::max].map(|pick| ratios.iter().copied().reduce(pick).expect("rounds"));
        say(&format!("snowflake_nextval        {:>7} a second", thousands(median(other) as i64)));
        say(&format!(
            "snowflake_nextval_homed  {:>7} a second, {:.2} times as many ({least:.2} to {most:.2})",
            thousands(median(homed) as i64),
            median(ratios.clone())
        ));
        claims.check(median(ratios) > 1.0, "inserts of homed IDs are faster");
    }
}

fn writers(fleet: &Fleet, table: &str) -> Vec<Writer> {
    let workers = (1..fleet.nodes.len()).flat_map(|worker| [worker; CLIENTS]);
    let writers = workers.map(|worker| {
        let mut client = fleet.nodes[worker].connect();
        let insert = format!("INSERT INTO {table} (body) VALUES ('a post')");
        let insert = client.prepare(&insert).expect("a table of ours");
        Writer { client, insert }
    });
    writers.collect()
}

fn transactions_per_second(writers: &mut [Writer], rows: usize) -> f64 {
    let stop = Stop::default();
    let began = Instant::now();
    let transactions: usize = scope(|scope| {
        let at_the_end = StopAtEnd(&stop);
        let stop = &stop;
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|Writer { client, insert }| {
                scope.spawn(move || {
                    let mut done = 0;
                    while !stop.is_called() {
                        transact(client, insert, rows).expect("rows can be inserted");
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        sleep(TURN);
        drop(at_the_end);
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).sum()
    });
    transactions as f64 / began.elapsed().as_secs_f64()
}

/// One row needs no transaction of its own.
fn transact(client: &mut Client, insert: &Statement, rows: usize) -> Result<(), postgres::Error> {
    if rows == 1 {
        return client.execute(insert, &[]).map(drop);
    }
    let mut transaction = client.transaction()?;
    for _ in 0..rows {
        transaction.execute(insert, &[])?;
    }
    transaction.commit()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
