//! Rust's allocator: `malloc()`, and where that fails, first a small reserve, and then the end of the session.

#![cfg_attr(test, allow(dead_code, reason = "the unit tests run without a server, with Rust's own allocator"))]

use crate::postgres::report::{errcode, errdetail, errfinish, errmsg, errstart};
use pgrx::{PgLogLevel, PgSqlErrorCode, pg_sys};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

#[cfg_attr(not(test), global_allocator)]
static ALLOCATOR: Allocator = Allocator;

/// The allocator.
struct Allocator;

/// The reserve is divided into units of so many bytes.
const UNIT: usize = 64;
/// How many units it has: 256 kB, which take no memory until they are used.
const UNITS: usize = 4096;
/// How many of them one allocation gets at most: 32 kB. An error and its way to the server take a few kilobytes.
const MAX_UNITS: usize = 512;

/// Serves small allocations when `malloc()` fails, so that an error can be raised and reported.
struct Reserve {
    units: UnsafeCell<Units>,
    /// A bit per unit: whether it is used.
    used: [AtomicU64; UNITS / 64],
    /// How many bits are set.
    used_count: AtomicUsize,
    is_locked: AtomicBool,
}

#[repr(align(64))]
struct Units(#[expect(dead_code, reason = "it is addressed by pointers")] [[u8; UNIT]; UNITS]);

// SAFETY: `used` and `is_locked` say whose the units are.
unsafe impl Sync for Reserve {}

static RESERVE: Reserve = Reserve {
    units: UnsafeCell::new(Units([[0; UNIT]; UNITS])),
    used: [const { AtomicU64::new(0) }; UNITS / 64],
    used_count: AtomicUsize::new(0),
    is_locked: AtomicBool::new(false),
};

impl Reserve {
    fn allocate(&self, layout: Layout) -> *mut u8 {
        let wanted = layout.size().div_ceil(UNIT);
        if wanted > MAX_UNITS || layout.align() > UNIT {
            return ptr::null_mut();
        }
        self.locked(|| {
            let mut free = 0;
            for unit in 0..UNITS {
                free = if self.is_used(unit) { 0 } else { free + 1 };
                if free == wanted {
                    let first = unit + 1 - wanted;
                    self.mark(first, wanted, true);
                    // SAFETY: a place in the array.
                    return unsafe { self.units.get().cast::<u8>().add(first * UNIT) };
                }
            }
            ptr::null_mut()
        })
    }

    fn free(&self, block: *mut u8, layout: Layout) {
        let first = (block as usize - self.units.get() as usize) / UNIT;
        self.locked(|| self.mark(first, layout.size().div_ceil(UNIT), false));
    }

    fn contains(&self, block: *mut u8) -> bool {
        (block as usize).wrapping_sub(self.units.get() as usize) < size_of::<Units>()
    }

    fn is_used(&self, unit: usize) -> bool {
        self.used[unit / 64].load(Ordering::Relaxed) & (1 << (unit % 64)) != 0
    }

    fn mark(&self, first: usize, count: usize, used: bool) {
        for unit in first..first + count {
            self.used[unit / 64].fetch_xor(1 << (unit % 64), Ordering::Relaxed);
        }
        match used {
            true => self.used_count.fetch_add(count, Ordering::Relaxed),
            false => self.used_count.fetch_sub(count, Ordering::Relaxed),
        };
    }

    /// A backend has one thread, but an allocator must not rely on that.
    fn locked<T>(&self, f: impl FnOnce() -> T) -> T {
        while self.is_locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        let result = f();
        self.is_locked.store(false, Ordering::Release);
        result
    }
}

/// Whether an eighth of the reserve is used. What a session keeps for long is less.
pub fn is_low() -> bool {
    RESERVE.used_count.load(Ordering::Relaxed) > UNITS / 8
}

// SAFETY: a block is either of `malloc()` or of the reserve, and `contains()` says which.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        let block = unsafe { System.alloc(layout) };
        if block.is_null() { without_malloc(layout) } else { block }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises; a block of the reserve has the size of the layout.
        unsafe {
            let mut block = System.alloc_zeroed(layout);
            if block.is_null() {
                block = without_malloc(layout);
                if !block.is_null() {
                    block.write_bytes(0, layout.size());
                }
            }
            block
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if RESERVE.contains(block) {
            RESERVE.free(block, layout);
        } else {
            // SAFETY: as the caller promises.
            unsafe { System.dealloc(block, layout) }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        unsafe {
            if !RESERVE.contains(block) {
                let moved = System.realloc(block, layout, size);
                if !moved.is_null() {
                    return moved;
                }
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(block, layout.size().min(size));
                self.dealloc(block, layout);
            }
            moved
        }
    }
}

/// Whether the caller handles a null pointer, as [`fallible`] has it.
static IS_FALLIBLE: AtomicBool = AtomicBool::new(false);

/// Calls `allocate`, in which an allocation that fails returns an error.
pub fn fallible<T>(allocate: impl FnOnce() -> T) -> T {
    IS_FALLIBLE.store(true, Ordering::Relaxed);
    let result = allocate();
    IS_FALLIBLE.store(false, Ordering::Relaxed);
    result
}

#[cold]
fn without_malloc(layout: Layout) -> *mut u8 {
    let block = RESERVE.allocate(layout);
    if block.is_null() && !IS_FALLIBLE.load(Ordering::Relaxed) {
        end_session(layout.size());
    }
    block
}

/// Ends the session with a FATAL error. Rust would end the process with a signal, after which the postmaster restarts all sessions. An
/// allocator must not unwind, so it cannot raise an ERROR. Returns in a process that is not a session.
fn end_session(bytes: usize) {
    // SAFETY: a backend has one thread. Without an exception stack, an ERROR becomes FATAL too, so that nothing jumps over Rust's
    // frames, and FATAL does not return.
    unsafe {
        if !pg_sys::IsUnderPostmaster || pg_sys::proc_exit_inprogress {
            return;
        }
        pg_sys::PG_exception_stack = ptr::null_mut();
        if errstart(PgLogLevel::FATAL as c_int, ptr::null()) {
            errcode(PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int);
            errmsg(c"out of memory".as_ptr());
            errdetail(c"Failed on request of size %zu.".as_ptr(), bytes);
            errfinish(c"allocator.rs".as_ptr(), line!() as c_int, c"end_session".as_ptr());
        }
    }
}
