//! One server's life in the campaign, and its random choices.

use crate::journal::{Journal, Sequence, marks};
use crate::ledger::{Ledger, Promise};
use crate::load::{self, CREW, Lead, prepare};
use crate::tally::Tally;
use fastrand::Rng;
use pg_snowflake_harness::prelude::*;
use std::ops::Range;
use std::thread::sleep;
use std::time::Duration;

/// The least number of IDs that are taken after the last fault.
pub const LAST_ERA_IDS: u64 = 1000;

/// Some rounds of one fault on one server, or one set of servers.
pub struct Episode {
    /// The source of all choices: the same seed makes the same choices, but not the same race.
    pub rng: Rng,
    pub rounds: i32,
    /// Which of two variants is next. Not random, so that even the shortest form has both.
    pub is_second: bool,
    /// Whether servers that share a shard have a registry of leases.
    pub has_leases: bool,
}

impl Episode {
    /// Half of the servers follow the clock, and all returned IDs count. On the other half the clock has no effect, and
    /// committed IDs count.
    pub fn lead_and_promise(&mut self) -> (Lead, Promise) {
        self.alternate((Lead::AnHour, Promise::Committed), (Lead::None, Promise::Returned))
    }

    pub fn alternate<T>(&mut self, first: T, second: T) -> T {
        self.is_second = !self.is_second;
        if self.is_second { first } else { second }
    }

    /// One server for all rounds, in each of which something happens to it under load. `happen` returns what the workers got.
    pub fn on_one_server(
        &mut self,
        builder: Builder,
        (lead, promise): (Lead, Promise),
        happen: impl Fn(&mut Self, &mut Cluster, i32) -> Vec<Journal>,
    ) -> Tally {
        let mut cluster = builder.start();
        prepare(&cluster, lead);
        let mut ledger = Ledger::default();
        for round in 0..self.rounds {
            let journals = happen(self, &mut cluster, round);
            close_era(&cluster, &mut ledger, &journals, promise);
        }
        self.last_era(&cluster, ledger, promise)
    }

    /// A new server for each round. `happen` returns the server that goes on in its place, and what the workers got before.
    pub fn on_new_servers(
        &mut self,
        builder: impl Fn() -> Builder,
        happen: impl Fn(&mut Self, Cluster, Lead) -> (Cluster, Vec<Journal>),
    ) -> Tally {
        let mut tally = Tally::default();
        for _ in 0..self.rounds {
            let (lead, promise) = self.lead_and_promise();
            let server = builder().start();
            prepare(&server, lead);
            let (other, journals) = happen(self, server, lead);
            tally += self.go_on_elsewhere(&other, &journals, promise);
        }
        tally
    }

    /// Runs the load on the server that took over, and returns the tally of the episode.
    fn go_on_elsewhere(&mut self, server: &Cluster, journals: &[Journal], promise: Promise) -> Tally {
        let mut ledger = Ledger::default();
        ledger.close_era(journals, promise);
        if promise == Promise::Returned {
            ledger.close_era(&[let_the_clock_pass(server, journals)], promise);
        }
        self.last_era(server, ledger, promise)
    }

    /// Runs the load after the last fault, and returns the tally of the episode.
    pub fn last_era(&mut self, server: &Cluster, mut ledger: Ledger, promise: Promise) -> Tally {
        let load = load::start(server, &mut self.rng, i32::MAX - 100, &CREW);
        load.wait_until_done(LAST_ERA_IDS);
        let journals = load.stop();
        let returned: usize = journals.iter().map(|journal| journal.returned.len()).sum();
        assert!(returned >= LAST_ERA_IDS as usize, "the server returns no IDs after the last fault");
        ledger.close_era(&journals, promise);
        ledger.tally()
    }

    pub fn sleep_ms(&mut self, range: Range<u64>) {
        sleep(Duration::from_millis(self.rng.u64(range)));
    }

    /// A random number of seconds from a millisecond up to `most`, as often below a second as above.
    pub fn step_seconds(&mut self, most: f64) -> f64 {
        let (least, most) = if self.rng.bool() { (0.001_f64, 1.0) } else { (1.0, most) };
        least * (most / least).powf(self.rng.f64())
    }
}

/// Enters what was returned until the fault, and checks that the server kept what it had acknowledged.
pub fn close_era(cluster: &Cluster, ledger: &mut Ledger, journals: &[Journal], promise: Promise) {
    assert_kept(cluster, journals);
    ledger.close_era(journals, promise);
    if promise == Promise::Returned {
        ledger.close_era(&[let_the_clock_pass(cluster, journals)], promise);
    }
}

/// Asserts that the server has every commit that it acknowledged. If it has not, the harness or the server is wrong, and
/// nothing can be concluded about IDs.
pub fn assert_kept(cluster: &Cluster, journals: &[Journal]) {
    let marks = marks(&mut cluster.connect());
    for &Journal { worker, marked, .. } in journals {
        let kept = marks.get(&worker).copied().unwrap_or(0);
        assert!(kept >= marked, "worker {worker}: {marked} acknowledged, {kept} kept");
    }
}

/// Waits until the server's clock has passed all returned IDs, and moves the sequences there: plain `nextval` counts on
/// from the sequence's position and ignores the clock. Returns what it took.
fn let_the_clock_pass(cluster: &Cluster, journals: &[Journal]) -> Journal {
    let returned = journals.iter().flat_map(|journal| &journal.returned);
    let highest = returned.map(|entry| entry.counter).max().unwrap_or(0);
    let mut client = cluster.connect();
    while first_counter_at(clock_of(&mut client)) <= highest {
        sleep(Duration::from_millis(5));
    }
    let mut journal = Journal::new(-1);
    for sequence in Sequence::ALL {
        let row = client.query_one("SELECT snowflake_nextval($1::text::regclass, 5)", &[&sequence.name()]).expect("it is not ahead");
        journal.enter_id(sequence, row.get(0));
    }
    journal
}

fn clock_of(client: &mut Client) -> i64 {
    client.query_one("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint", &[]).expect("a server has a clock").get(0)
}

/// Limits the journals to what is committed according to the marks of a server that lost part of its history.
pub fn cut_to_marks(cluster: &Cluster, journals: &mut [Journal]) {
    let marks = marks(&mut cluster.connect());
    for journal in journals {
        journal.committed = marks.get(&journal.worker).copied().unwrap_or(0);
    }
}
