//! A model: several servers that want one shard, with clocks that disagree, pauses between any two steps, copies, crashes,
//! requests that arrive late or twice, and a registry that is restored from a backup.

use super::*;
use crate::clock::Now;
use crate::counter::{self, Decision, Policy, Reading, Request, Run, State};
use crate::lease::Ticks;
use pg_snowflake_ids::layout::{Layout, Packed};
use pg_snowflake_ids::presets::SONYFLAKE;
use proptest::prelude::*;
use std::collections::HashMap;

/// Ticks of 10 ms, so that two servers often meet in one.
const LAYOUT: Layout = SONYFLAKE;

/// Which server process issued a tick: a tick of two of them could be the same ID.
type Issuer = (usize, u32);

/// A server that wants the one shard of the model: its worker, and a backend.
#[derive(Clone)]
struct Server {
    /// The offset of its clock from the registry's.
    clock_us: i64,
    node: &'static str,
    incarnation: Uuid,
    /// Whether the memory was made anew after a crash, and no answer has counted since.
    is_inherited: bool,
    /// Counts what loses the memory of what was issued: crashes.
    boot: u32,
    /// That of the next claim, which stays the same until an answer counts.
    nonce: Uuid,
    /// The claim whose answer the worker waits for.
    waits_for: Option<Uuid>,
    serial: Option<i64>,
    /// What its disk has.
    known_serial: Option<i64>,
    span: Span,
    /// The serial of the lease that the worker has closed, and not yet released.
    closed: Option<i64>,
    mark_us: i64,
    /// The last counter, which a crash loses: that of an unlogged sequence.
    state: State,
    backend: Backend,
}

/// What a backend is about to do next. It can be paused before.
#[derive(Clone, Copy)]
enum Backend {
    Idle,
    /// It has looked at the span, and raises the mark for this run.
    Marks(Run),
    /// It reads the span again, and writes.
    Writes(Run),
    /// It returns the rest of a run.
    Returns(Run),
}

impl Server {
    fn ticks(&self) -> Ticks {
        self.span.ticks(&LAYOUT)
    }

    fn permits(&self, run: Run) -> bool {
        [run.first, run.last].iter().all(|&counter| self.ticks().contains(LAYOUT.tick_of(counter)))
    }

    fn raise_mark(&mut self, run: Run) {
        self.mark_us = self.mark_us.max(LAYOUT.instant_of(LAYOUT.tick_of(run.last)));
    }

    /// One that has just started, on a new disk.
    fn new(node: &'static str, incarnation: Uuid, nonce: Uuid) -> Self {
        Server {
            clock_us: 0,
            node,
            incarnation,
            is_inherited: false,
            boot: 0,
            nonce,
            waits_for: None,
            serial: None,
            known_serial: None,
            span: Span::default(),
            closed: None,
            mark_us: i64::MIN,
            state: State { last_value: 1, is_called: false },
            backend: Backend::Idle,
        }
    }

    /// Loses the shared memory, the sessions and the sequences.
    fn crash(&mut self, nonce: Uuid) {
        *self = Server {
            clock_us: self.clock_us,
            is_inherited: true,
            boot: self.boot + 1,
            known_serial: self.known_serial,
            ..Server::new(self.node, self.incarnation, nonce)
        };
    }
}

/// A request on its way.
#[derive(Clone)]
enum Message {
    Claim { server: usize, request: Uuid, claim: Claim<'static> },
    Release(Release),
}

/// What a server does, or what happens to it.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time passes.
    Pass(i64),
    /// The server's clock steps.
    Clock(i64),
    /// The worker sends a claim.
    Send,
    /// The worker sends a claim, which is answered at once.
    Claim,
    /// The server releases the lease, and this one claims it at once.
    HandOver(usize),
    /// A message arrives; it may arrive again.
    Deliver(usize, bool),
    /// A backend looks at the span and decides.
    Look(i64),
    /// It raises the mark.
    RaiseMark,
    /// It reads the span again, and writes.
    Write,
    /// It does all of that without a pause, and before that the worker claims the lease if the server has none.
    Issue(i64),
    /// It returns cached counters of so many ticks.
    Cached(i64),
    /// The worker closes the lease.
    Close,
    /// It reads the mark, and sends the release.
    Release,
    /// A process crashes: shared memory is made anew.
    Crash,
    /// The whole server starts anew.
    Restart,
    /// A copy of its disk starts in place of this server, under the name of the first.
    Copy(usize),
    /// A person reserves the shard for it.
    TakeOver,
    /// A person retires the node that has the shard.
    Retire,
    Backup,
    /// The registry is restored from the backup. Requests do not arrive at another registry than they were sent to.
    Restore,
}

const SERVERS: usize = 3;

struct Model {
    now_us: i64,
    row: Option<Lease>,
    backup: Option<Lease>,
    quiet_until_us: i64,
    servers: Vec<Server>,
    messages: Vec<Message>,
    issued: HashMap<i64, Issuer>,
    granted_last: usize,
    next_uuid: Uuid,
    /// What was issued by others than the first issuer.
    issued_elsewhere: usize,
}

impl Model {
    fn new() -> Self {
        let mut model = Model {
            now_us: NOW,
            row: None,
            backup: None,
            quiet_until_us: i64::MIN,
            servers: Vec::new(),
            messages: Vec::new(),
            issued: HashMap::new(),
            granted_last: 0,
            next_uuid: 0,
            issued_elsewhere: 0,
        };
        for node in ["a", "b", "c"] {
            let [incarnation, nonce] = [(); 2].map(|()| model.uuid());
            model.servers.push(Server::new(node, incarnation, nonce));
        }
        model
    }

    fn uuid(&mut self) -> Uuid {
        self.next_uuid += 1;
        self.next_uuid
    }

    fn moment(&self) -> Moment {
        Moment { now_us: self.now_us, quiet_until_us: self.quiet_until_us }
    }

    /// A step of the server, or of the one that has been granted the lease last if there are fewer servers.
    fn step(&mut self, index: usize, step: Step) {
        let index = if index < SERVERS { index } else { self.granted_last };
        match step {
            Step::Pass(us) => self.now_us += us,
            Step::Clock(us) => self.servers[index].clock_us = us,
            Step::Send => self.send(index),
            Step::Deliver(which, keeps) => self.deliver(which, keeps),
            Step::Claim => self.claim(index),
            Step::HandOver(to) => {
                self.close(index);
                self.release(index);
                self.deliver_last();
                self.claim(to);
            }
            Step::Look(count) => self.look(index, count),
            Step::RaiseMark => self.raise_mark(index),
            Step::Write => self.write(index),
            Step::Issue(count) => {
                if self.servers[index].serial.is_none() {
                    self.claim(index);
                }
                self.look(index, count);
                self.raise_mark(index);
                self.write(index);
            }
            Step::Cached(ticks) => (0..ticks).for_each(|_| self.cached(index)),
            Step::Close => self.close(index),
            Step::Release => self.release(index),
            Step::Crash => self.crash(index),
            Step::Restart => self.restart(index),
            Step::Copy(to) if index != to => {
                let boot = self.servers[to].boot;
                self.servers[to] = Server { boot, ..self.servers[index].clone() };
                self.restart(to);
            }
            Step::Copy(_) => {}
            Step::TakeOver => {
                self.row = Some(take_over(self.row.as_ref(), self.servers[index].node));
            }
            Step::Retire => self.row = self.row.as_ref().map(retire),
            Step::Backup => self.backup.clone_from(&self.row),
            Step::Restore => {
                self.row.clone_from(&self.backup);
                self.quiet_until_us = self.now_us + LENGTH + S;
                self.messages.clear();
            }
        }
    }

    fn crash(&mut self, index: usize) {
        let nonce = self.uuid();
        self.servers[index].crash(nonce);
    }

    fn restart(&mut self, index: usize) {
        self.crash(index);
        let incarnation = self.uuid();
        let server = &mut self.servers[index];
        (server.incarnation, server.is_inherited) = (incarnation, false);
    }

    /// The worker has one request at a time. What it has closed and not released, it no longer releases.
    fn send(&mut self, from: usize) {
        let request = self.uuid();
        let now_us = self.now_us;
        let server = &mut self.servers[from];
        server.waits_for = Some(request);
        server.closed = None;
        let Server { node, incarnation, serial, known_serial, nonce, clock_us, .. } = *server;
        let claim = by(node, incarnation, serial, nonce, now_us + clock_us);
        let claim = Claim { known_serial: known_serial.max(serial), ..claim };
        self.messages.push(Message::Claim { server: from, request, claim });
    }

    fn claim(&mut self, from: usize) {
        self.send(from);
        self.deliver_last();
    }

    fn deliver_last(&mut self) {
        self.deliver(self.messages.len().saturating_sub(1), false);
    }

    fn deliver(&mut self, which: usize, keeps: bool) {
        if self.messages.is_empty() {
            return;
        }
        let which = which % self.messages.len();
        let message =
            if keeps { self.messages[which].clone() } else { self.messages.swap_remove(which) };
        match message {
            Message::Release(request) => {
                let row = self.row.as_ref();
                if let Some(released) = row.and_then(|row| release(row, request, self.now_us)) {
                    self.row = Some(released);
                }
            }
            Message::Claim { server, request, claim: claimed } => {
                let answer = claim(self.row.as_ref(), claimed, self.moment());
                if let Ok(row) = &answer {
                    self.row = Some(row.clone());
                }
                if self.servers[server].waits_for == Some(request) {
                    self.answer(server, answer);
                }
            }
        }
    }

    /// The worker gets the answer to its claim.
    fn answer(&mut self, index: usize, answer: Result<Lease, Refusal>) {
        let [incarnation, nonce] = [(); 2].map(|()| self.uuid());
        let server = &mut self.servers[index];
        server.waits_for = None;
        match answer {
            // An error, not an answer that counts.
            Err(Refusal::ClockAhead { .. } | Refusal::ClockBehind { .. }) => return,
            Ok(row) => {
                (server.span, server.serial) = (row.span, Some(row.serial));
                server.known_serial = server.serial.max(server.known_serial);
                self.granted_last = index;
            }
            Err(_) => {
                let is_lost = server.serial.is_some() || server.is_inherited;
                (server.span, server.serial) = (Span::default(), None);
                if is_lost {
                    server.incarnation = incarnation;
                }
            }
        }
        (server.nonce, server.is_inherited) = (nonce, false);
    }

    /// The page of the sequence is locked from here to the end of [`Self::write`].
    fn look(&mut self, index: usize, count: i64) {
        let server = &mut self.servers[index];
        let reading_us = self.now_us + server.clock_us;
        let policy = Policy { max_lead_us: S, max_wait_us: 0 };
        let now = Now { reading_us, high_water_us: reading_us };
        let reading = Reading::new(Packed::new(LAYOUT), policy, now);
        let ticks = server.ticks();
        let request = Request { reading: &reading, shard: 0, highest_fetched: None, ticks };
        server.backend = match counter::advance(server.state, i64::MAX, count, request) {
            Decision::Issue(run) => Backend::Marks(run),
            _ => Backend::Idle,
        };
    }

    fn raise_mark(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let Backend::Marks(run) = server.backend else { return };
        server.raise_mark(run);
        server.backend = Backend::Writes(run);
    }

    fn write(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let Backend::Writes(run) = server.backend else { return };
        if !server.permits(run) {
            server.backend = Backend::Idle;
            return;
        }
        server.state = State { last_value: run.last, is_called: true };
        self.issue(index, run);
    }

    fn cached(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let Backend::Returns(run) = server.backend else { return };
        if run.first > run.last || !server.ticks().contains(LAYOUT.tick_of(run.first)) {
            server.backend = Backend::Idle;
            return;
        }
        self.issue(index, run);
    }

    /// Returns the counters of the run's first tick. The others are cached.
    fn issue(&mut self, index: usize, run: Run) {
        let tick = LAYOUT.tick_of(run.first);
        let server = &mut self.servers[index];
        server.backend = Backend::Returns(Run { first: LAYOUT.at_tick(0, tick + 1), ..run });
        let issuer = (index, server.boot);
        let first = *self.issued.entry(tick).or_insert(issuer);
        assert_eq!(first, issuer, "two servers issued IDs of tick {tick}");
        self.issued_elsewhere += usize::from(issuer != (0, 0));
    }

    fn close(&mut self, index: usize) {
        let server = &mut self.servers[index];
        server.waits_for = None;
        server.span = Span::default();
        server.closed = server.serial.take().or(server.closed);
    }

    fn release(&mut self, index: usize) {
        let server = &mut self.servers[index];
        let mark_us = server.mark_us.saturating_add(1);
        if let Some(serial) = server.closed.take() {
            let incarnation = server.incarnation;
            let request = Release { incarnation, serial, mark_us, keep: serial % 2 == 1 };
            self.messages.push(Message::Release(request));
        }
    }
}

/// Draws a step, and the server whose it is. Strategies made of strategies would take longer than the steps.
fn step_of(random: u64) -> (usize, Step) {
    let mut rest = random;
    let mut draw = |below: i64| {
        let drawn = rest % below as u64;
        rest /= below as u64;
        drawn as i64
    };
    let index = draw(2 * SERVERS as i64) as usize;
    let other = draw(SERVERS as i64) as usize;
    // One counter as often as many.
    let count = draw(2) * draw(4_000) + 1;
    let step = match draw(160) {
        0..15 => Step::Pass(match draw(12) {
            0..7 => draw(3_000),
            7..9 => draw(S),
            9..11 => draw(LENGTH),
            _ => draw(2 * LENGTH),
        }),
        15..18 => Step::Clock(match draw(12) {
            0..6 => 0,
            6..10 => draw(2 * S) - S,
            10 => draw(2 * LENGTH) - LENGTH,
            _ => draw(7200 * S) - 3600 * S,
        }),
        18..35 => Step::Claim,
        35..47 => Step::HandOver(other),
        47..54 => Step::Send,
        54..62 => Step::Deliver(draw(8) as usize, draw(5) == 0),
        62..82 => Step::Issue(count),
        82..94 => Step::Look(count),
        94..106 => Step::RaiseMark,
        106..118 => Step::Write,
        118..134 => Step::Cached(1 + draw(40)),
        134..143 => Step::Close,
        143..152 => Step::Release,
        152 => Step::Crash,
        153 => Step::Restart,
        154 => Step::Copy(other),
        155 => Step::TakeOver,
        156 => Step::Retire,
        157..159 => Step::Backup,
        _ => Step::Restore,
    };
    (index, step)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30_000))]

    #[test]
    fn no_two_servers_issue_ids_of_one_tick(
        steps in prop::collection::vec(any::<u64>().prop_map(step_of), 1..300),
    ) {
        let mut model = Model::new();
        steps.into_iter().for_each(|(index, step)| model.step(index, step));
    }
}

/// The model proves nothing if only one server ever issues.
#[test]
fn in_the_model_one_server_takes_over_from_another() {
    let mut model = Model::new();
    let mut issued = |steps: &[(usize, Step)]| {
        steps.iter().for_each(|&(index, step)| model.step(index, step));
        (model.issued.len(), model.issued_elsewhere)
    };
    let claim = |index| [(index, Step::Send), (index, Step::Deliver(0, false))];
    let issue = |index| [(index, Step::Look(1)), (index, Step::RaiseMark), (index, Step::Write)];
    assert_eq!(issued(&[&claim(0)[..], &issue(0)].concat()), (1, 0));
    let release = [Step::Close, Step::Release, Step::Deliver(0, false), Step::Pass(S)];
    let release = release.map(|step| (0, step));
    assert_eq!(issued(&[&release[..], &claim(1), &issue(1)].concat()), (2, 1));
}
