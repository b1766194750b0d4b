//! What servers, registry, network and persons can do, and what must hold after each step.

use super::rules::Rule;
use super::state::*;
use pg_snowflake_policies::holder::{self, Refused, Slot};
use pg_snowflake_policies::registry::{self, Claim, Lease, Moment, Origin, Refusal, Release, Uuid};
use stateright::{Model, Property};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

static ORIGIN: Origin = Origin { address: String::new(), started_at_us: None };

/// What can go wrong. Each one that happens counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The worker gives a request up, which may arrive later, or its answer is lost.
    Lost,
    /// A request arrives, and may arrive again.
    Repeated,
    /// A backend crashes, and with it the memory of the server.
    Crash,
    /// A server restarts.
    Restart,
    /// A copy of a server's disk starts, in place of another server.
    Copy,
    /// The clock of a server steps.
    ServerClock,
    /// The clock of the registry steps.
    RegistryClock,
    /// A person reserves the shard for a node.
    TakeOver,
    /// A person retires the node that had the shard.
    Retire,
    /// The registry is restored, or fails over, to an earlier state.
    Failover,
    /// The rows of the registry go back to an earlier state without a new start of its server. The server that has learnt the newest serial
    /// calls next.
    Rollback,
}

/// How much of the protocol is searched.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub servers: usize,
    /// The length of a lease, in ticks.
    pub length: i64,
    /// For how many ticks things happen.
    pub ticks: i64,
    /// The most requests on their way. Without pauses, only those that were given up or repeated are.
    pub messages: usize,
    /// The most events.
    pub events: u8,
    pub kinds: &'static [Event],
    /// Whether backends, the worker and answers can be paused anywhere. If not, a backend generates its IDs at once, and so does an
    /// answer arrive.
    pub pauses: bool,
    /// Whether a server that closes its lease wants the shard again.
    pub closes: &'static [bool],
    /// How far clocks can be ahead of the time.
    pub server_clocks: &'static [i8],
    pub registry_clocks: &'static [i8],
}

/// No tick is used by two runs of servers.
pub const UNIQUE: &str = "no tick is used by two servers";
/// While the original is kept its shard, no copy that is older than the last renewal gets it.
pub const ORIGINAL_FIRST: &str = "the original comes before an older copy";
/// A standby that is promoted once its primary has released the lease is not refused because the shard is kept.
pub const SUCCESSOR: &str = "a promoted standby with all WAL comes as the original";
/// A holder that only lost an answer keeps its lease.
pub const KEPT: &str = "a lost answer does not cost a lease";
/// If nothing more goes wrong, a server can generate IDs again, in time.
pub const RECOVERS: &str = "some server gets the shard again";

const BREAKS_UNIQUE: u8 = 1;
const BREAKS_ORIGINAL_FIRST: u8 = 2;
const BREAKS_KEPT: u8 = 4;
const BREAKS_SUCCESSOR: u8 = 8;

/// A request of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Claim,
    /// It reads the mark, and releases what it has closed.
    Release,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Arrives,
    /// The worker gives it up.
    Lost,
    /// It arrives, and may arrive again.
    Repeats,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A tick passes.
    Pass,
    /// The worker sends a request.
    Send(usize, Kind, Fate),
    /// A request reaches the registry.
    Deliver(usize),
    /// The same, and a copy of it is still on its way.
    DeliverAndRepeat(usize),
    /// The worker gets the answer.
    Answer(usize),
    /// A backend reads the span, and wants to use it up to a tick.
    Look(usize, i8),
    /// It raises the mark.
    Mark(usize),
    /// It checks the span, and writes.
    Write(usize),
    /// The worker closes the lease; the server wants the shard again, or not.
    Close(usize, bool),
    GiveUp(usize),
    Crash(usize),
    Restart(usize),
    Copy(usize, usize),
    ServerClock(usize, i8),
    RegistryClock(i8),
    TakeOver(u8),
    Retire,
    /// A standby or a backup is made of the registry.
    Backup,
    Failover,
    Rollback,
}

impl Action {
    /// Whether it counts. That the registry loses rows counted when the backup was made.
    pub fn is_event(&self) -> bool {
        !matches!(
            self,
            Action::Pass
                | Action::Send(_, _, Fate::Arrives)
                | Action::Deliver(_)
                | Action::Answer(_)
                | Action::Look(..)
                | Action::Mark(_)
                | Action::Write(_)
                | Action::Close(..)
                | Action::Failover
                | Action::Rollback
        )
    }

    /// Whether servers that pass the shard on, and use it, do this after the last step.
    pub fn follows(&self, last: Option<&Action>) -> bool {
        match (last, self) {
            (Some(Action::Send(last, Kind::Claim, Fate::Arrives)), Action::Look(next, _))
            | (Some(Action::Look(last, _)), Action::Close(next, false))
            | (Some(Action::Close(last, _)), Action::Send(next, Kind::Release, Fate::Arrives)) => last == next,
            (Some(Action::Send(last, Kind::Release, Fate::Arrives)), Action::Send(next, Kind::Claim, Fate::Arrives)) => last != next,
            (Some(Action::Failover | Action::Rollback), Action::Send(_, Kind::Claim, Fate::Arrives)) => true,
            _ => false,
        }
    }
}

/// The protocol, within bounds, and with all rules but one.
pub struct Protocol {
    pub bounds: Bounds,
    pub without: Option<Rule>,
    pub properties: &'static [&'static str],
    /// The states, as far as it matters for the recovery, from which a server has got the shard again.
    recovered: Mutex<HashSet<u64>>,
    hasher: RandomState,
    /// The most ticks until then.
    pub slowest: AtomicI64,
}

impl Protocol {
    pub fn new(bounds: Bounds, properties: &'static [&'static str], without: Option<Rule>) -> Self {
        Protocol { bounds, without, properties, recovered: Mutex::default(), hasher: RandomState::new(), slowest: AtomicI64::new(0) }
    }

    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn length_us(&self) -> i64 {
        self.bounds.length * TICK_US
    }

    fn can(&self, event: Event) -> bool {
        self.bounds.kinds.contains(&event)
    }

    /// The longest that a shard stays without IDs after the last event, in ticks. The end of a span or of a quiet time is at most a
    /// lease and the tolerance after the registry's clock, and the lease is kept for its former holder for the length of another one.
    fn longest_wait(&self) -> i64 {
        let ahead = self.bounds.registry_clocks.iter().copied().max().unwrap_or(0).max(0);
        2 * self.bounds.length + 2 + i64::from(ahead)
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::initial(self.bounds.events)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let Bounds { servers, ticks, messages, .. } = self.bounds;
        if i64::from(state.now - FIRST) < ticks {
            actions.push(Action::Pass);
        }
        let has_room = !self.bounds.pauses || state.messages.len() < messages;
        for (index, server) in state.servers[..servers].iter().enumerate() {
            let is_idle = server.waits == Waits::No;
            // The servers differ only in their numbers.
            let may_begin = index == 0 || state.registry.row.is_some();
            if is_idle && may_begin && has_room {
                actions.push(Action::Send(index, Kind::Claim, Fate::Arrives));
            }
            if let Waits::For(_) = server.waits {
                actions.push(Action::Answer(index));
            }
            match server.backend {
                Backend::Idle => actions
                    .extend(ticks_of(server.span).filter(|tick| server.used & 1 << tick == 0).map(|tick| Action::Look(index, tick as i8))),
                Backend::Looked(_) => actions.push(Action::Mark(index)),
                Backend::Marked(_) => actions.push(Action::Write(index)),
            }
            if is_idle && server.serial > 0 {
                actions.extend(self.bounds.closes.iter().map(|&keep| Action::Close(index, keep)));
            }
            if is_idle && server.closed.is_some() && has_room {
                actions.push(Action::Send(index, Kind::Release, Fate::Arrives));
            }
        }
        actions.extend((0..state.messages.len()).map(Action::Deliver));
        if state.events > 0 {
            self.events(state, actions);
        }
        self.losses(state, actions);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        self.step(&mut state, action);
        self.prune(&mut state);
        state.normalize();
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let all = [
            Property::always(UNIQUE, |_, state: &State| state.record.broken & BREAKS_UNIQUE == 0),
            Property::always(ORIGINAL_FIRST, |_, state: &State| state.record.broken & BREAKS_ORIGINAL_FIRST == 0),
            Property::always(SUCCESSOR, |_, state: &State| state.record.broken & BREAKS_SUCCESSOR == 0),
            Property::always(KEPT, |_, state: &State| state.record.broken & BREAKS_KEPT == 0),
            Property::always(RECOVERS, Protocol::recovers),
        ];
        all.into_iter().filter(|property| self.properties.contains(&property.name)).collect()
    }
}

impl Protocol {
    fn events(&self, state: &State, actions: &mut Vec<Action>) {
        let Bounds { servers, server_clocks, registry_clocks, .. } = self.bounds;
        let mut offer = |event, action| {
            if self.can(event) {
                actions.push(action);
            }
        };
        for (index, server) in state.servers[..servers].iter().enumerate() {
            if server.waits != Waits::No {
                offer(Event::Lost, Action::GiveUp(index));
            }
            // A server that has done nothing has nothing to lose.
            let mut messages = state.messages.iter();
            let has_sent = messages.any(|message| usize::from(message.from) == index);
            if server.known > 0 || server.waits != Waits::No || has_sent {
                offer(Event::Crash, Action::Crash(index));
                offer(Event::Restart, Action::Restart(index));
                for to in (0..servers).filter(|&to| to != index) {
                    offer(Event::Copy, Action::Copy(index, to));
                }
            }
            for &ahead in server_clocks.iter().filter(|&&ahead| ahead != server.ahead) {
                offer(Event::ServerClock, Action::ServerClock(index, ahead));
            }
        }
        if !self.bounds.pauses && state.messages.len() < self.bounds.messages {
            for (index, server) in state.servers[..servers].iter().enumerate() {
                let may_begin = index == 0 || state.registry.row.is_some();
                for (kind, can) in [(Kind::Claim, may_begin), (Kind::Release, server.closed.is_some())] {
                    if can {
                        offer(Event::Lost, Action::Send(index, kind, Fate::Lost));
                        offer(Event::Repeated, Action::Send(index, kind, Fate::Repeats));
                    }
                }
            }
        }
        for message in 0..state.messages.len() {
            offer(Event::Repeated, Action::DeliverAndRepeat(message));
        }
        let least_ahead = if state.registry.has_started && self.has(Rule::ClockAfterLoss) { state.registry_ahead } else { i8::MIN };
        let is_other = |ahead: i8| ahead != state.registry_ahead && ahead >= least_ahead;
        for &ahead in registry_clocks.iter().filter(|&&ahead| is_other(ahead)) {
            offer(Event::RegistryClock, Action::RegistryClock(ahead));
        }
        if state.registry.row.is_some() {
            let nodes = state.servers[..servers].iter().map(|server| server.node);
            nodes.for_each(|node| offer(Event::TakeOver, Action::TakeOver(node)));
            offer(Event::Retire, Action::Retire);
        }
        let can_lose = self.can(Event::Failover) || self.can(Event::Rollback);
        if can_lose && state.standby.is_none() {
            actions.push(Action::Backup);
        }
    }

    /// The registry loses what it has done since the backup, which counted as an event.
    fn losses(&self, state: &State, actions: &mut Vec<Action>) {
        let servers = self.bounds.servers;
        // The registry's clock is not behind what it has granted and may lose.
        let is_clock_right = self.now_us(state) >= state.record.latest_grant_us || !self.has(Rule::ClockAfterLoss);
        if let Some(standby) = state.standby.filter(|standby| *standby != state.registry && is_clock_right) {
            if self.can(Event::Failover) {
                actions.push(Action::Failover);
            }
            let known = |server: &Server| server.known.max(server.serial);
            let newest = state.servers[..servers].iter().map(known).max().unwrap_or(0);
            let is_known = newest == state.record.newest_learnt;
            if self.can(Event::Rollback) && is_known && standby.row.is_some() {
                actions.push(Action::Rollback);
            }
        }
    }

    /// The registry's clock.
    fn now_us(&self, state: &State) -> i64 {
        us_of(i64::from(state.now) + i64::from(state.registry_ahead))
    }

    fn step(&self, state: &mut State, action: Action) {
        let is_event = action.is_event();
        state.events -= u8::from(is_event);
        let is_of_network =
            matches!(action, Action::GiveUp(_) | Action::DeliverAndRepeat(_) | Action::Send(_, _, Fate::Lost | Fate::Repeats));
        if (is_event || state.standby.is_some()) && !is_of_network {
            state.record.is_disturbed = true;
        }
        match action {
            Action::Pass => state.now += 1,
            Action::Send(index, kind, fate) => {
                match kind {
                    Kind::Claim => self.send_claim(state, index),
                    Kind::Release => self.send_release(state, index),
                }
                match fate {
                    Fate::Lost => give_up(state, index),
                    _ if self.bounds.pauses => {}
                    _ => self.deliver(state, state.messages.len() - 1, fate == Fate::Repeats),
                }
            }
            Action::Deliver(index) => self.deliver(state, index, false),
            Action::DeliverAndRepeat(index) => self.deliver(state, index, true),
            Action::Answer(index) => self.answer(state, index),
            Action::Look(index, tick) => {
                state.servers[index].backend = Backend::Looked(tick);
                if !self.bounds.pauses {
                    self.mark(state, index);
                    self.write(state, index);
                }
            }
            Action::Mark(index) => self.mark(state, index),
            Action::Write(index) => self.write(state, index),
            Action::Close(index, keep) => self.close(state, index, keep),
            Action::GiveUp(index) => give_up(state, index),
            Action::Crash(index) => {
                crash(state, index);
                state.servers[index].is_inherited = true;
            }
            Action::Restart(index) => {
                crash(state, index);
                state.servers[index].incarnation = FRESH[0];
            }
            Action::Copy(from, to) => self.copy(state, from, to),
            Action::ServerClock(index, ahead) => state.servers[index].ahead = ahead,
            Action::RegistryClock(ahead) => state.registry_ahead = ahead,
            Action::TakeOver(node) => {
                self.begin_call(state, None);
                let row = state.registry.row.map(|row| row.lease());
                let node = NODES[usize::from(node)];
                let reserved = registry::take_over(row.as_ref(), node);
                self.replace_by_person(state, &reserved);
            }
            Action::Retire => {
                let now_us = self.now_us(state);
                // As registry_retire() has it.
                let row = state.registry.row.map(|row| row.lease());
                let is_held = |row: &registry::Lease| row.incarnation.is_some() && !row.has_ended(now_us);
                if let Some(row) = row.filter(|row| !is_held(row)) {
                    self.begin_call(state, None);
                    self.replace_by_person(state, &registry::retire(&row));
                }
            }
            Action::Backup => state.standby = Some(state.registry),
            Action::Failover => {
                lose(state);
                state.registry.has_started = true;
            }
            Action::Rollback => {
                lose(state);
                // No answer of the registry reaches a server either.
                state.servers.iter_mut().for_each(|server| server.waits = Waits::No);
                if self.has(Rule::NewestCallsFirst) {
                    self.begin_call(state, some(state.record.newest_learnt));
                }
            }
        }
    }

    fn replace_by_person(&self, state: &mut State, lease: &registry::Lease) {
        let mut row = Row { serial: NEW_SERIAL, ..Row::of(lease) };
        if !self.has(Rule::PersonKeepsTheEnd) {
            row.span.ends_us = self.now_us(state).min(row.span.ends_us).max(row.span.starts_us);
        }
        state.registry.row = Some(row);
        (state.record.kept, state.record.has_released, state.record.successor) = (None, None, None);
    }

    fn send_claim(&self, state: &mut State, index: usize) {
        let now_us = us_of(i64::from(state.now) + i64::from(state.servers[index].ahead));
        let server = &mut state.servers[index];
        let presented = server.known().presented(&server.holder().slots);
        let request = Request::Claim {
            node: server.node,
            incarnation: server.incarnation,
            serial: server.serial,
            known: serial_of(presented.get(&0).copied()),
            nonce: server.nonce,
            until_us: now_us + self.length_us(),
        };
        server.waits = Waits::ForRegistry;
        state.messages.push(Message { from: index as u8, is_awaited: true, request });
    }

    fn send_release(&self, state: &mut State, index: usize) {
        let server = &mut state.servers[index];
        let Some(Closed { incarnation, serial, keep, early_mark }) = server.closed else { return };
        if early_mark.is_some() && server.serial == serial {
            let mut holder = server.holder();
            holder.close(|_| true, keep, Uuid::from(FRESH[0]));
            server.publish(&holder);
        }
        let mark = early_mark.unwrap_or(server.mark);
        let request = Request::Release { incarnation, serial, mark, keep };
        server.waits = Waits::ForRegistry;
        state.messages.push(Message { from: index as u8, is_awaited: true, request });
    }

    fn close(&self, state: &mut State, index: usize, keep: bool) {
        let server = &mut state.servers[index];
        let mut holder = server.holder();
        let closed = holder.close(|_| true, keep, Uuid::from(FRESH[0]));
        self.to_be_released(server, &closed);
        if self.has(Rule::MarkAfterClosing) {
            server.publish(&holder);
        }
    }

    fn to_be_released(&self, server: &mut Server, closed: &[holder::Closed]) {
        if let [closed] = closed {
            server.closed = Some(Closed {
                incarnation: closed.incarnation as u8,
                serial: serial_of(closed.slot.serial),
                keep: closed.keep,
                early_mark: (!self.has(Rule::MarkAfterClosing)).then_some(server.mark),
            });
        }
    }

    fn mark(&self, state: &mut State, index: usize) {
        let server = &mut state.servers[index];
        let Backend::Looked(tick) = server.backend else { return };
        if self.has(Rule::MarkBeforeWriting) {
            server.mark = server.mark.max(tick);
        }
        server.backend = Backend::Marked(tick);
    }

    /// The backend is deemed to have used the span from its begin on.
    fn write(&self, state: &mut State, index: usize) {
        let Backend::Marked(tick) = state.servers[index].backend else { return };
        state.servers[index].backend = Backend::Idle;
        let ticks = ticks_of(state.servers[index].span);
        let is_current = ticks.contains(&i64::from(tick));
        if !is_current && self.has(Rule::CheckAfterMark) {
            return;
        }
        let first = if is_current { *ticks.start() } else { i64::from(tick) };
        let used = (first..=i64::from(tick)).fold(0, |used, tick| used | 1 << tick);
        let others = state.servers.iter().enumerate().filter(|&(other, _)| other != index);
        let by_others = others.fold(state.record.used_before, |used, (_, server)| used | server.used);
        if used & by_others != 0 {
            state.record.broken |= BREAKS_UNIQUE;
        }
        state.servers[index].used |= used;
    }

    fn copy(&self, state: &mut State, from: usize, to: usize) {
        crash(state, to);
        let Server { node, known, incarnation, nonce, .. } = state.servers[from];
        let Record { has_released, successor, .. } = &mut state.record;
        *has_released = has_released.filter(|&server| usize::from(server) != to);
        *successor = match *has_released {
            Some(server) if usize::from(server) == from => Some(to as u8),
            _ => successor.filter(|&server| usize::from(server) != to),
        };
        let copy = &mut state.servers[to];
        (copy.node, copy.known) = (node, known);
        let is_new = self.has(Rule::NewIncarnation) && self.has(Rule::NewNonce);
        copy.incarnation = if is_new { FRESH[0] } else { incarnation };
        if !self.has(Rule::NewNonce) {
            copy.nonce = nonce;
        }
    }

    /// What the registry does at the begin of a call, as `identity()` has it. `seen` is the serial that the caller has seen.
    fn begin_call(&self, state: &mut State, seen: Option<i64>) -> Moment {
        let now_us = self.now_us(state);
        let quiet_us = registry::quiet_until_us(now_us, self.length_us());
        let registry = &mut state.registry;
        if registry.has_started {
            registry.has_started = false;
            if self.has(Rule::QuietTime) {
                registry.quiet_until_us = quiet_us;
            }
        }
        let row = registry.row.map(|row| row.lease());
        let explained = i64::from(registry.explained);
        let lost = seen.filter(|&seen| registry::is_lost(row.as_ref().map(|row| row.serial), seen, explained));
        if let Some(seen) = lost.filter(|_| self.has(Rule::LostRows)) {
            registry.quiet_until_us = registry.quiet_until_us.max(quiet_us);
            registry.explained = registry.explained.max(serial_of(Some(seen)));
        }
        Moment { now_us, quiet_until_us: registry.quiet_until_us }
    }

    fn deliver(&self, state: &mut State, index: usize, is_repeated: bool) {
        let message = state.messages[index];
        let Message { from, is_awaited, request } = message;
        if is_repeated {
            state.messages[index].is_awaited = false;
        } else {
            state.messages.remove(index);
        }
        let reply = match request {
            Request::Claim { .. } => self.decide(state, from, is_awaited, request),
            Request::Release { .. } => self.release(state, from, request),
        };
        if is_awaited {
            state.servers[usize::from(from)].waits = Waits::For(reply);
            if !self.bounds.pauses {
                self.answer(state, usize::from(from));
            }
        }
    }

    /// The registry's call, as `registry_claim()` has it.
    fn decide(&self, state: &mut State, from: u8, is_awaited: bool, request: Request) -> Reply {
        let Request::Claim { node, incarnation, serial, known, nonce, until_us } = request else { unreachable!("a claim") };
        let before = state.registry;
        let held = some(serial);
        let moment = self.begin_call(state, held.or(some(known)));
        let now_us = moment.now_us;
        let row = before.row.map(|row| row.lease());
        let mut claim = Claim {
            node: NODES[usize::from(node)],
            incarnation: Uuid::from(incarnation),
            serial: held,
            known_serial: some(known).or(held),
            nonce: Uuid::from(nonce),
            until_us,
            length_us: self.length_us(),
            origin: &ORIGIN,
        };
        let is_holder = row.as_ref().is_some_and(|row| row.incarnation == Some(claim.incarnation));
        let is_running = row.as_ref().is_some_and(|row| !row.is_released && now_us < row.span.ends_us);
        if !self.has(Rule::ClockAhead) && claim.until_us > now_us + claim.length_us {
            claim.until_us = now_us + claim.length_us;
        }
        let mut asked = row.clone();
        if let Some(row) = &mut asked {
            if !self.has(Rule::SameAnswer) {
                row.nonce = None;
            }
            if !self.has(Rule::FormerHolderFirst) {
                row.kept_until_us = i64::MIN;
            }
            if !self.has(Rule::Serial) && is_holder && held.is_some() {
                claim.serial = Some(row.serial);
            }
            if !self.has(Rule::CrashEndsTheSpan) && is_holder && is_running {
                claim.serial = Some(row.serial);
            }
        }
        // The clock may stand still since the last grant, whose serial it was.
        let mut newest = 0;
        state.numbers(&mut |number| {
            if let Number::Serial(serial) = number {
                newest = newest.max(*serial);
            }
        });
        let of_clock = |serial: i64| if serial == i64::from(newest) { now_us } else { serial };
        (claim.serial, claim.known_serial) = (claim.serial.map(of_clock), claim.known_serial.map(of_clock));
        if let Some(row) = &mut asked {
            row.serial = of_clock(row.serial);
        }
        let mut granted = match registry::claim(asked.as_ref(), claim, moment) {
            Ok(granted) if asked.as_ref() == Some(&granted) => {
                let row = before.row.expect("granted before");
                return Reply::Granted { span: row.span, serial: row.serial };
            }
            Ok(granted) if asked.as_ref().is_some_and(|row| row.serial == granted.serial) => Lease { serial: i64::from(newest), ..granted },
            Ok(granted) => granted,
            // An error rolls the call back.
            Err(Refusal::ClockAhead { .. } | Refusal::ClockBehind { .. }) => {
                state.registry = before;
                return Reply::Error;
            }
            Err(refusal) => {
                if matches!(refusal, Refusal::KeptFor { .. }) && is_awaited && state.record.successor == Some(from) {
                    state.record.broken |= BREAKS_SUCCESSOR;
                }
                let is_own = is_holder && is_awaited && held.is_some();
                if refusal == Refusal::Superseded && is_own && !state.record.is_disturbed {
                    state.record.broken |= BREAKS_KEPT;
                }
                return Reply::Refused;
            }
        };
        (state.record.has_released, state.record.successor) = (None, None);
        let is_renewal = row.as_ref().is_some_and(|row| is_holder && claim.serial == Some(of_clock(row.serial)) && is_running);
        if !self.has(Rule::ClockAhead) {
            granted.span.ends_us = granted.span.ends_us.max(until_us);
        }
        if !self.has(Rule::StartsAtTheLastEnd) && !is_renewal {
            granted.span.starts_us = now_us.max(moment.quiet_until_us);
            granted.span.ends_us = granted.span.starts_us.max(claim.until_us);
        }
        if !self.has(Rule::RenewalKeepsTheEnd) && is_renewal {
            granted.span.ends_us = claim.until_us.max(granted.span.starts_us);
        }
        // A first claim that arrives late begins a new span, which the holder does not know.
        state.record.is_disturbed |= !is_awaited && serial == 0;
        let kept = state.record.kept.filter(|&(holder, until_us)| {
            holder != from && now_us < until_us && before.row.is_some_and(|row| known.max(serial) < row.serial)
        });
        if kept.is_some() && !is_renewal {
            state.record.broken |= BREAKS_ORIGINAL_FIRST;
        }
        if self.properties.contains(&ORIGINAL_FIRST) {
            state.record.kept = Some((from, claim.until_us + claim.length_us));
        }
        if self.can(Event::RegistryClock) {
            state.record.latest_grant_us = state.record.latest_grant_us.max(now_us);
        }
        let row = Row::of(&granted);
        state.registry.row = Some(row);
        Reply::Granted { span: row.span, serial: row.serial }
    }

    fn release(&self, state: &mut State, from: u8, request: Request) -> Reply {
        let Request::Release { incarnation, serial, mark, keep } = request else { unreachable!("a release") };
        let now_us = self.now_us(state);
        let Some(row) = state.registry.row.map(|row| row.lease()) else {
            return Reply::Released(0);
        };
        let serial = if self.has(Rule::Serial) { i64::from(serial) } else { row.serial };
        let mark_us = if self.has(Rule::ReleaseEndsAtTheMark) { above_us(mark) } else { i64::MIN };
        let request = Release { incarnation: Uuid::from(incarnation), serial, mark_us, keep };
        let released = registry::release(&row, request, now_us);
        let Some(released) = released else { return Reply::Released(0) };
        state.registry.row = Some(Row { serial: NEW_SERIAL, ..Row::of(&released) });
        (state.record.has_released, state.record.successor) = (None, None);
        let is_kept = keep && self.properties.contains(&ORIGINAL_FIRST);
        state.record.kept = is_kept.then(|| (from, now_us + self.length_us()));
        Reply::Released(NEW_SERIAL)
    }

    /// The worker gets the answer, as `request_claim()` and `release()` have it.
    fn answer(&self, state: &mut State, index: usize) {
        let now_us = us_of(i64::from(state.now) + i64::from(state.servers[index].ahead));
        let newest_learnt = &mut state.record.newest_learnt;
        let server = &mut state.servers[index];
        let Waits::For(reply) = server.waits else { return };
        server.waits = Waits::No;
        let mut known = server.known();
        let [nonce, next_nonce, after_closing, incarnation] = FRESH.map(Uuid::from);
        match reply {
            Reply::Error => {}
            Reply::Released(serial) => {
                server.closed = None;
                let is_last = |row: &Row| row.is_released && row.serial == serial;
                if self.properties.contains(&SUCCESSOR) && state.registry.row.as_ref().is_some_and(is_last) {
                    state.record.has_released = Some(index as u8);
                }
                if self.has(Rule::LearnsItsRelease) {
                    known.learn([&Slot { serial: some(serial), ..Slot::closed(0) }]);
                }
            }
            Reply::Granted { .. } | Reply::Refused => {
                let verdict = match reply {
                    Reply::Granted { span, serial } => Ok((span, i64::from(serial))),
                    _ => Err(()),
                };
                let mut holder = server.holder();
                let refused = holder.apply(vec![(0, verdict)], nonce);
                known.learn(&holder.slots);
                let latest_us = now_us + 2 * self.length_us();
                let closed = holder.close_future(latest_us, above_us(server.mark), next_nonce);
                server.publish(&holder);
                self.to_be_released(server, &closed);
                if matches!(refused, Refused::Lost(_)) {
                    let closed = holder.start_anew(incarnation, after_closing);
                    server.publish(&holder);
                    self.to_be_released(server, &closed);
                }
            }
        }
        server.known = serial_of(known.serials.get(&0).copied());
        if self.can(Event::Rollback) {
            *newest_learnt = (*newest_learnt).max(server.known);
        }
    }

    /// Forgets requests that can change nothing any more.
    fn prune(&self, state: &mut State) {
        let now_us = self.now_us(state);
        let has_wrong_clock = self.can(Event::RegistryClock);
        let (registry, standby) = (state.registry, state.standby);
        let of_rows = [Some(registry), standby];
        let may_be_held = |serial| of_rows.iter().flatten().flat_map(|registry| registry.row).any(|row| row.serial == serial);
        for server in state.servers.iter_mut().filter(|server| server.waits == Waits::No) {
            server.closed =
                server.closed.filter(|closed| !self.has(Rule::Serial) || !self.has(Rule::MarkAfterClosing) || may_be_held(closed.serial));
        }
        state.messages.retain(|message| match message.request {
            _ if message.is_awaited => true,
            Request::Claim { until_us, .. } => has_wrong_clock || until_us - self.length_us() + TICK_US >= now_us,
            Request::Release { serial, .. } => !self.has(Rule::Serial) || may_be_held(serial),
        });
    }

    /// Whether a server can generate IDs again in time, if from now on nothing goes wrong: the clocks are right, and the worker of each
    /// server releases what it has closed and claims the lease at each tick. What is on its way is lost.
    fn recovers(&self, state: &State) -> bool {
        let mut state = state.clone();
        state.messages.clear();
        (state.events, state.registry_ahead, state.standby) = (0, 0, None);
        state.record = Record::default();
        for server in &mut state.servers {
            (server.ahead, server.backend, server.used) = (0, Backend::Idle, 0);
            if server.waits == Waits::ForRegistry {
                server.waits = Waits::No;
            }
        }
        state.normalize();
        let hash = self.hasher.hash_one(&state);
        if self.recovered.lock().expect("no panic").contains(&hash) {
            return true;
        }
        let servers = self.bounds.servers;
        // A person has reserved the shard for a node that is gone.
        let reserved = state.registry.row.filter(|row| row.incarnation == 0 && row.node != 0);
        let is_of = |server: &Server| reserved.is_none_or(|row| row.node == server.node);
        if !state.servers[..servers].iter().any(is_of) {
            return true;
        }
        for waited in 0..=self.longest_wait() {
            for index in 0..servers {
                self.answer(&mut state, index);
                if state.servers[index].closed.is_some() {
                    self.send_release(&mut state, index);
                    self.deliver(&mut state, 0, false);
                    self.answer(&mut state, index);
                    state.normalize();
                }
                // A server that has lost its lease claims it again at once.
                for _ in 0..2 {
                    self.send_claim(&mut state, index);
                    self.deliver(&mut state, 0, false);
                    self.answer(&mut state, index);
                    state.normalize();
                }
            }
            let now = i64::from(state.now);
            let can_generate = |server: &Server| ticks_of(server.span).contains(&now);
            if state.servers[..servers].iter().any(can_generate) {
                self.slowest.fetch_max(waited, Relaxed);
                self.recovered.lock().expect("no panic").insert(hash);
                return true;
            }
            state.now += 1;
        }
        false
    }
}

/// The worker no longer waits for an answer. The request may still arrive.
fn give_up(state: &mut State, index: usize) {
    state.servers[index].waits = Waits::No;
    for message in state.messages.iter_mut().filter(|message| usize::from(message.from) == index) {
        message.is_awaited = false;
    }
}

/// The server loses its memory.
fn crash(state: &mut State, index: usize) {
    give_up(state, index);
    let server = &mut state.servers[index];
    state.record.used_before |= server.used;
    let Server { node, known, incarnation, ahead, .. } = *server;
    *server = Server { node, known, incarnation, nonce: FRESH[1], ahead, ..Server::WITHOUT_MEMORY };
}

/// The registry goes back to an earlier state. Requests that are on their way do not reach it.
fn lose(state: &mut State) {
    if let Some(standby) = state.standby.take() {
        state.registry = standby;
    }
    state.messages.clear();
    for server in &mut state.servers {
        if server.waits == Waits::ForRegistry {
            server.waits = Waits::No;
        }
    }
    (state.record.kept, state.record.has_released, state.record.successor) = (None, None, None);
}
