//! The page of a sequence: lock, read, log, write. All that changes a page or writes WAL is here.
//!
//! Follows the helpers of `nextval_internal()` in PostgreSQL's `src/backend/commands/sequence.c` under their names. As in
//! `visit.rs`, an ERROR passes over these frames, so nothing here holds anything with a destructor.

use super::sys::{self, FormData_pg_sequence_data};
use crate::counter::{self, Coverage, Run, State};
use crate::error::Error;
use crate::layout::Layout;
use pgrx::pg_sys;
use std::ffi::c_int;

/// A sequence's page, pinned and locked exclusively, and its one tuple.
#[derive(Clone, Copy)]
pub struct LockedPage {
    /// Where the page is.
    pub buffer: pg_sys::Buffer,
    page: pg_sys::Page,
    tuple: pg_sys::HeapTupleHeader,
    tuple_len: u32,
    data: *mut FormData_pg_sequence_data,
}

impl FormData_pg_sequence_data {
    /// The tuple as the policy takes it.
    pub fn state(&self) -> State {
        State { last_value: self.last_value, log_cnt: self.log_cnt, is_called: self.is_called }
    }
}

impl LockedPage {
    /// What the tuple says.
    ///
    /// # Safety
    /// The page is still locked.
    pub unsafe fn state(self) -> State {
        // SAFETY: as the caller promises.
        unsafe { (*self.data).state() }
    }

    /// Where the page keeps the LSN of the record that covers its `log_cnt`: in the last eight bytes of its free space,
    /// below the tuple. Core neither reads nor moves them, and every page that it makes or replays has zeros there.
    fn covering_lsn(self) -> *mut pg_sys::XLogRecPtr {
        self.tuple.cast::<pg_sys::XLogRecPtr>().wrapping_sub(1)
    }

    /// Whether replay would find the record that `log_cnt` counts on.
    ///
    /// `log_cnt` alone does not say so. `ALTER SEQUENCE`, `SET LOGGED` and `CREATE DATABASE` copy it into storage whose
    /// WAL holds the tuple as it is, and a full-page image of the page would do the same. Each of them gives the page
    /// another LSN, or leaves out what lies in the free space, so that the two LSNs differ.
    ///
    /// # Safety
    /// The page is still locked, and marked dirty. A checkpoint that begins after the redo pointer has been read here
    /// finds it dirty then, and waits for the lock to write what the caller does to it. A page that is marked later could
    /// be passed over as clean, and replay would start after its record.
    unsafe fn is_replayed(self) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            let lsn = sys::PageGetLSN(self.page);
            lsn == *self.covering_lsn() && lsn > sys::GetRedoRecPtr()
        }
    }

    /// Lets go of lock and pin.
    ///
    /// # Safety
    /// The page is still locked, and not used afterwards.
    pub unsafe fn release(self) {
        // SAFETY: as the caller promises.
        unsafe { sys::UnlockReleaseBuffer(self.buffer) }
    }

    unsafe fn set_state(self, state: State) {
        // SAFETY: the page is locked exclusively.
        unsafe {
            (*self.data).last_value = state.last_value;
            (*self.data).log_cnt = state.log_cnt;
            (*self.data).is_called = state.is_called;
        }
    }
}

/// Reads and locks the page. `read_seq_tuple()`.
///
/// # Safety
/// The relation is open, locked, and a sequence.
pub unsafe fn read_seq_tuple(relation: pg_sys::Relation) -> Result<LockedPage, Error> {
    // SAFETY: as the caller promises; ReadBuffer() pins.
    unsafe { lock_seq_tuple(sys::ReadBuffer(relation, 0)) }
}

/// Locks the page, which is pinned, and finds the tuple. Lets go of the page where it is not a sequence's.
///
/// # Safety
/// The buffer is pinned, and what it holds cannot go away.
pub unsafe fn lock_seq_tuple(buffer: pg_sys::Buffer) -> Result<LockedPage, Error> {
    // SAFETY: the buffer is that of a sequence's page: one tuple.
    unsafe {
        sys::LockBuffer(buffer, pg_sys::BUFFER_LOCK_EXCLUSIVE as c_int);
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

/// The page in the buffer, if it is a sequence's.
///
/// # Safety
/// The buffer is pinned and locked.
pub unsafe fn check_magic(buffer: pg_sys::Buffer) -> Result<pg_sys::Page, Error> {
    // SAFETY: as the caller promises.
    unsafe {
        let page = sys::BufferGetPage(buffer);
        match (*sys::sequence_special_area(page)).magic {
            sys::SEQ_MAGIC => Ok(page),
            magic => Err(Error::BadMagic(magic)),
        }
    }
}

/// Old releases let SELECT FOR UPDATE leave an xmax in the tuple, which would lead to clog look-ups of
/// long-gone transactions. As core, treat its removal like a hint bit.
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

/// Writes where the counter is after the run, and before that logs where it may get to, where that is due. `logged_as`
/// is the storage that the record names; `None` where the sequence is not logged.
///
/// # Safety
/// The page is still locked.
pub unsafe fn write_seq_tuple(
    locked: LockedPage,
    run: Run,
    max_value: i64,
    layout: Layout,
    logged_as: Option<sys::RelFileLocator>,
) {
    // SAFETY: the page is locked exclusively; nothing in the critical section can fail but XLogInsert(),
    // which PANICs by itself.
    unsafe {
        // Before the redo pointer is read, see is_replayed(), and before XLogInsert(), see SyncOneBuffer(). The lock keeps
        // others from what is half done.
        sys::MarkBufferDirty(locked.buffer);
        let log = logged_as.map(|locator| {
            let is_replayed = locked.is_replayed();
            (locator, counter::cover(run, locked.state(), max_value, layout, is_replayed))
        });
        // Where nothing is logged nothing is covered. Core counts log_cnt all the same; but a sequence that
        // becomes logged later (SET LOGGED, or commit under wal_level minimal) must not believe it.
        let log_cnt = log.map_or(0, |(_, Coverage { log_cnt, .. })| log_cnt);
        let record = log.and_then(|(locator, coverage)| Some((locator, coverage.log_value?)));
        // With a transaction id this transaction's commit flushes the record and waits for the
        // synchronous standby. It may fail, so it comes before the critical section.
        if record.is_some() {
            sys::GetTopTransactionId();
        }

        sys::START_CRIT_SECTION();
        if let Some((locator, last_value)) = record {
            // The record holds the state after all the counters it covers have been used, so that a
            // crash skips them. The page is what replay makes of it, for wal_consistency_checking.
            locked.set_state(State { last_value, log_cnt: 0, is_called: true });
            *locked.covering_lsn() = 0;
            let lsn = log_seq_tuple(locator, locked);
            sys::PageSetLSN(locked.page, lsn);
            *locked.covering_lsn() = lsn;
        }
        locked.set_state(State { last_value: run.last, log_cnt, is_called: true });
        sys::END_CRIT_SECTION();
    }
}

/// Writes core's own WAL record for a sequence, so that recovery and standbys need nothing of ours.
unsafe fn log_seq_tuple(locator: sys::RelFileLocator, locked: LockedPage) -> pg_sys::XLogRecPtr {
    // SAFETY: called in a critical section with the page locked exclusively; the data registered here
    // outlives XLogInsert().
    unsafe {
        let mut record = sys::xl_seq_rec { locator };
        sys::XLogBeginInsert();
        sys::XLogRegisterBuffer(0, locked.buffer, pg_sys::REGBUF_WILL_INIT as u8);
        sys::XLogRegisterData((&raw mut record).cast(), size_of::<sys::xl_seq_rec>() as _);
        sys::XLogRegisterData(locked.tuple.cast(), locked.tuple_len as _);
        sys::XLogInsert(pg_sys::RmgrIds::RM_SEQ_ID as pg_sys::RmgrId, sys::XLOG_SEQ_LOG)
    }
}
