//! The leases of this server in shared memory. The lease worker writes them, and every session reads them.
//!
//! There are two tables. The worker fills the one that is not in use, and then increments the version, whose lowest bit says which
//! one is. A reader reads again if the version has changed meanwhile: a seqlock, but one whose readers never wait, even if the worker
//! is stopped in the middle of a change.
//!
//! The mark is the highest instant that the server may have used for an ID, in any database, sequence and shard. A session raises
//! it, and then checks the version; the worker closes a lease, and then reads the mark. All of these accesses are sequentially
//! consistent. So either the session sees that the lease is closed, or the worker sees the session's mark.

use crate::postgres::report::Raise;
use pg_snowflake_policies::holder::{Holder, Slot};
use pg_snowflake_policies::homed::Class;
use pg_snowflake_policies::lease::Span;
use pg_snowflake_policies::messages::sequence as messages;
use pg_snowflake_policies::registry::{MAX_SHARDS_OF_A_NODE, Uuid};
use pgrx::{pg_guard, pg_sys};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, fence};

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

/// The shared memory.
pub struct Shared {
    version: Padded<AtomicU64>,
    mark_us: Padded<AtomicI64>,
    tables: [Table; 2],
}

/// In cache lines of its own: the mark is written often.
#[repr(align(128))]
struct Padded<T>(T);

/// [`Leases`] in shared memory.
struct Table {
    incarnation: [AtomicU64; 2],
    nonce: [AtomicU64; 2],
    is_inherited: AtomicBool,
    is_assigned: AtomicBool,
    answered_at_us: AtomicI64,
    answer: Text,
    error: Text,
    count: AtomicUsize,
    slots: [SharedSlot; MAX_SHARDS_OF_A_NODE],
}

/// A [`Slot`] in shared memory.
struct SharedSlot {
    shard: AtomicU32,
    starts_us: AtomicI64,
    ends_us: AtomicI64,
    serial: AtomicI64,
}

/// A text in shared memory.
struct Text {
    length: AtomicUsize,
    bytes: [AtomicU8; 1024],
}

/// Stands for `None` in a number.
const NONE: i64 = i64::MIN;

/// Null if no registry is set. It is atomic because a mutable static must be, to be safe.
static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// The value of [`SHARED`] if a registry is set, but the library was not preloaded.
const MISSING: *mut Shared = ptr::dangling_mut();

/// Where the leases of this server are.
pub enum Place {
    /// No registry is set: none are needed.
    NotNeeded,
    /// A registry is set, but the library was not preloaded.
    Missing,
    /// In shared memory.
    Memory(&'static Shared),
}

/// Where the leases of this server are.
#[inline(always)]
pub fn place() -> Place {
    let shared = SHARED.load(Relaxed);
    if shared.is_null() {
        Place::NotNeeded
    } else if shared == MISSING {
        Place::Missing
    } else {
        // SAFETY: it is what initialize() stored, which lives as long as the process.
        Place::Memory(unsafe { &*shared })
    }
}

/// Whether a registry is set.
pub fn is_required() -> bool {
    !matches!(place(), Place::NotNeeded)
}

/// The shared memory; `None` if no registry is set, or the library was not preloaded.
pub fn get() -> Option<&'static Shared> {
    match place() {
        Place::Memory(shared) => Some(shared),
        Place::NotNeeded | Place::Missing => None,
    }
}

/// Records whether a registry is set, in a server that was started without leases.
pub fn set_missing(is_missing: bool) {
    SHARED.store(if is_missing { MISSING } else { ptr::null_mut() }, Relaxed);
}

impl Shared {
    /// Incremented by each change of the leases.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.0.load(SeqCst)
    }

    /// The span that the leases of all shards of the class have in common, and the version it is from; the first shard whose lease
    /// is not held, if there is one. A lease that begins later can be held with an empty span, and leases can have none in common.
    pub fn span_of(&self, class: Class) -> (u64, Result<Span, u32>) {
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
        self.read(assigned).1
    }

    /// All that the worker has published.
    pub fn leases(&self) -> Leases {
        self.read(Table::leases).1
    }

    /// Calls `f` with the table in use, again if that has changed meanwhile.
    fn read<T>(&self, f: impl Fn(&Table) -> T) -> (u64, T) {
        loop {
            let version = self.version();
            let value = f(self.table(version));
            fence(Acquire);
            if self.version.0.load(Relaxed) == version {
                return (version, value);
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
        &self.slots[..self.count.load(Relaxed).min(MAX_SHARDS_OF_A_NODE)]
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
        for (shared, slot) in self.slots.iter().zip(&holder.slots) {
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
        let length = self.length.load(Relaxed).min(self.bytes.len());
        let bytes: Vec<u8> = self.bytes[..length].iter().map(|byte| byte.load(Relaxed)).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Writes as much as fits.
    fn write(&self, text: &str) {
        let fitting = &text[..text.floor_char_boundary(self.bytes.len())];
        self.length.store(fitting.len(), Relaxed);
        for (shared, byte) in self.bytes.iter().zip(fitting.bytes()) {
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

/// A new UUID, of version 4 (RFC 9562).
pub fn new_uuid() -> Uuid {
    let mut bytes = [0_u8; 16];
    // SAFETY: a buffer of that length.
    if !unsafe { pg_sys::pg_strong_random(bytes.as_mut_ptr().cast(), bytes.len()) } {
        messages::no_random_values().raise();
    }
    Uuid::from_be_bytes(bytes) & !(0xf << 76 | 0b11 << 62) | 4 << 76 | 0b10 << 62
}

/// The hooks that were installed before ours.
static PREVIOUS_REQUEST: OnceLock<pg_sys::shmem_request_hook_type> = OnceLock::new();
static PREVIOUS_STARTUP: OnceLock<pg_sys::shmem_startup_hook_type> = OnceLock::new();

/// The incarnation of this run of the server: made by the postmaster, so that a crash of a backend does not change it.
static INCARNATION: OnceLock<Uuid> = OnceLock::new();

/// Whether the postmaster has made the memory before.
static IS_INHERITED: AtomicBool = AtomicBool::new(false);

/// Has the server reserve and initialize the memory. Called once, when the postmaster preloads the library.
pub fn reserve() {
    INCARNATION.get_or_init(new_uuid);
    // SAFETY: hooks are chained at library load, on the postmaster's only thread.
    unsafe {
        PREVIOUS_REQUEST.get_or_init(|| pg_sys::shmem_request_hook);
        pg_sys::shmem_request_hook = Some(request);
        PREVIOUS_STARTUP.get_or_init(|| pg_sys::shmem_startup_hook);
        pg_sys::shmem_startup_hook = Some(initialize);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // SAFETY: called by the server as a hook, as the previous one expects it.
    unsafe {
        call(&PREVIOUS_REQUEST);
        pg_sys::RequestAddinShmemSpace(size_of::<Shared>());
    }
}

/// Called by the postmaster at its start, and again after a crash of a backend. Only the postmaster calls it, so it needs no lock.
#[pg_guard]
unsafe extern "C-unwind" fn initialize() {
    // SAFETY: as for request(). All zeros are a valid `Shared`, and nobody else uses it yet.
    unsafe {
        call(&PREVIOUS_STARTUP);
        let mut is_found = false;
        let name = c"pg_snowflake leases".as_ptr();
        let shared = pg_sys::ShmemInitStruct(name, size_of::<Shared>(), &raw mut is_found);
        let shared = shared.cast::<Shared>();
        shared.write_bytes(0, 1);
        (*shared).mark_us.0.store(i64::MIN, Relaxed);
        let holder = Holder {
            incarnation: INCARNATION.get().copied().unwrap_or_default(),
            is_inherited: IS_INHERITED.swap(true, Relaxed),
            nonce: new_uuid(),
            ..Holder::default()
        };
        (*shared).publish(&Leases { holder, ..Leases::default() });
        SHARED.store(shared, Relaxed);
    }
}

/// # Safety
/// Called where the hook expects it.
unsafe fn call(previous: &OnceLock<Option<unsafe extern "C-unwind" fn()>>) {
    if let Some(hook) = previous.get().copied().flatten() {
        // SAFETY: as the caller promises.
        unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| hook()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Holder, Leases, MAX_SHARDS_OF_A_NODE, Shared, Slot};
    use pg_snowflake_policies::homed::Class;
    use pg_snowflake_policies::lease::Span;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::thread;

    fn shared() -> Box<Shared> {
        // SAFETY: all zeros are a valid `Shared`.
        unsafe { Box::new_zeroed().assume_init() }
    }

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
        let shared = shared();
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
        let shared = shared();
        shared.publish(&leases([3, 5, 8000].into_iter(), 9));
        let has_span = |shard| shared.span_of(Class::one(shard)).1.is_ok();
        assert_eq!([0, 3, 4, 5, 6, 8000, 8001].map(has_span), [false, true, false, true, false, true, false]);
        let closed = [3, 5, 8000].map(Slot::closed).to_vec();
        shared.publish(&of_slots(closed));
        assert_eq!([3, 5, 8000].map(has_span), [false; 3]);
    }

    #[test]
    fn a_reader_never_sees_half_of_a_change() {
        let shared = shared();
        let is_over = AtomicBool::new(false);
        let version = |number: i64| leases(number as u32 % 7..9, number);
        shared.publish(&version(0));
        thread::scope(|scope| {
            let read = || {
                while !is_over.load(Relaxed) {
                    let (_, span) = shared.span_of(Class::one(8));
                    let span = span.expect("every version has shard 8");
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
