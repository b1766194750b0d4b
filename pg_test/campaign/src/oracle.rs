//! Random statements on two servers: one calls core's `nextval()` and `currval()`, the other ours. Both execute the same steps, one
//! statement at a time, in several sessions. At the end of a round, both crash, or a synchronous standby takes over ours. The steps
//! depend on the seed alone, and each ends before the next begins, so a seed replays a run. Only the counters differ, which are
//! [`AHEAD_MS`] ahead of the clock.
//!
//! The sequences are days ahead of the clock, and `max_lead` permits it. So the clock has no effect, and the counters of our IDs are
//! core's values. The oracle demands:
//!
//! 1. Each statement ends alike on both servers: in success, or with the same SQLSTATE.
//! 2. The counters of the IDs equal core's values, and so does the `last_value` of a sequence.
//! 3. A session's counters of a sequence increase, whatever resets the sequence. After a crash or a promotion, the next counter is
//!    above all that are guaranteed.
//! 4. `snowflake_currval()` returns the ID whose counter `currval()` returns.
//!
//! Where we promise something else than core, the oracle models it:
//!
//! - Where a sequence falls back (`RESTART`, a rollback of `ALTER SEQUENCE`), core repeats the session's values, and ours continues
//!   above them (3). After such a call, and after a crash, which skips at most 32 values of core's and 100 ms of ours, both servers
//!   end all transactions, forget what sessions have cached, and set the sequences to a higher counter.
//! - Our sessions drop a cached counter earlier than core's: after each error and each `ALTER SEQUENCE`. Batches and homed IDs do not
//!   use the cache at all. So only the sequence `c` has a cache, and only single IDs are taken from it. Its counters are not compared
//!   with core's, but no two sessions have one in common, and none was cached before an `ALTER SEQUENCE` that has committed since.
//! - Where a cursor calls for a sequence that has been dropped, core raises XX000, an internal error, and ours 42P01.
//! - In a transaction, a session hears of what others have committed when it looks something up in the catalogs, and the two calls
//!   do not look up the same. So each session does before it calls ([`HEAR`]). Outside of a transaction, nothing helps it.
//! - Our `currval` does not see `setval()`, so the session that calls it does not ask for it.
//! - Left out: sequences that we refuse (`INCREMENT`, `CYCLE`, a low `MAXVALUE`), and unfinished batches, which have taken more from
//!   the page than they returned.
//!
//! What is guaranteed: an ID that a session has received before any session's commit of a row was acknowledged, since WAL is flushed
//! in order; or that a statement outside of a transaction has returned, as long as each that was taken since then was, too. IDs that
//! were taken after an uncommitted `ALTER SEQUENCE` are guaranteed only if that commits.

mod server;
mod steps;

use crate::episode::Episode;
use crate::tally::Tally;
use pg_snowflake_harness::id;
use server::{Outcome, Server, Side};
use std::collections::{HashMap, HashSet};
use steps::{Crash, Effect, SESSIONS, SPACING, Step, Yields};

const STEPS: usize = 400;

/// How far the sequences are ahead of the clock: half of the longest lead that can be permitted.
const AHEAD_MS: i64 = 12 * 86_400_000;

/// How many of the last steps a failure shows.
const SHOWN: usize = 100;

/// Locks a catalog, which processes the invalidations of other sessions, and releases it.
const HEAR: &str = "SELECT pg_get_serial_sequence('pg_catalog.pg_class', 'oid')";

/// The IDs of a cursor that is held.
const FETCH_HELD: &str = "FETCH ALL FROM held; CLOSE held";

/// Ends what a round has made unlogged.
const LOG_ALL: &str = "ALTER TABLE app.t SET LOGGED;
    DO $$ DECLARE seq regclass; BEGIN
        FOR seq IN SELECT oid FROM pg_class WHERE relkind = 'S' AND relpersistence = 'u' LOOP
            EXECUTE format('ALTER SEQUENCE %s SET LOGGED', seq);
        END LOOP;
    END $$";

pub fn beside_core(episode: &mut Episode) -> Tally {
    let first = id::first_counter_at(id::now_ms() + AHEAD_MS);
    let mut oracle = Oracle::new(first);
    for round in 0..i64::from(episode.rounds) {
        let first = first + (1 + round) * (STEPS as i64 + 1) * SPACING;
        let crash = Crash::draw(&mut episode.rng);
        let steps = steps::draw(&mut episode.rng, STEPS, first);
        if let Err(problem) = oracle.round(&steps, crash, first) {
            println!("round {round}: {}\n{}", problem.text(), oracle.history.join("\n"));
            match problem {
                Problem::Unlike(_) => oracle.tally.unlike_core += 1,
                Problem::Repeated(_) => oracle.tally.repeats += 1,
            }
            break;
        }
    }
    oracle.tally
}

/// What breaks a promise.
enum Problem {
    /// Core does something else.
    Unlike(String),
    /// A guaranteed counter is returned again, or one below it.
    Repeated(String),
}

impl Problem {
    fn text(&self) -> &str {
        match self {
            Problem::Unlike(text) | Problem::Repeated(text) => text,
        }
    }
}

type Checked<T = ()> = Result<T, Problem>;

fn unlike<T>(core: impl std::fmt::Debug, ours: impl std::fmt::Debug) -> Checked<T> {
    Err(Problem::Unlike(format!("core {core:?}, ours {ours:?}")))
}

/// A sequence's OID on our server.
type Oid = u32;

/// What the oracle knows of a session on our server.
#[derive(Default)]
struct Session {
    is_in_transaction: bool,
    /// The transaction has failed, and its commit may be a rollback.
    has_failed: bool,
    has_written: bool,
    has_altered: bool,
    /// It has a cursor whose IDs its commit generates.
    holds: bool,
    /// What it took after altering a sequence.
    pending: Vec<(Oid, i64)>,
    last: HashMap<Oid, i64>,
    /// The sequence `c` when it was last used.
    cached: Option<(Oid, Version)>,
}

/// The committed row of the sequence `c` in `pg_sequence`.
#[derive(Clone, PartialEq, Eq)]
struct Version(String);

struct Oracle {
    core: Server,
    ours: Server,
    sessions: Vec<Session>,
    /// The highest value of core's, or counter of ours, that anybody has seen of each sequence.
    highest: HashMap<Oid, i64>,
    of_cached: HashSet<(Oid, i64)>,
    /// The highest counters that become guaranteed with the next commit that is flushed.
    returned: HashMap<Oid, i64>,
    /// The highest guaranteed counters.
    guaranteed: HashMap<Oid, i64>,
    /// Sequences of which a transaction has taken counters since the last commit that was flushed: it may have written the record
    /// that covers the next ones, too.
    in_transactions: HashSet<Oid>,
    history: Vec<String>,
    tally: Tally,
}

impl Oracle {
    fn new(counter: i64) -> Self {
        Oracle {
            core: Server::start(Side::Core, counter),
            ours: Server::start(Side::Ours, counter),
            sessions: SESSIONS.map(|_| Session::default()).into(),
            highest: HashMap::new(),
            of_cached: HashSet::new(),
            returned: HashMap::new(),
            guaranteed: HashMap::new(),
            in_transactions: HashSet::new(),
            history: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// The steps, each with counters `SPACING` above those of the last, and the crash.
    fn round(&mut self, steps: &[Step], crash: Crash, first: i64) -> Checked {
        self.core.expect(crash);
        self.ours.expect(crash);
        for (step, counter) in steps.iter().zip((first..).step_by(SPACING as usize)) {
            self.tally.steps += 1;
            self.note(step.to_string());
            if !self.perform(step)? {
                self.set_all(counter + SPACING / 2)?;
            }
        }
        // PostgreSQL does not start after a crash that loses the abort record of a transaction with new unlogged storage: redo
        // creates its init fork, and the main fork of before is still there ("could not create file: File exists").
        if steps.iter().any(steps::unlogs) {
            self.beside("INSERT INTO app.marks DEFAULT VALUES")?;
            self.enter_flush();
        }
        self.note(format!("{crash:?}"));
        self.crash(crash)?;
        self.beside(LOG_ALL)?;
        self.set_all(first + steps.len() as i64 * SPACING)
    }

    fn note(&mut self, what: String) {
        self.history.push(what);
        let too_many = self.history.len().saturating_sub(SHOWN);
        self.history.drain(..too_many);
    }

    /// Executes the step. Returns whether the sequences of both servers are still at the same counter.
    fn perform(&mut self, step: &Step) -> Checked<bool> {
        match step {
            Step::Beside(sql) => self.beside(sql).map(|_| true),
            Step::Reconnect { by } => {
                self.core.reconnect(*by);
                self.ours.reconnect(*by);
                self.sessions[*by] = Session::default();
                Ok(true)
            }
            Step::Execute { by, sql, yields, effect } => {
                let generates_held = self.generates_held(*by, *effect);
                if self.sessions[*by].is_in_transaction && (*yields != Yields::Nothing || generates_held) {
                    self.core.execute(*by, HEAR);
                    self.ours.execute(*by, HEAR);
                }
                let cached = if *yields == Yields::CachedIds { self.state_of_cached() } else { None };
                let outcome = self.execute(*by, sql)?;
                let is_alike = match yields {
                    Yields::Nothing if generates_held && outcome.is_success => {
                        let held = self.execute(*by, FETCH_HELD)?;
                        self.check_ids(*by, &held)?
                    }
                    Yields::Nothing => true,
                    Yields::Ids => self.check_ids(*by, &outcome)?,
                    Yields::CachedIds => self.check_cached_ids(*by, &outcome, cached)?,
                    Yields::Current => self.check_current(*by, &outcome, false)?,
                    Yields::CachedCurrent => self.check_current(*by, &outcome, true)?,
                    Yields::State => self.check_state(&outcome)?,
                };
                self.enter_effect(*by, *effect, outcome.is_success);
                Ok(is_alike)
            }
        }
    }

    /// Whether the statement generates all IDs of a cursor that is held, if it succeeds. Nobody has seen them.
    fn generates_held(&self, by: usize, effect: Effect) -> bool {
        let Session { is_in_transaction, holds, .. } = self.sessions[by];
        effect == Effect::Hold && !is_in_transaction || effect == Effect::Commit && holds
    }

    fn execute(&mut self, by: usize, sql: &str) -> Checked<Both> {
        let both = Both::new(self.core.execute(by, sql), self.ours.execute(by, sql))?;
        self.history.last_mut().expect("the step").push_str(&format!(" -- {} {:?} {:?}", both.sqlstate, both.core, both.ours));
        Ok(both)
    }

    fn beside(&mut self, sql: &str) -> Checked<Both> {
        Both::new(self.core.beside(sql), self.ours.beside(sql))
    }

    /// New IDs. A counter that is not core's is right where core repeats what somebody has seen.
    fn check_ids(&mut self, by: usize, outcome: &Both) -> Checked<bool> {
        let mut is_alike = true;
        for (core, ours) in outcome.core.iter().zip(&outcome.ours) {
            let (seq, core, ours) = (ours.seq, core.value, id::counter(ours.value));
            let is_seen = self.highest.get(&seq).is_some_and(|&highest| core <= highest);
            if is_alike && core != ours {
                if !is_seen || ours < core {
                    return unlike(core, ours);
                }
                is_alike = false;
            }
            self.enter(by, seq, ours)?;
        }
        for (core, ours) in outcome.core.iter().zip(&outcome.ours) {
            raise(&mut self.highest, ours.seq, core.value.max(id::counter(ours.value)));
        }
        Ok(is_alike)
    }

    fn check_cached_ids(&mut self, by: usize, outcome: &Both, state: Option<(Version, i64)>) -> Checked<bool> {
        for row in &outcome.ours {
            let (seq, counter) = (row.seq, id::counter(row.value));
            let session = &mut self.sessions[by];
            if !session.has_altered && !self.of_cached.insert((seq, counter)) {
                return Err(Problem::Repeated(format!("{counter} is returned twice")));
            }
            let known = session.cached.take();
            if let (Some((cached_seq, known)), Some((version, last_value))) = (known, &state)
                && cached_seq == seq
                && known != *version
                && !session.has_altered
                && counter <= *last_value
            {
                return Err(Problem::Unlike(format!("{counter} was cached before ALTER SEQUENCE")));
            }
            session.cached = state.clone().map(|(version, _)| (seq, version));
            self.enter(by, seq, counter)?;
        }
        Ok(true)
    }

    /// The committed version of `c`, and the last value taken. `None` while a session has locked it.
    fn state_of_cached(&mut self) -> Option<(Version, i64)> {
        let outcome = self.ours.beside(
            "SELECT q.xmin, s.last_value - (NOT s.is_called)::int FROM app.c AS s, pg_sequence AS q WHERE q.seqrelid = 'app.c'::regclass",
        );
        let row = outcome.rows.first()?;
        Some((Version(row[0].clone()), number(&row[1])))
    }

    /// Checks that the counter is above the session's last, and enters it.
    fn enter(&mut self, by: usize, seq: Oid, counter: i64) -> Checked {
        let session = &mut self.sessions[by];
        if let Some(last) = session.last.insert(seq, counter)
            && last >= counter
        {
            return Err(Problem::Repeated(format!("{counter} after {last} in session {by}")));
        }
        self.tally.returned += 1;
        if session.is_in_transaction {
            self.in_transactions.insert(seq);
        }
        if session.has_altered {
            session.pending.push((seq, counter));
            return Ok(());
        }
        raise(&mut self.returned, seq, counter);
        if !self.in_transactions.contains(&seq) {
            self.tally.promised += 1;
            raise(&mut self.guaranteed, seq, counter);
        }
        Ok(())
    }

    fn check_current(&mut self, by: usize, outcome: &Both, has_cache: bool) -> Checked<bool> {
        for (core, ours) in outcome.core.iter().zip(&outcome.ours) {
            let last = self.sessions[by].last.get(&ours.seq).copied();
            let expected = if has_cache { last } else { Some(core.value) };
            if Some(id::counter(ours.value)) != expected {
                return unlike(expected, id::counter(ours.value));
            }
        }
        Ok(true)
    }

    fn check_state(&mut self, outcome: &Both) -> Checked<bool> {
        let mut is_alike = true;
        for (core, ours) in outcome.core.iter().zip(&outcome.ours) {
            if (core.value, &core.rest) != (ours.value, &ours.rest) {
                let highest = self.highest.get(&ours.seq).copied().unwrap_or(0);
                if core.value > highest || ours.value < core.value {
                    return unlike(core, ours);
                }
                is_alike = false;
            }
        }
        Ok(is_alike)
    }

    /// What the statement means for the session's transaction and the guaranteed IDs.
    fn enter_effect(&mut self, by: usize, effect: Effect, is_success: bool) {
        let session = &mut self.sessions[by];
        session.has_failed |= session.is_in_transaction && !is_success;
        match effect {
            Effect::Begin => session.is_in_transaction |= is_success,
            Effect::Commit => {
                if is_success && !session.has_failed {
                    let pending = std::mem::take(&mut session.pending);
                    let is_flushed = session.is_in_transaction && session.has_written;
                    pending.iter().for_each(|&(seq, last)| raise(&mut self.returned, seq, last));
                    if is_flushed {
                        self.enter_flush();
                    }
                }
                self.end_transaction(by);
            }
            Effect::End => self.end_transaction(by),
            Effect::RollBackTo if is_success => {
                session.has_failed = false;
                session.has_written = false;
                session.pending.clear();
            }
            Effect::Write if is_success && session.is_in_transaction => session.has_written = true,
            Effect::Write if is_success => self.enter_flush(),
            Effect::Hold => session.holds |= is_success && session.is_in_transaction,
            Effect::Alter => session.has_altered |= session.is_in_transaction,
            Effect::Lower => {
                session.has_altered |= session.is_in_transaction;
                self.returned.clear();
                self.guaranteed.clear();
                self.of_cached.clear();
            }
            _ => {}
        }
    }

    fn enter_flush(&mut self) {
        for (&seq, &counter) in &self.returned {
            raise(&mut self.guaranteed, seq, counter);
        }
        self.in_transactions.clear();
    }

    fn end_transaction(&mut self, by: usize) {
        let Session { last, cached, .. } = std::mem::take(&mut self.sessions[by]);
        self.sessions[by] = Session { last, cached, ..Session::default() };
    }

    /// Crashes both servers. The next counter of each sequence must be above the guaranteed ones.
    fn crash(&mut self, crash: Crash) -> Checked {
        self.core.crash(crash);
        self.ours.crash(crash);
        self.sessions = SESSIONS.map(|_| Session::default()).into();
        self.returned.clear();
        self.in_transactions.clear();
        self.of_cached.clear();
        self.end_prepared()?;
        // A crash resets an unlogged sequence.
        let sequences = self.ours.beside("SELECT oid FROM pg_class WHERE relkind = 'S' AND relpersistence = 'p' ORDER BY oid");
        for row in sequences.rows {
            let seq = number(&row[0]) as Oid;
            let next = self.ours.beside(&format!("SELECT snowflake_nextval({seq}::regclass, 5)"));
            let Some(row) = next.rows.first() else {
                return Err(Problem::Unlike(format!("no ID after a crash: {next:?}")));
            };
            let next = id::counter(number(&row[0]));
            if let Some(&guaranteed) = self.guaranteed.get(&seq)
                && next <= guaranteed
            {
                return Err(Problem::Repeated(format!("{next} after a crash, {guaranteed} is guaranteed")));
            }
        }
        Ok(())
    }

    fn end_prepared(&mut self) -> Checked {
        for gid in ["p", "q"] {
            self.beside(&format!("COMMIT PREPARED '{gid}'"))?;
        }
        Ok(())
    }

    /// Ends all transactions, and sets the sequences of both servers to that counter.
    fn set_all(&mut self, counter: i64) -> Checked {
        for by in 0..SESSIONS.len() {
            for sql in ["ROLLBACK", "DISCARD SEQUENCES"] {
                let _ = self.execute(by, sql)?;
            }
            self.end_transaction(by);
        }
        self.end_prepared()?;
        self.beside(&format!(
            "SELECT relname, setval(oid, {counter}) FROM pg_class WHERE relkind = 'S' AND relpersistence <> 't'
             AND relname <> 'c' ORDER BY relname"
        ))?;
        Ok(())
    }
}

/// Rows of both servers, of a statement that has ended alike.
struct Both {
    sqlstate: String,
    is_success: bool,
    core: Vec<Row>,
    ours: Vec<Row>,
}

impl Both {
    fn new(core: Outcome, ours: Outcome) -> Checked<Self> {
        let is_dropped = core.sqlstate == "XX000" && ours.sqlstate == "42P01";
        if !is_dropped && (&core.sqlstate, core.rows.len()) != (&ours.sqlstate, ours.rows.len()) {
            return unlike(core, ours);
        }
        let is_success = ours.is_success();
        let [core_rows, our_rows] = [core.rows, ours.rows].map(|rows| rows.iter().map(|cells| Row::new(cells)).collect());
        Ok(Both { sqlstate: ours.sqlstate, is_success, core: core_rows, ours: our_rows })
    }
}

/// A value, and the sequence that it is of.
#[derive(Debug)]
struct Row {
    value: i64,
    seq: Oid,
    rest: Vec<String>,
}

impl Row {
    fn new(cells: &[String]) -> Self {
        let number = |place: usize| cells.get(place).and_then(|cell| cell.parse().ok());
        Row { value: number(0).unwrap_or(0), seq: number(1).unwrap_or(0) as Oid, rest: cells.iter().skip(2).cloned().collect() }
    }
}

fn raise(counters: &mut HashMap<Oid, i64>, seq: Oid, counter: i64) {
    let highest = counters.entry(seq).or_insert(counter);
    *highest = counter.max(*highest);
}

fn number(text: &str) -> i64 {
    text.parse().expect("a bigint")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steps::HOLD;

    #[test]
    fn the_ids_of_a_held_cursor_are_known_and_compared() {
        let first = id::first_counter_at(id::now_ms() + AHEAD_MS);
        let mut oracle = Oracle::new(first);
        let step = |sql: &str, yields, effect| Step::Execute { by: 0, sql: sql.to_owned(), yields, effect };
        let [begin, hold, commit] = [("BEGIN", Effect::Begin), (HOLD, Effect::Hold), ("COMMIT", Effect::Commit)]
            .map(|(sql, effect)| step(sql, Yields::Nothing, effect));
        let take = step("SELECT next('a'), 'a'::regclass::oid", Yields::Ids, Effect::Nothing);
        for (hold, first) in [vec![hold.clone()], vec![begin, hold.clone(), commit]].iter().zip((first..).step_by(SPACING as usize)) {
            // Core repeats the last two IDs of the cursor, and ours goes on above them.
            let restart = step(&format!("ALTER SEQUENCE a RESTART {}", first + 1), Yields::Nothing, Effect::Lower);
            for step in hold.iter().chain([&restart]) {
                oracle.note(step.to_string());
                assert!(matches!(oracle.perform(step), Ok(true)), "{:?}", oracle.history);
            }
            oracle.note(take.to_string());
            assert!(matches!(oracle.perform(&take), Ok(false)), "{:?}", oracle.history);
            assert!(oracle.set_all(first + SPACING - 1).is_ok());
        }
        oracle.ours.beside(&format!("SELECT setval('a', {})", first + 3 * SPACING));
        assert!(matches!(oracle.perform(&hold), Err(Problem::Unlike(_))), "{:?}", oracle.history);
    }
}
