//! What happens to servers with writers on all of them, and how long they then return no ID.

use super::writers::Writers;
use pg_snowflake_harness::id::count_repeats;
use postgres::Config;
use std::fmt::Write as _;
use std::io::Write as _;

/// Servers of which one is the primary.
pub trait Members {
    /// How a superuser connects to each, without a network.
    fn configs(&self) -> Vec<Config>;

    /// Waits until one is the primary, and all others replicate from it.
    fn wait_until_whole(&self);
}

pub struct Events {
    writers: Writers,
    title: String,
}

impl Events {
    pub fn start(title: String, members: &impl Members) -> Self {
        Events { writers: Writers::start(members.configs()), title }
    }

    /// Has something happen that many times, each time once the servers are whole again and return IDs. Prints how many seconds they have
    /// returned none.
    pub fn run<M: Members>(&mut self, what: &str, times: u32, members: &mut M, mut event: impl FnMut(&mut M)) {
        let mut seconds = String::new();
        for _ in 0..times {
            members.wait_until_whole();
            let before = self.writers.wait_for_an_id();
            event(members);
            members.wait_until_whole();
            let after = self.writers.wait_for_an_id();
            write!(seconds, " {:.1}", self.writers.without_ids(before, after).as_secs_f64()).unwrap();
        }
        self.print(&format!("{what}: seconds without IDs:{seconds}"));
    }

    /// Returns how many IDs were returned again, after it has printed that.
    pub fn stop(self) -> usize {
        let Events { writers, title } = self;
        let ids = writers.stop();
        let (returned, repeats) = (ids.len(), count_repeats(ids));
        print(&format!("{title}: {repeats} duplicates in {returned} IDs"));
        repeats
    }

    pub fn print(&self, what: &str) {
        print(&format!("{}: {what}", self.title));
    }
}

/// Prints a line even if the test passes.
fn print(line: &str) {
    std::io::stdout().write_all(format!("\n{line}\n").as_bytes()).unwrap();
}
