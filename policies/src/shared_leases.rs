//! The leases of this server in shared memory. The lease worker writes them, and every session reads them.
//!
//! There are two tables. The worker fills the one that is not in use, and then increments the version, whose lowest bit says which
//! one is. A reader reads again if the version has changed meanwhile: a seqlock, but one whose readers never wait, even if the worker
//! is stopped in the middle of a change.
//!
//! The mark is the highest instant that the server may have used for an ID, in any database, sequence and shard. A session raises
//! it, and then checks the version; the worker closes a lease, and then reads the mark. All of these accesses are sequentially
//! consistent. So either the session sees that the lease is closed, or the worker sees the session's mark.

use crate::holder::{Holder, Slot};
use crate::homed::Class;
use crate::lease::Span;
use crate::registry::{MAX_SHARDS_OF_A_NODE, Uuid};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence};

/// What the worker publishes, and what a restarted worker needs to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leases {
    /// The leases.
    pub holder: Holder,
    /// When the registry last answered, in microseconds since 1970.
    pub answered_at_us: Option<i64>,
    /// Why leases are missing, for any user; empty if none are.
    pub answer: String,
    /// The same, with details for those who may monitor the server.
    pub error: String,
}

/// [`Leases`] and the mark in shared memory.
pub struct Shared {
    version: Padded<AtomicU64>,
    mark_us: Padded<AtomicI64>,
    tables: [Table; 2],
}

/// In cache lines of its own: the mark is written often.
#[derive(Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// [`Leases`] in shared memory.
#[derive(Default)]
struct Table {
    incarnation: [AtomicU64; 2],
    nonce: [AtomicU64; 2],
    is_inherited: AtomicBool,
    is_assigned: AtomicBool,
    answered_at_us: AtomicI64,
    answer: Text,
    error: Text,
    count: AtomicUsize,
    slots: Array<SharedSlot, MAX_SHARDS_OF_A_NODE>,
}

/// A [`Slot`] in shared memory.
#[derive(Default)]
struct SharedSlot {
    shard: AtomicU32,
    starts_us: AtomicI64,
    ends_us: AtomicI64,
    serial: AtomicI64,
}

/// A text in shared memory.
#[derive(Default)]
struct Text {
    length: AtomicUsize,
    bytes: Array<AtomicU8, 1024>,
}

/// Unlike `[T; N]`, it has a default for any length.
struct Array<T, const N: usize>([T; N]);

impl<T: Default, const N: usize> Default for Array<T, N> {
    fn default() -> Self {
        Array(std::array::from_fn(|_| T::default()))
    }
}

/// Stands for `None` in a number.
const NONE: i64 = i64::MIN;

impl Shared {
    /// No leases, and nothing used.
    pub fn empty() -> Self {
        Shared { version: Padded::default(), mark_us: Padded(AtomicI64::new(i64::MIN)), tables: Default::default() }
    }

    /// Incremented by each change of the leases.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.0.load(SeqCst)
    }

    /// The span that the leases of all shards of the class have in common; the first shard whose lease is not held, if there is one. A
    /// lease that begins later can be held with an empty span, and leases can have none in common.
    pub fn span_of(&self, class: Class) -> Result<Span, u32> {
        self.read(|table| {
            let all = Span { starts_us: i64::MIN, ends_us: i64::MAX };
            class.shards().try_fold(all, |common, shard| {
                let slot = table.find(shard).map(SharedSlot::slot);
                let held = slot.filter(|slot| slot.serial.is_some()).ok_or(shard)?;
                Ok(Span { starts_us: common.starts_us.max(held.span.starts_us), ends_us: common.ends_us.min(held.span.ends_us) })
            })
        })
    }

    /// The shard that the registry has assigned.
    pub fn assigned_shard(&self) -> Option<u32> {
        let assigned = |table: &Table| {
            let is_assigned = table.is_assigned.load(Relaxed);
            table.slots().first().filter(|_| is_assigned).map(|slot| slot.shard.load(Relaxed))
        };
        self.read(assigned)
    }

    /// All that the worker has published.
    pub fn leases(&self) -> Leases {
        self.read(Table::leases)
    }

    /// Calls `f` with the table in use, again if that has changed meanwhile.
    fn read<T>(&self, f: impl Fn(&Table) -> T) -> T {
        loop {
            let version = self.version();
            let value = f(self.table(version));
            fence(Acquire);
            if self.version.0.load(Relaxed) == version {
                return value;
            }
        }
    }

    fn table(&self, version: u64) -> &Table {
        &self.tables[(version & 1) as usize]
    }

    /// Replaces what is published. Called by the worker only.
    pub fn publish(&self, leases: &Leases) {
        let version = self.version.0.load(Relaxed) + 1;
        // A reader that sees one of the following writes also sees the version that the last call stored.
        fence(Release);
        self.table(version).write(leases);
        self.version.0.store(version, SeqCst);
    }

    /// The highest instant that may have been used, in microseconds since 1970.
    #[inline]
    pub fn mark_us(&self) -> i64 {
        self.mark_us.0.load(SeqCst)
    }

    /// Raises the mark to `instant_us`, if it is lower. The caller then reads the leases again, whether it was lower or not: a
    /// session that found its lease closed may have raised it.
    #[inline]
    pub fn raise_mark(&self, instant_us: i64) {
        if self.mark_us() < instant_us {
            self.mark_us.0.fetch_max(instant_us, SeqCst);
        }
    }
}

impl Table {
    fn slots(&self) -> &[SharedSlot] {
        &self.slots.0[..self.count.load(Relaxed).min(MAX_SHARDS_OF_A_NODE)]
    }

    fn find(&self, shard: u32) -> Option<&SharedSlot> {
        let slots = self.slots();
        let index = slots.partition_point(|slot| slot.shard.load(Relaxed) < shard);
        slots.get(index).filter(|slot| slot.shard.load(Relaxed) == shard)
    }

    fn leases(&self) -> Leases {
        Leases {
            holder: Holder {
                incarnation: uuid(&self.incarnation),
                is_inherited: self.is_inherited.load(Relaxed),
                nonce: uuid(&self.nonce),
                is_assigned: self.is_assigned.load(Relaxed),
                slots: self.slots().iter().map(SharedSlot::slot).collect(),
            },
            answered_at_us: some(&self.answered_at_us),
            answer: self.answer.read(),
            error: self.error.read(),
        }
    }

    fn write(&self, leases: &Leases) {
        let holder = &leases.holder;
        set_uuid(&self.incarnation, holder.incarnation);
        self.is_inherited.store(holder.is_inherited, Relaxed);
        set_uuid(&self.nonce, holder.nonce);
        self.is_assigned.store(holder.is_assigned, Relaxed);
        self.answered_at_us.store(leases.answered_at_us.unwrap_or(NONE), Relaxed);
        self.answer.write(&leases.answer);
        self.error.write(&leases.error);
        self.count.store(holder.slots.len(), Relaxed);
        for (shared, slot) in self.slots.0.iter().zip(&holder.slots) {
            shared.shard.store(slot.shard, Relaxed);
            shared.starts_us.store(slot.span.starts_us, Relaxed);
            shared.ends_us.store(slot.span.ends_us, Relaxed);
            shared.serial.store(slot.serial.unwrap_or(NONE), Relaxed);
        }
    }
}

impl SharedSlot {
    fn slot(&self) -> Slot {
        let [starts_us, ends_us] = [&self.starts_us, &self.ends_us].map(|us| us.load(Relaxed));
        let span = Span { starts_us, ends_us };
        Slot { shard: self.shard.load(Relaxed), span, serial: some(&self.serial) }
    }
}

impl Text {
    fn read(&self) -> String {
        let length = self.length.load(Relaxed).min(self.bytes.0.len());
        let bytes: Vec<u8> = self.bytes.0[..length].iter().map(|byte| byte.load(Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes as much as fits.
    fn write(&self, text: &str) {
        let fitting = &text[..text.floor_char_boundary(self.bytes.0.len())];
        self.length.store(fitting.len(), Relaxed);
        for (shared, byte) in self.bytes.0.iter().zip(fitting.bytes()) {
            shared.store(byte, Relaxed);
        }
    }
}

fn some(number: &AtomicI64) -> Option<i64> {
    Some(number.load(Relaxed)).filter(|&number| number != NONE)
}

fn uuid([high, low]: &[AtomicU64; 2]) -> Uuid {
    Uuid::from(high.load(Relaxed)) << 64 | Uuid::from(low.load(Relaxed))
}

fn set_uuid([high, low]: &[AtomicU64; 2], uuid: Uuid) {
    high.store((uuid >> 64) as u64, Relaxed);
    low.store(uuid as u64, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    fn leases(shards: impl Iterator<Item = u32>, starts_us: i64) -> Leases {
        let span = Span { starts_us, ends_us: starts_us + 1 };
        let slots = shards.map(|shard| Slot { shard, span, serial: Some(starts_us) }).collect();
        of_slots(slots)
    }

    fn of_slots(slots: Vec<Slot>) -> Leases {
        Leases { holder: Holder { slots, ..Holder::default() }, ..Leases::default() }
    }

    #[test]
    fn what_is_published_is_read() {
        let shared = Box::new(Shared::empty());
        let texts = ["é".repeat(512), String::new()];
        let holder = Holder {
            incarnation: 1 << 64 | 2,
            is_inherited: true,
            nonce: u128::MAX,
            is_assigned: true,
            ..leases(0..MAX_SHARDS_OF_A_NODE as u32, 9).holder
        };
        let published = Leases { holder, answered_at_us: Some(7), answer: texts[0].clone(), error: format!("a{}", texts[0]) };
        shared.publish(&published);
        let read = shared.leases();
        assert_eq!(read.error, format!("a{}", "é".repeat(511)), "as much as fits");
        assert_eq!(Leases { error: published.error.clone(), ..read }, published);

        shared.publish(&Leases::default());
        assert_eq!(shared.leases(), Leases::default());
    }

    #[test]
    fn the_span_of_a_shard_is_found() {
        let shared = Box::new(Shared::empty());
        shared.publish(&leases([3, 5, 8000].into_iter(), 9));
        let has_span = |shard| shared.span_of(Class::one(shard)).is_ok();
        assert_eq!([0, 3, 4, 5, 6, 8000, 8001].map(has_span), [false, true, false, true, false, true, false]);
        let closed = [3, 5, 8000].map(Slot::closed).to_vec();
        shared.publish(&of_slots(closed));
        assert_eq!([3, 5, 8000].map(has_span), [false; 3]);
    }

    #[test]
    fn a_reader_never_sees_half_of_a_change() {
        let shared = Box::new(Shared::empty());
        let is_over = AtomicBool::new(false);
        let version = |number: i64| leases(number as u32 % 7..9, number);
        shared.publish(&version(0));
        thread::scope(|scope| {
            let read = || {
                while !is_over.load(Relaxed) {
                    let span = shared.span_of(Class::one(8)).expect("every version has shard 8");
                    assert_eq!(span.ends_us, span.starts_us + 1);
                    let leases = shared.leases();
                    assert_eq!(leases, version(leases.holder.slots[0].span.starts_us));
                }
            };
            let readers = [(); 2].map(|()| scope.spawn(read));
            for number in 1..100_000 {
                shared.publish(&version(number));
            }
            is_over.store(true, Relaxed);
            for reader in readers {
                reader.join().expect("whole versions only");
            }
        });
    }
}
