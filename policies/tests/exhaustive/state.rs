//! The state of the model, whose serials and UUIDs are renumbered after each step, so that states that differ in nothing else are one.

use pg_snowflake_ids::presets::SONYFLAKE;
use pg_snowflake_ids::{Layout, Unit};
use pg_snowflake_policies::holder::{Holder, Known, Slot};
use pg_snowflake_policies::lease::Span;
use pg_snowflake_policies::registry::{Lease, Origin, Uuid};
use std::array::from_fn;

/// A tick of the model, in microseconds: a second, which is also the tolerance for clocks.
pub const TICK_US: i64 = 1_000_000;

/// The begin of tick 0. Serials of the model are below it, so each new one is higher than all of them.
const BEGIN_US: i64 = 1_000 * TICK_US;

/// A layout with these ticks.
const LAYOUT: Layout = Layout { unit: Unit::S1, epoch_ms: BEGIN_US / 1_000, ..SONYFLAKE };

/// The tick in which all begins: late enough for clocks that are behind.
pub const FIRST: i8 = 2;

/// The most servers.
pub const MAX_SERVERS: usize = 3;

/// The begin of a tick.
pub fn us_of(tick: i64) -> i64 {
    BEGIN_US + tick * TICK_US
}

/// The ticks that begin in a span.
pub fn ticks_of(span: Span) -> std::ops::RangeInclusive<i64> {
    let ticks = span.ticks(&LAYOUT);
    ticks.first..=ticks.last
}

/// The row of the shard. Numbers are 0 if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub node: u8,
    pub incarnation: u8,
    pub serial: u16,
    pub nonce: u8,
    pub span: Span,
    pub is_released: bool,
    pub barred: u8,
    pub former_end_us: i64,
    pub kept_until_us: i64,
}

/// The names of the nodes; that of a retired one first.
pub const NODES: [&str; MAX_SERVERS + 1] = ["", "a", "b", "c"];

pub fn some<N: Into<i64>>(number: N) -> Option<i64> {
    Some(number.into()).filter(|&number| number > 0)
}

fn uuid(number: u8) -> Option<Uuid> {
    some(number).map(|number| number as Uuid)
}

/// A new serial, before it is renumbered.
pub const NEW_SERIAL: u16 = u16::MAX;

/// A serial in the model: a new one is the registry's clock.
pub fn serial_of(serial: Option<i64>) -> u16 {
    serial.map_or(0, |serial| u16::try_from(serial).unwrap_or(NEW_SERIAL))
}

impl Row {
    pub fn lease(&self) -> Lease {
        Lease {
            node: NODES[usize::from(self.node)].to_owned(),
            incarnation: uuid(self.incarnation),
            serial: i64::from(self.serial),
            nonce: uuid(self.nonce),
            span: self.span,
            is_released: self.is_released,
            barred: uuid(self.barred),
            renewed_at_us: 0,
            former_end_us: self.former_end_us,
            kept_until_us: self.kept_until_us,
            known_serial: None,
            origin: Origin::default(),
            copy: None,
        }
    }

    pub fn of(lease: &Lease) -> Self {
        let number = |uuid: Option<Uuid>| uuid.unwrap_or_default() as u8;
        Row {
            node: NODES.iter().position(|node| *node == lease.node).expect("a node") as u8,
            incarnation: number(lease.incarnation),
            serial: serial_of(Some(lease.serial)),
            nonce: number(lease.nonce),
            span: lease.span,
            is_released: lease.is_released,
            barred: number(lease.barred),
            former_end_us: lease.former_end_us,
            kept_until_us: lease.kept_until_us,
        }
    }
}

/// The registry: the row, and what it knows of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registry {
    pub row: Option<Row>,
    pub quiet_until_us: i64,
    /// The highest serial that may have been lost before the last quiet time.
    pub explained: u16,
    /// Whether its server has another start than at the last call.
    pub has_started: bool,
}

/// A backend, which can be paused before each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    Idle,
    /// It has read the span, and wants to use it up to this tick.
    Looked(i8),
    /// It has raised the mark.
    Marked(i8),
}

/// A lease that the worker has closed and will release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Closed {
    pub incarnation: u8,
    pub serial: u16,
    pub keep: bool,
    /// The mark, if it was read before the lease is closed: against the rules.
    pub early_mark: Option<i8>,
}

/// The registry's answer, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    Granted {
        span: Span,
        serial: u16,
    },
    Refused,
    /// An error, which is no answer that counts.
    Error,
    /// The serial of the row that was released; 0 if none was.
    Released(u16),
}

/// What the worker waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waits {
    No,
    ForRegistry,
    For(Reply),
}

/// A server: its data directory, its shared memory, its worker and a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Server {
    pub node: u8,
    /// The serial in the data directory.
    pub known: u16,
    pub incarnation: u8,
    pub is_inherited: bool,
    pub nonce: u8,
    pub span: Span,
    pub serial: u16,
    pub closed: Option<Closed>,
    pub waits: Waits,
    /// The highest tick that may have been used.
    pub mark: i8,
    pub backend: Backend,
    /// How far its clock is ahead of the time, in ticks.
    pub ahead: i8,
    /// The ticks that this run may have used, until a crash loses them: one bit each.
    pub used: u32,
}

/// No tick was used.
pub const UNUSED: i8 = i8::MIN;

/// The first instant above all ticks that the server has used, as it sends it to the registry.
pub fn above_us(mark: i8) -> i64 {
    if mark == UNUSED { i64::MIN } else { us_of(i64::from(mark)) }.saturating_add(1)
}

impl Server {
    /// One that has just started, and has no number yet.
    pub const WITHOUT_MEMORY: Server = Server {
        node: 0,
        known: 0,
        incarnation: 0,
        is_inherited: false,
        nonce: 0,
        span: Span { starts_us: 0, ends_us: 0 },
        serial: 0,
        closed: None,
        waits: Waits::No,
        mark: UNUSED,
        backend: Backend::Idle,
        ahead: 0,
        used: 0,
    };

    pub fn holder(&self) -> Holder {
        let slot = Slot { shard: 0, span: self.span, serial: some(self.serial) };
        Holder {
            incarnation: Uuid::from(self.incarnation),
            is_inherited: self.is_inherited,
            nonce: Uuid::from(self.nonce),
            is_assigned: false,
            slots: vec![slot],
        }
    }

    /// Publishes what the worker has got.
    pub fn publish(&mut self, holder: &Holder) {
        let slot = holder.slots[0];
        self.incarnation = holder.incarnation as u8;
        self.is_inherited = holder.is_inherited;
        self.nonce = holder.nonce as u8;
        self.serial = serial_of(slot.serial);
        self.span = slot.span;
    }

    /// What the data directory knows.
    pub fn known(&self) -> Known {
        Known { registry: String::new(), serials: some(self.known).map(|serial| (0, serial)).into_iter().collect() }
    }
}

/// A request on its way to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    pub from: u8,
    /// Whether the worker waits for the answer.
    pub is_awaited: bool,
    pub request: Request,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Request {
    Claim { node: u8, incarnation: u8, serial: u16, known: u16, nonce: u8, until_us: i64 },
    Release { incarnation: u8, serial: u16, mark: i8, keep: bool },
}

/// What the properties need beside the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Record {
    /// The ticks that runs may have used which have ended.
    pub used_before: u32,
    /// The server that was granted the lease last, and the end of the time for which it comes first.
    pub kept: Option<(u8, i64)>,
    /// The server whose release was the last change of the row, once it has the answer.
    pub has_released: Option<u8>,
    /// A server with all that that one had then: its standby, promoted.
    pub successor: Option<u8>,
    /// Whether anything but lost, late and repeated messages has happened.
    pub is_disturbed: bool,
    /// The highest serial that a server has learnt.
    pub newest_learnt: u16,
    /// The registry's clock at the latest grant; before the first one 0, which is before every instant of the model.
    pub latest_grant_us: i64,
    /// The properties that the last step has broken.
    pub broken: u8,
}

/// All of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// The time, in ticks.
    pub now: i8,
    /// How far the registry's clock is ahead.
    pub registry_ahead: i8,
    pub registry: Registry,
    /// A standby or a backup of the registry.
    pub standby: Option<Registry>,
    pub servers: [Server; MAX_SERVERS],
    pub messages: Vec<Message>,
    /// How many more events can happen.
    pub events: u8,
    pub record: Record,
}

/// New numbers of one step. They are renumbered at its end.
pub const FRESH: [u8; 4] = [250, 251, 252, 253];

impl State {
    pub fn initial(events: u8) -> Self {
        let server =
            |index: usize| Server { node: index as u8 + 1, incarnation: index as u8 + 1, nonce: index as u8 + 1, ..Server::WITHOUT_MEMORY };
        let registry = Registry { row: None, quiet_until_us: i64::MIN, explained: 0, has_started: false };
        let mut state = State {
            now: FIRST,
            registry_ahead: 0,
            registry,
            standby: None,
            servers: from_fn(server),
            messages: Vec::new(),
            events,
            record: Record::default(),
        };
        state.normalize();
        state
    }

    /// Renumbers serials, of which only the order counts, and incarnations and nonces, of which only those that are equal. Sorts the
    /// messages.
    pub fn normalize(&mut self) {
        self.messages.sort_unstable();
        self.messages.dedup();
        let mut serials: Vec<u16> = Vec::with_capacity(24);
        self.numbers(&mut |number| {
            if let Number::Serial(serial) = number {
                serials.push(*serial);
            }
        });
        serials.sort_unstable();
        serials.dedup();
        let first = usize::from(serials.first() != Some(&0));
        let (mut incarnations, mut nonces) = (Renumbered::default(), Renumbered::default());
        self.numbers(&mut |number| match number {
            Number::Serial(serial) => *serial = (serials.binary_search(serial).expect("found before") + first) as u16,
            Number::Incarnation(number) => incarnations.renumber(number),
            Number::Nonce(number) => nonces.renumber(number),
        });
        self.messages.sort_unstable();
    }

    /// Calls `f` with all numbers that are renumbered.
    pub fn numbers(&mut self, f: &mut impl FnMut(Number)) {
        for server in &mut self.servers {
            f(Number::Serial(&mut server.known));
            f(Number::Serial(&mut server.serial));
            f(Number::Incarnation(&mut server.incarnation));
            f(Number::Nonce(&mut server.nonce));
            if let Some(closed) = &mut server.closed {
                f(Number::Serial(&mut closed.serial));
                f(Number::Incarnation(&mut closed.incarnation));
            }
            if let Waits::For(Reply::Granted { serial, .. } | Reply::Released(serial)) = &mut server.waits {
                f(Number::Serial(serial));
            }
        }
        f(Number::Serial(&mut self.record.newest_learnt));
        for registry in [Some(&mut self.registry), self.standby.as_mut()].into_iter().flatten() {
            f(Number::Serial(&mut registry.explained));
            if let Some(row) = &mut registry.row {
                f(Number::Serial(&mut row.serial));
                f(Number::Incarnation(&mut row.incarnation));
                f(Number::Incarnation(&mut row.barred));
                f(Number::Nonce(&mut row.nonce));
            }
        }
        for message in &mut self.messages {
            match &mut message.request {
                Request::Claim { incarnation, serial, known, nonce, .. } => {
                    f(Number::Serial(serial));
                    f(Number::Serial(known));
                    f(Number::Incarnation(incarnation));
                    f(Number::Nonce(nonce));
                }
                Request::Release { incarnation, serial, .. } => {
                    f(Number::Serial(serial));
                    f(Number::Incarnation(incarnation));
                }
            }
        }
    }
}

/// A number of the state.
pub enum Number<'a> {
    Serial(&'a mut u16),
    Incarnation(&'a mut u8),
    Nonce(&'a mut u8),
}

/// The new number of each old one, in the order in which they are met; 0 stays.
struct Renumbered {
    new: [u8; 256],
    last: u8,
}

impl Default for Renumbered {
    fn default() -> Self {
        Renumbered { new: [0; 256], last: 0 }
    }
}

impl Renumbered {
    fn renumber(&mut self, number: &mut u8) {
        let new = &mut self.new[usize::from(*number)];
        if *new == 0 && *number != 0 {
            self.last += 1;
            *new = self.last;
        }
        *number = *new;
    }
}
