//! Texts of the whole server, on pages of their own, which change by WAL as those of a table do.
//!
//! A standby that has replayed all WAL has the texts of its primary, `pg_rewind` rewinds it, and crash recovery restores it. Core logs, replays
//! and copies the pages without this library. No catalog names their file, since a process that is connected to no database cannot write a
//! catalog; its number is one that `initdb` gives to no file, and that no later file gets.
//!
//! [`write()`] does what core does for `CREATE DATABASE … STRATEGY wal_log`, in `RelationCopyStorageUsingBuffer()` of PostgreSQL's
//! `src/backend/storage/buffer/bufmgr.c` (until 15, of `src/backend/commands/dbcommands.c`).

use super::sys::{self, RelFileLocator};
use pgrx::pg_sys;

/// The file in the folder `global`: one of the numbers that PostgreSQL's developers leave to patches.
const FILE: u32 = 9437;

const FORK: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;

/// What each page begins with, so that no other page is taken for one of ours.
const MAGIC: &[u8] = b"pg_snowflake\n";

const HEADER: usize = std::mem::offset_of!(pg_sys::PageHeaderData, pd_linp);

/// The bytes of text on a page.
pub const ROOM: usize = pg_sys::BLCKSZ as usize - HEADER - MAGIC.len();

/// The file exists, and is not ours.
#[derive(Debug)]
pub struct NotOurs;

/// Reads the texts of all pages, in a transaction.
///
/// # Errors
/// A page is not one of ours.
pub fn read() -> Result<Vec<String>, NotOurs> {
    let text = |block| String::from_utf8(Buffer::lock(block, sys::BUFFER_LOCK_SHARE).text()?.to_vec()).map_err(|_| NotOurs);
    (0..blocks()).map(text).collect()
}

/// Writes the texts, in a transaction, and waits until the disk has their WAL. Pages that follow become empty. It is written also if the
/// transaction is rolled back. A crash, or a standby whose file has more pages, can have pages of different writes.
///
/// # Errors
/// A page is not one of ours. Nothing has been written then.
pub fn write(texts: &[String]) -> Result<(), NotOurs> {
    // No tablespace has this number. Two writers would extend the file by the same page.
    let (class, mode) = (pg_sys::TableSpaceRelationId, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
    // SAFETY: takes any number; an ERROR releases it.
    unsafe { call!(LockSharedObject(class, FILE.into(), 0, mode)) };
    read()?;
    let (mut end, existing) = (0, blocks());
    for block in 0..existing.max(texts.len() as u32) {
        if block >= existing {
            extend(block);
        }
        let text = texts.get(block as usize).map_or(&[][..], |text| text.as_bytes());
        end = Buffer::lock(block, sys::BUFFER_LOCK_EXCLUSIVE).replace(text);
    }
    // SAFETY: the end of a record that this process has written, and the lock from above.
    unsafe {
        call!(XLogFlush(end));
        call!(UnlockSharedObject(class, FILE.into(), 0, mode));
    }
    Ok(())
}

/// A page that is pinned and locked, until it is dropped.
struct Buffer(pg_sys::Buffer);

impl Buffer {
    fn lock(block: u32, mode: sys::BufferLockMode) -> Self {
        let (how, strategy) = (pg_sys::ReadBufferMode::RBM_NORMAL, std::ptr::null_mut());
        // SAFETY: a block of the file.
        unsafe {
            let buffer = call!(ReadBufferWithoutRelcache(locator(), FORK, block, how, strategy, true));
            sys::LockBuffer(buffer, mode);
            Buffer(buffer)
        }
    }

    fn page(&self) -> pg_sys::Page {
        // SAFETY: pinned.
        unsafe { sys::BufferGetPage(self.0) }
    }

    fn text(&self) -> Result<&[u8], NotOurs> {
        // SAFETY: the page is locked, and its bounds are within it, or it is new.
        let used = unsafe {
            let lower = usize::from((*self.page().cast::<pg_sys::PageHeaderData>()).pd_lower);
            if lower == 0 {
                return Ok(&[]); // extended, and not written
            }
            std::slice::from_raw_parts(self.page().cast::<u8>().add(HEADER), lower.saturating_sub(HEADER))
        };
        used.strip_prefix(MAGIC).ok_or(NotOurs)
    }

    /// Returns the end of its record.
    fn replace(&self, text: &[u8]) -> pg_sys::XLogRecPtr {
        assert!(text.len() <= ROOM, "the caller divides the text");
        sys::START_CRIT_SECTION();
        // SAFETY: the page is locked exclusively, and has room for both. From PageInit() to the record, nobody else reads it.
        let end = unsafe {
            let page = self.page();
            call!(PageInit(page, pg_sys::BLCKSZ as usize, 0));
            let place = page.cast::<u8>().add(HEADER);
            place.copy_from_nonoverlapping(MAGIC.as_ptr(), MAGIC.len());
            place.add(MAGIC.len()).copy_from_nonoverlapping(text.as_ptr(), text.len());
            (*page.cast::<pg_sys::PageHeaderData>()).pd_lower = (HEADER + MAGIC.len() + text.len()) as u16;
            call!(MarkBufferDirty(self.0));
            call!(log_newpage_buffer(self.0, true))
        };
        sys::END_CRIT_SECTION();
        end
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: pinned and locked since lock().
        unsafe { call!(UnlockReleaseBuffer(self.0)) };
    }
}

/// The pages of the file; none if it does not exist.
fn blocks() -> u32 {
    // SAFETY: the storage manager's entry of the file, which is looked up for each use, as others may close it.
    unsafe { if call!(smgrexists(storage(), FORK)) { call!(smgrnblocks(storage(), FORK)) } else { 0 } }
}

/// Appends an empty page, which no WAL describes: replay creates what it replays.
fn extend(block: u32) {
    #[repr(align(4096))]
    struct Page([u8; pg_sys::BLCKSZ as usize]);
    let mut page = Page([0; pg_sys::BLCKSZ as usize]);
    // SAFETY: as in blocks(); the page is as long as a block, and aligned for direct I/O.
    unsafe {
        if !call!(smgrexists(storage(), FORK)) {
            call!(smgrcreate(storage(), FORK, false));
        }
        call!(smgrextend(storage(), FORK, block, page.0.as_mut_ptr().cast(), false));
    }
}

fn storage() -> pg_sys::SMgrRelation {
    #[cfg(any(feature = "pg15", feature = "pg16"))]
    const OF_NO_BACKEND: i32 = pg_sys::InvalidBackendId;
    #[cfg(not(any(feature = "pg15", feature = "pg16")))]
    const OF_NO_BACKEND: i32 = pg_sys::INVALID_PROC_NUMBER;
    // SAFETY: takes any file.
    unsafe { call!(smgropen(locator(), OF_NO_BACKEND)) }
}

fn locator() -> RelFileLocator {
    sys::locator([pg_sys::GLOBALTABLESPACE_OID.to_u32(), 0, FILE])
}
