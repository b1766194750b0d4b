//! The state that a session keeps of each sequence that it has used, for the backend's life or until DISCARD:
//! core's `SeqTableData`, and its hash table `seqhashtab`.

use super::interface::Permit;
use super::sequence_data::Definition;
use super::{backend_clock, invalidation, sys};
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::memory;
use pg_snowflake_policies::counter::{Cached, Request, Run};
use pgrx::pg_sys;
use std::collections::{HashMap, TryReserveError};
use std::ffi::c_char;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::OnceLock;

/// A session's state of one sequence. The fields that core also has keep its names. There is no `increment`, which is always 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct SeqTableData {
    /// The sequence's OID in `pg_class`; the hash key.
    pub relid: pg_sys::Oid,
    /// The sequence's storage when it was last opened. RESTART and TRUNCATE replace it, which voids `cached`.
    pub filenumber: pg_sys::Oid,
    /// Identifies the sequence in invalidation messages: [`invalidation::hash`]. Set before any version is read.
    pub hash: u32,
    /// The transaction that last locked the sequence; 0 is `InvalidLocalTransactionId`.
    pub lxid: pg_sys::LocalTransactionId,
    /// Whether `last` is valid.
    pub last_valid: bool,
    /// The last ID returned in this session.
    pub last: i64,
    /// Counters fetched and not yet used. Core keeps only the last of them.
    pub cached: Option<Cached>,
    /// The [version](Permit::version) of the permit with which `cached` was fetched.
    pub permit_version: u64,
    /// [`invalidation::pg_sequence_version`] when the sequence was last opened. Every ALTER SEQUENCE changes it, which voids `cached`.
    pub pg_sequence_version: u64,
    /// The bits of a layout, and its highest counter that this session has fetched. No layout has the bits 0: the session has fetched none.
    pub highest_fetched: (u64, i64),
    /// The checks that have passed and need not be repeated.
    pub passed_checks: PassedChecks,
    /// The buffer of the page, and the limits of its counters.
    pub recent_page: RecentPage,
}

/// What the checks that `nextval_internal()` made depend on. They hold from one transaction to the next: relying on
/// them saves opening and closing the relation, looking up privileges, and the guard, which is then not needed either. Together, these take
/// more instructions than the rest of an ID.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassedChecks {
    /// The user whose privileges were checked.
    pub user: pg_sys::Oid,
    /// [`invalidation::catalog_version`] before the sequence was opened; 0 if no check has passed.
    pub catalog_version: u64,
}

/// The relation and its row in `pg_sequence` when the page was last read, and the buffer that held the page.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentPage {
    /// [`invalidation::catalog_version`] before the sequence was opened; 0 if the page has not been read.
    pub catalog_version: u64,
    /// How many more times the page may be read without opening the sequence.
    pub visits_left: u32,
    /// The sequence's storage.
    pub locator: sys::RelFileLocator,
    /// A hint for `ReadRecentBuffer()`: it may hold another page by now.
    pub buffer: pg_sys::Buffer,
    /// The row in `pg_sequence`.
    pub definition: Definition,
}

/// What the checks of a fetch depended on. As long as it is the same, they would pass again.
#[derive(Clone, Copy, Debug)]
pub struct Basis {
    user: pg_sys::Oid,
    is_read_only: bool,
    /// The sequence's [`SeqTableData::hash`].
    hash: u32,
    catalog_version: u64,
}

impl Basis {
    /// Of no fetch, so that it is never the same.
    pub const NONE: Basis = Basis { user: pg_sys::InvalidOid, is_read_only: false, hash: 0, catalog_version: 0 };

    /// Whether the user and the transaction are still the same.
    #[inline(always)]
    pub fn is_of_this_user(&self) -> bool {
        // SAFETY: a plain function and a global of the server.
        unsafe { self.user == sys::GetUserId() && self.is_read_only == pg_sys::XactReadOnly && !sys::IsInParallelMode() }
    }

    /// Whether the catalogs are still the same.
    pub fn is_of_these_catalogs(&self) -> bool {
        self.catalog_version == invalidation::catalog_version(self.hash)
    }
}

impl SeqTableData {
    /// What the checks of the fetch that has just been made depended on.
    pub fn basis(&self) -> Basis {
        let catalog_version = self.recent_page.catalog_version;
        // SAFETY: as in is_of_this_user().
        let (user, is_read_only) = unsafe { (sys::GetUserId(), pg_sys::XactReadOnly) };
        Basis { user, is_read_only, hash: self.hash, catalog_version }
    }

    /// [`invalidation::catalog_version`] of the sequence.
    pub fn catalog_version(&self) -> u64 {
        invalidation::catalog_version(self.hash)
    }

    /// The next cached counter. Drops the cached counters if they may not be used: another server may have used them if this one was not
    /// permitted to meanwhile. They need not be confirmed, since that was done when they were fetched.
    #[inline(always)]
    pub fn next_cached(&mut self, permit: &Permit) -> Option<i64> {
        let cached = self.cached?;
        if self.permit_version != permit.version || !cached.is_usable(&permit.reading) {
            self.cached = None;
            return None;
        }
        self.cached = cached.rest();
        backend_clock::note_issued(permit.reading.now());
        Some(cached.next)
    }

    /// Returns the first counter of the run, and caches the rest for later calls. Nothing is cached yet.
    #[inline(always)]
    pub fn save_in_cache(&mut self, run: Run, permit: &Permit) -> i64 {
        let (Run { first, last }, layout) = (run, permit.reading.layout().bits());
        self.highest_fetched = (layout, last);
        if let Some(rest) = (Cached { layout, next: first, last }).rest() {
            (self.cached, self.permit_version) = (Some(rest), permit.version);
        }
        first
    }

    /// Locks the sequence if this transaction has not locked it yet, and returns whether it did. Locking processes the
    /// invalidation messages of other sessions. The lock is owned by the transaction and not by the (sub)statement, so
    /// that neither a rolled-back savepoint nor the end of a portal releases it.
    ///
    /// # Safety
    /// In a transaction. May raise an ERROR.
    #[inline(always)]
    pub unsafe fn lock(&mut self) -> bool {
        let lxid = sys::current_lxid();
        if self.lxid == lxid {
            return false;
        }
        // SAFETY: the resource owner is restored before anything else can run; if the lock fails, the transaction
        // aborts and restores it itself, as in core.
        unsafe {
            let current_owner = pg_sys::CurrentResourceOwner;
            pg_sys::CurrentResourceOwner = pg_sys::TopTransactionResourceOwner;
            sys::LockRelationOid(self.relid, ROW_EXCLUSIVE_LOCK);
            pg_sys::CurrentResourceOwner = current_owner;
        }
        self.lxid = lxid;
        true
    }

    /// Records the ID that is returned.
    pub fn set_last(&mut self, id: i64) {
        self.last = id;
        self.last_valid = true;
    }

    /// Forgets everything but what keeps the session from repeating an ID.
    fn reset(&mut self) {
        self.cached = None;
        self.last_valid = false;
    }
}

/// The sequences that this backend has used: core's `seqhashtab`.
struct SeqHashTab {
    /// The index of each sequence in `entries`. Small values that refer to a dense vector, instead of the
    /// entries as large values of the table, and [`OidHasher`]: 520 -> 258 ns of CPU time per ID with 100,000
    /// sequences in the order of their OIDs where no record is written, and 194 -> 168 with 1,000.
    indexes: HashMap<u32, u32, BuildHasherDefault<OidHasher>>,
    /// In the order of first use.
    entries: Vec<SeqTableData>,
    /// The entry that was used last: core's `last_used_seq`.
    last_used_seq: (pg_sys::Oid, usize),
    /// The number of entries at which dropped sequences are searched for. It doubles with the entries, so the search is cheap per entry.
    due_at: usize,
}

/// The fewest entries among which dropped sequences are looked for: 200 kB.
const MIN_DUE: usize = 1024;

/// Refers to no entry: the index is out of range, so that the invalid OID finds nothing either.
const NO_SEQUENCE: (pg_sys::Oid, usize) = (pg_sys::InvalidOid, usize::MAX);

static SEQHASHTAB: BackendLocal<SeqHashTab> = BackendLocal::new(SeqHashTab {
    indexes: HashMap::with_hasher(BuildHasherDefault::new()),
    entries: Vec::new(),
    last_used_seq: NO_SEQUENCE,
    due_at: MIN_DUE,
});

impl SeqHashTab {
    #[inline(always)]
    fn find(&mut self, relid: pg_sys::Oid) -> Option<&mut SeqTableData> {
        let (last_used, index) = self.last_used_seq;
        let index = if last_used == relid { index } else { self.index_of(relid)? };
        self.entries.get_mut(index)
    }

    #[inline(always)]
    fn enter(&mut self, relid: pg_sys::Oid) -> Result<&mut SeqTableData, TryReserveError> {
        if self.find(relid).is_none() {
            self.add(relid)?;
        }
        // find() or add() has made it the last one used.
        Ok(&mut self.entries[self.last_used_seq.1])
    }

    #[cold]
    fn add(&mut self, relid: pg_sys::Oid) -> Result<(), TryReserveError> {
        memory::fallible(|| self.entries.try_reserve(1).and(self.indexes.try_reserve(1)))?;
        let index = self.entries.len();
        self.entries.push(SeqTableData { relid, ..SeqTableData::default() });
        self.indexes.insert(relid.to_u32(), index as u32);
        self.last_used_seq = (relid, index);
        Ok(())
    }

    /// Removes these entries. The sequences are in the order of the entries.
    fn forget(&mut self, relids: &[pg_sys::Oid]) {
        if !relids.is_empty() {
            let mut relids = relids.iter().peekable();
            self.entries.retain(|elm| relids.next_if(|&&relid| relid == elm.relid).is_none());
            self.entries.shrink_to(2 * self.entries.len());
            self.indexes.clear();
            self.indexes.shrink_to(2 * self.entries.len());
            let indexes = self.entries.iter().zip(0..);
            self.indexes.extend(indexes.map(|(elm, index)| (elm.relid.to_u32(), index)));
            self.last_used_seq = NO_SEQUENCE;
        }
        self.due_at = MIN_DUE.max(2 * self.entries.len());
    }

    /// Finds a sequence other than the last one used, and makes it the last one. Its page is probably not in the processor's caches.
    #[inline(never)]
    fn index_of(&mut self, relid: pg_sys::Oid) -> Option<usize> {
        let index = *self.indexes.get(&relid.to_u32())? as usize;
        self.last_used_seq = (relid, index);
        let elm = self.entries.get(index)?;
        // A cached ID does not read the page.
        if elm.cached.is_none() {
            sys::prefetch_sequence(elm.recent_page.buffer);
        }
        Some(index)
    }
}

/// Sequences that are created together, and so used together, have adjacent OIDs. Hashed to adjacent slots,
/// they share cache lines. The upper bits, which distinguish neighbours in the table, are mixed.
#[derive(Default)]
struct OidHasher(u64);

impl Hasher for OidHasher {
    fn write_u32(&mut self, oid: u32) {
        let mixed = u64::from(oid).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed & !u64::from(u32::MAX)) | u64::from(oid);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("an OID is hashed as the u32 that it is");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The request for a counter that the permit allows, of a sequence with this [`SeqTableData::highest_fetched`].
#[inline(always)]
pub fn request_after((layout, counter): (u64, i64), permit: &Permit) -> Request<'_> {
    let highest_fetched = (layout == permit.reading.layout().bits()).then_some(counter);
    Request { reading: &permit.reading, shard: permit.class.first, highest_fetched }
}

/// Calls `f` with the entry of a sequence, which is created if there is none: `hash_search()` with `HASH_ENTER`.
///
/// # Safety
/// As for [`BackendLocal::get`]: `f` must not access the table again.
#[inline(always)]
pub unsafe fn with_entry<T>(relid: pg_sys::Oid, f: impl FnOnce(&mut SeqTableData) -> T) -> T {
    // SAFETY: as the caller promises.
    match unsafe { SEQHASHTAB.get() }.enter(relid) {
        Ok(elm) => f(elm),
        Err(_) => memory::out_of_memory(size_of::<SeqTableData>()),
    }
}

/// The entry of a sequence; `None` if the session has not used it: `HASH_FIND`.
///
/// # Safety
/// As for [`BackendLocal::get`]: nothing accesses the table before the last use of the entry.
#[inline(always)]
pub unsafe fn found_entry(relid: pg_sys::Oid) -> Option<&'static mut SeqTableData> {
    // SAFETY: as the caller promises.
    unsafe { SEQHASHTAB.get() }.find(relid)
}

/// Records the last ID that a batch returned from the sequence `relid`.
#[inline(always)]
pub fn set_last(relid: pg_sys::Oid, id: i64) {
    // SAFETY: the entry is used here alone.
    if let Some(elm) = unsafe { found_entry(relid) } {
        elm.set_last(id);
    }
}

/// `ResetSequenceCaches()`, for DISCARD. Unlike core's, it keeps `highest_fetched`, so that the session never repeats an ID.
pub fn reset_sequence_caches() {
    // SAFETY: no entry is in use while a utility command runs.
    unsafe { SEQHASHTAB.get() }.entries.iter_mut().for_each(SeqTableData::reset)
}

/// Removes the entries of dropped sequences, if the session has used so many since the last time that looking is worth its cost. Core
/// keeps its `seqhashtab` for the session's life, but a pooled session can use a new temporary table in each transaction.
///
/// # Safety
/// In a transaction, while no entry is in use. May raise an ERROR.
pub unsafe fn forget_dropped_sequences() {
    // SAFETY: nothing runs SQL until its last use.
    let table = unsafe { SEQHASHTAB.get() };
    if table.entries.len() < table.due_at {
        return;
    }
    let mut changed = Vec::new();
    memory::reserve(&mut changed, table.entries.len());
    changed.extend(table.entries.iter().filter(|elm| may_be_dropped(elm)).map(|elm| elm.relid));
    // SAFETY: in a transaction.
    let dropped = if changed.is_empty() { changed } else { unsafe { dropped(changed) } };
    // SAFETY: the reference above is not used again.
    unsafe { SEQHASHTAB.get() }.forget(&dropped);
}

/// Whether the session has processed a message about the sequence since it last read the page, as it does when it notices a DROP.
fn may_be_dropped(elm: &SeqTableData) -> bool {
    elm.recent_page.catalog_version != elm.catalog_version()
}

/// The relations that no longer exist, even if the current transaction is rolled back.
unsafe fn dropped(mut relids: Vec<pg_sys::Oid>) -> Vec<pg_sys::Oid> {
    // SAFETY: the catalog is open until table_close(), or until the abort after an ERROR.
    unsafe {
        let pg_class = call!(table_open(pg_sys::RelationRelationId, ACCESS_SHARE_LOCK));
        relids.retain(|&relid| !has_row(pg_class, relid) && !is_being_dropped(relid));
        call!(table_close(pg_class, ACCESS_SHARE_LOCK));
    }
    relids
}

/// Whether the relation is in `pg_class`. Unlike a lookup in the syscache, this leaves no negative entry behind.
unsafe fn has_row(pg_class: pg_sys::Relation, relid: pg_sys::Oid) -> bool {
    // SAFETY: the scan and its key live until systable_endscan().
    unsafe {
        let mut key = pg_sys::ScanKeyData::default();
        call!(ScanKeyInit(
            &mut key,
            pg_sys::Anum_pg_class_oid as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::Oid::from(pg_sys::F_OIDEQ),
            relid.into(),
        ));
        let index = pg_sys::Oid::from(pg_sys::ClassOidIndexId);
        let scan = call!(systable_beginscan(pg_class, index, true, std::ptr::null_mut(), 1, &mut key));
        let has_row = !call!(systable_getnext(scan)).is_null();
        call!(systable_endscan(scan));
        has_row
    }
}

/// Whether the current transaction has dropped the relation, and could still be rolled back: it then holds the lock of a DROP.
unsafe fn is_being_dropped(relid: pg_sys::Oid) -> bool {
    // SAFETY: as SET_LOCKTAG_RELATION() (storage/lock.h); a plain function of the server.
    unsafe {
        let tag = pg_sys::LOCKTAG {
            locktag_field1: pg_sys::MyDatabaseId.to_u32(),
            locktag_field2: relid.to_u32(),
            locktag_field3: 0,
            locktag_field4: 0,
            locktag_type: pg_sys::LockTagType::LOCKTAG_RELATION as u8,
            locktag_lockmethodid: pg_sys::DEFAULT_LOCKMETHOD as u8,
        };
        let mode = pg_sys::AccessExclusiveLock as pg_sys::LOCKMODE;
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return call!(LockHeldByMe(&tag, mode));
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        return call!(LockHeldByMe(&tag, mode, false));
    }
}

/// The hook that was installed before ours.
static PREVIOUS: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// Installs the hook. Called once, at library load.
pub fn install_hook() {
    // SAFETY: hooks are chained at library load, on the backend's only thread.
    unsafe {
        PREVIOUS.get_or_init(|| pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// Runs the command, then resets if it was one of these DISCARDs.
///
/// The call has no guard: an ERROR passes over this frame, which holds nothing, to the caller's handler.
#[allow(clippy::too_many_arguments, reason = "the hook's signature")]
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let discards = discards_sequences((*statement).utilityStmt);
        let next = PREVIOUS.get().copied().flatten().unwrap_or(sys::standard_ProcessUtility);
        next(statement, query, read_only_tree, context, params, environment, destination, completion);
        if discards {
            reset_sequence_caches();
        }
    }
}

unsafe fn discards_sequences(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: a utility statement starts with its node tag.
    unsafe {
        (*statement).type_ == pg_sys::NodeTag::T_DiscardStmt
            && matches!(
                (*statement.cast::<pg_sys::DiscardStmt>()).target,
                pg_sys::DiscardMode::DISCARD_ALL | pg_sys::DiscardMode::DISCARD_SEQUENCES
            )
    }
}

const ROW_EXCLUSIVE_LOCK: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
const ACCESS_SHARE_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
