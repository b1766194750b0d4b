//! The page of a sequence: lock, read, log, write. All code that changes a page or writes WAL is here.
//!
//! [`read_seq_tuple`] is core's, in PostgreSQL's `src/backend/commands/sequence.c`. The other functions are parts of it and of
//! `nextval_internal()` that have no name there. As in `nextval.rs`, an ERROR passes over these frames, so nothing here holds anything with a destructor.

use super::interface::NoCounter;
use super::sys::{self, FormData_pg_sequence_data};
use crate::postgres::report::{Report, quoted, relation_name};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::counter::{self, Run, State};
use pg_snowflake_policies::messages::sequence as messages;
use pgrx::pg_sys;
use std::mem::offset_of;

/// A sequence's page, pinned and locked exclusively, and its one tuple.
#[derive(Clone, Copy)]
pub struct LockedPage {
    /// The buffer that holds the page.
    pub buffer: pg_sys::Buffer,
    page: pg_sys::Page,
    tuple: pg_sys::HeapTupleHeader,
    tuple_len: u32,
    data: *mut FormData_pg_sequence_data,
}

impl FormData_pg_sequence_data {
    /// The tuple as input of the policy.
    pub fn state(&self) -> State {
        State { last_value: self.last_value, is_called: self.is_called }
    }
}

impl LockedPage {
    /// The state in the tuple.
    ///
    /// # Safety
    /// The page is still locked.
    pub unsafe fn state(self) -> State {
        // SAFETY: as the caller promises.
        unsafe { (*self.data).state() }
    }

    /// [`set_back`]
    ///
    /// # Safety
    /// The page is still locked.
    pub unsafe fn set_back(self, storage: Storage) -> Option<SetBack> {
        // SAFETY: as the caller promises.
        unsafe { set_back(self.page, storage) }
    }

    fn coverage_record(self) -> *mut CoverageRecord {
        coverage_record(self.page)
    }

    /// The last counter covered by a record of ours that replay would find.
    ///
    /// # Safety
    /// The page is still locked, and marked dirty. A checkpoint that begins after the redo pointer is read here
    /// then finds the page dirty, and waits for the lock before it writes the caller's change. A page that is
    /// marked dirty later could be skipped as clean, and replay would start after its record.
    #[inline(always)]
    unsafe fn covered(self, storage: Storage) -> Option<i64> {
        // SAFETY: as the caller promises.
        unsafe {
            let lsn = sys::PageGetLSN(self.page);
            let record = self.coverage_record();
            let is_of_this_page = (*record).lsn == lsn && (*record).storage == storage;
            (is_of_this_page && lsn > sys::GetRedoRecPtr()).then(|| (*record).last_value)
        }
    }

    /// Releases the lock and the pin.
    ///
    /// # Safety
    /// The page is still locked, and not used afterwards.
    pub unsafe fn release(self) {
        // SAFETY: as the caller promises.
        unsafe { sys::UnlockReleaseBuffer(self.buffer) }
    }

    unsafe fn set_tuple(self, last_value: i64, log_cnt: i64) {
        // SAFETY: the page is locked exclusively.
        unsafe {
            (*self.data).last_value = last_value;
            (*self.data).log_cnt = log_cnt;
            (*self.data).is_called = true;
        }
    }
}

/// The storage of a sequence, `RelFileLocator` as numbers: tablespace, database, file.
pub type Storage = [u32; 3];

/// The record that covers a sequence, as remembered on its page: at the start of the page's free space, after
/// the one line pointer. Core neither reads nor moves these bytes, and they are zero on a page that core
/// creates or replays. They share a cache line with the header, which every call reads.
///
/// `log_cnt` cannot serve here. `ALTER SEQUENCE`, `SET LOGGED` and others copy it with the tuple to new
/// storage, whose WAL holds the tuple as it is, and `CREATE DATABASE` copies the whole page. A record belongs
/// to this page only if it names the page's LSN and its storage. A page that was copied, or logged by anyone
/// else, has a different LSN or storage.
#[derive(Clone, Copy)]
#[repr(C)]
struct CoverageRecord {
    /// The last counter covered.
    last_value: i64,
    /// The page's LSN when the record was written.
    lsn: pg_sys::XLogRecPtr,
    /// The storage that the record names.
    storage: Storage,
    /// How many of the covered counters are left, at most. It is up to date where the record belongs to the page.
    left: u32,
}

impl CoverageRecord {
    /// The offset on the page: the header and one line pointer, MAXALIGNed.
    const OFFSET: usize = 32;
}

fn coverage_record(page: pg_sys::Page) -> *mut CoverageRecord {
    page.wrapping_add(CoverageRecord::OFFSET).cast()
}

const _: () = assert!(offset_of!(pg_sys::PageHeaderData, pd_linp) + size_of::<pg_sys::ItemIdData>() <= CoverageRecord::OFFSET);
const _: () = assert!(size_of::<CoverageRecord>() == 32 && align_of::<CoverageRecord>() == 8);

/// Reads and locks the page: `read_seq_tuple()`.
///
/// # Safety
/// The relation is open, locked, and a sequence.
pub unsafe fn read_seq_tuple(relation: pg_sys::Relation) -> Result<LockedPage, NoCounter> {
    // SAFETY: as the caller promises; ReadBuffer() pins.
    unsafe { lock_seq_tuple(sys::ReadBuffer(relation, 0)) }
}

/// Locks the pinned page, and finds the tuple. Releases the page if it is not a sequence's.
///
/// # Safety
/// The buffer is pinned, and the storage of its page cannot be dropped.
#[inline(always)]
pub unsafe fn lock_seq_tuple(buffer: pg_sys::Buffer) -> Result<LockedPage, NoCounter> {
    // SAFETY: the buffer is that of a sequence's page: one tuple.
    unsafe {
        sys::LockBuffer(buffer, sys::BUFFER_LOCK_EXCLUSIVE);
        let page = match check_magic(buffer) {
            Ok(page) => page,
            Err(error) => {
                sys::UnlockReleaseBuffer(buffer);
                return Err(error);
            }
        };

        let (tuple, tuple_len) = sys::first_tuple(page);
        clear_xmax(buffer, tuple);
        Ok(LockedPage { buffer, page, tuple, tuple_len, data: sys::GETSTRUCT(tuple) })
    }
}

/// The page in the buffer; an error if it is not a sequence's.
///
/// # Safety
/// The buffer is pinned and locked.
pub unsafe fn check_magic(buffer: pg_sys::Buffer) -> Result<pg_sys::Page, NoCounter> {
    // SAFETY: as the caller promises.
    unsafe {
        let page = sys::BufferGetPage(buffer);
        match (*sys::sequence_special_area(page)).magic {
            sys::SEQ_MAGIC => Ok(page),
            magic => Err(NoCounter::BadMagic(magic)),
        }
    }
}

/// A counter that a record of ours has covered; `None` if core has created or replayed the page since. The counter may have been reset
/// since, but the sequence has generated IDs.
///
/// # Safety
/// The page is locked, and a sequence's.
pub unsafe fn marked_counter(page: pg_sys::Page) -> Option<i64> {
    // SAFETY: as the caller promises; the record is within the page.
    let record = unsafe { *coverage_record(page) };
    (record.lsn != 0).then_some(record.last_value)
}

/// A sequence that somebody has set below counters that were issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBack {
    /// The last counter that was issued. The next one follows it.
    pub from: i64,
    to: i64,
}

impl SetBack {
    /// What is said of it for the sequence `relid`.
    pub fn report(self, relid: pg_sys::Oid) -> Report {
        messages::set_back(quoted(&relation_name(relid)), self.from, self.to)
    }
}

/// Whether somebody has set the sequence below the last counter that was issued: `setval()`, or a tool of replication. Core has logged
/// the page then, and has left our record in place. Its `nextval()` does so, too, but only moves the sequence forward.
///
/// # Safety
/// The page is locked, and a sequence's.
pub unsafe fn set_back(page: pg_sys::Page, storage: Storage) -> Option<SetBack> {
    // SAFETY: as the caller promises.
    unsafe {
        let record = *coverage_record(page);
        let data = sys::GETSTRUCT::<FormData_pg_sequence_data>(sys::first_tuple(page).0);
        let is_logged_by_core = record.storage == storage && record.lsn != sys::PageGetLSN(page);
        let (from, to) = (record.last_value.saturating_sub(i64::from(record.left)), (*data).state().last_issued());
        (is_logged_by_core && to < from).then_some(SetBack { from, to })
    }
}

/// Clears an xmax that SELECT FOR UPDATE could leave in the tuple in old releases, and that would lead to clog
/// lookups of long-gone transactions. As in core, this is treated like a hint bit update.
unsafe fn clear_xmax(buffer: pg_sys::Buffer, tuple: pg_sys::HeapTupleHeader) {
    // SAFETY: the page is locked exclusively.
    unsafe {
        let fields = &raw mut (*tuple).t_choice.t_heap;
        if (*fields).t_xmax != pg_sys::InvalidTransactionId {
            (*fields).t_xmax = pg_sys::InvalidTransactionId;
            (*tuple).t_infomask &= !(pg_sys::HEAP_XMAX_COMMITTED as u16);
            (*tuple).t_infomask |= pg_sys::HEAP_XMAX_INVALID as u16;
            sys::MarkBufferDirtyHint(buffer, true);
        }
    }
}

/// Logs how far the counter may advance, if a record is due, and then writes where it is after the run.
/// `wal_locator` is the storage that the record names; `None` if the sequence is not logged.
///
/// Returns whether it has written: not if the run is below the last counter of [`set_back`].
///
/// # Safety
/// The page is still locked.
#[inline(always)]
#[must_use]
pub unsafe fn write_seq_tuple(
    locked: LockedPage,
    run: Run,
    max_value: i64,
    layout: &Layout,
    wal_locator: Option<&sys::RelFileLocator>,
) -> bool {
    // SAFETY: the page is locked exclusively; nothing in the critical section can fail but XLogInsert(), which
    // PANICs by itself.
    unsafe {
        // Before the redo pointer is read (see covered()) and before XLogInsert() (see SyncOneBuffer()). The
        // lock keeps others from seeing a partial change.
        sys::MarkBufferDirty(locked.buffer);
        let Some(locator) = wal_locator else {
            // Core sets log_cnt here too, but no record would cover it once the sequence is logged (SET LOGGED,
            // or commit under wal_level minimal).
            locked.set_tuple(run.last, 0);
            return true;
        };
        // A closure, so that it is not kept in registers over the calls below.
        let storage = || sys::storage_numbers(*locator);
        let coverage = counter::cover(run, locked.covered(storage()), max_value, layout);
        let log_cnt = coverage.log_cnt(run);
        // The transaction ID makes this transaction's commit flush the record and wait for the synchronous
        // standby. Assigning one may fail, so it comes before the critical section; the abort then releases the
        // page, which has not changed.
        if coverage.is_new {
            if locked.set_back(storage()).is_some_and(|set_back| run.first <= set_back.from) {
                return false;
            }
            sys::GetTopTransactionId();
        }

        sys::START_CRIT_SECTION();
        if coverage.is_new {
            // Log the state after all the counters that the record covers have been used, so that a crash
            // skips them.
            locked.set_tuple(coverage.last, 0);
            let lsn = log_seq_tuple(*locator, locked.buffer, locked.tuple, locked.tuple_len);
            sys::PageSetLSN(locked.page, lsn);
            *locked.coverage_record() = CoverageRecord { last_value: coverage.last, lsn, storage: storage(), left: 0 };
        }
        locked.set_tuple(run.last, log_cnt);
        (*locked.coverage_record()).left = coverage.left(run);
        sys::END_CRIT_SECTION();
        true
    }
}

/// Writes core's own WAL record for a sequence, so that recovery and standbys need nothing of ours. A whole `LockedPage` would be copied to
/// the stack for each ID, with or without a record.
#[cold]
unsafe fn log_seq_tuple(
    locator: sys::RelFileLocator,
    buffer: pg_sys::Buffer,
    tuple: pg_sys::HeapTupleHeader,
    tuple_len: u32,
) -> pg_sys::XLogRecPtr {
    // SAFETY: called in a critical section with the page locked exclusively; the data registered here
    // outlives XLogInsert().
    unsafe {
        let mut record = sys::xl_seq_rec { locator };
        sys::XLogBeginInsert();
        sys::XLogRegisterBuffer(0, buffer, pg_sys::REGBUF_WILL_INIT as u8);
        sys::XLogRegisterData((&raw mut record).cast(), size_of::<sys::xl_seq_rec>() as _);
        sys::XLogRegisterData(tuple.cast(), tuple_len as _);
        sys::XLogInsert(pg_sys::RmgrIds::RM_SEQ_ID as pg_sys::RmgrId, sys::XLOG_SEQ_LOG)
    }
}
