//! A session that runs out of memory: its statement fails with SQLSTATE 53200, and the server and the other sessions go on.
//!
//! A server in C gets an ERROR from `palloc()`, and reports it from memory that it has set aside. Rust code has three more places
//! where memory can be short: the copy that pgrx makes of an ERROR, Rust's own allocations, for which a failure ends the process, and
//! with it all sessions, and pgrx's reports of errors, for which see `report.rs`. `docs/design.md` has the reasons for what is done.

mod allocator;

use crate::postgres::backend_local::BackendLocal;
use crate::postgres::call::guarded;
use crate::postgres::report::Raise;
pub use allocator::fallible;
use pg_snowflake_policies::messages::server as messages;
use pgrx::prelude::*;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Raises the error that core raises when `palloc()` fails.
#[cold]
#[track_caller]
pub fn out_of_memory(bytes: usize) -> ! {
    messages::out_of_memory(bytes).raise()
}

/// An empty vector with room for so many elements; `None` if memory is short.
pub fn with_room<T>(elements: usize) -> Option<Vec<T>> {
    let mut vec = Vec::new();
    fallible(|| vec.try_reserve_exact(elements)).ok()?;
    Some(vec)
}

/// Makes room for more elements. For what can be large because of a user's data: an allocation that fails raises an error here, and
/// ends the session elsewhere.
#[track_caller]
pub fn reserve<T>(vec: &mut Vec<T>, more: usize) {
    if fallible(|| vec.try_reserve(more)).is_err() {
        out_of_memory(more.saturating_mul(size_of::<T>()));
    }
}

/// A copy of the elements.
pub fn copied<T: Copy>(slice: &[T]) -> Vec<T> {
    let mut copy = Vec::new();
    reserve(&mut copy, slice.len());
    copy.extend_from_slice(slice);
    copy
}

/// A copy of the text.
pub fn copied_text(text: &str) -> String {
    String::from_utf8(copied(text.as_bytes())).expect("a copy of a str")
}

/// Raises the error if only the last reserve of memory is left. For loops over many small allocations.
#[track_caller]
pub fn check() {
    if allocator::is_low() {
        out_of_memory(0);
    }
}

// pgrx guards each call of the server by `sigsetjmp()`. When an ERROR arrives there, pgrx copies it with `CopyErrorData()`, still
// under guards. If memory is short, that raises another ERROR, which is copied in turn, until PostgreSQL's stack of errors is full,
// and it ends the whole server: "ERRORDATA_STACK_SIZE exceeded". So this library has its own `CopyErrorData()` and
// `FreeErrorData()`, which cannot fail. They are hidden symbols, which the linker prefers for this library, and nobody else sees.
#[cfg(all(any(target_os = "linux", target_os = "macos"), not(test)))]
macro_rules! hidden_symbol {
    ($binding:literal, $name:literal, $function:path) => {
        std::arch::global_asm!(
            #[cfg(target_os = "linux")]
            concat!($binding, " ", $name, "\n.hidden ", $name, "\n.type ", $name, ", %function\n", $name, ":"),
            #[cfg(target_os = "macos")]
            concat!(".globl _", $name, "\n.private_extern _", $name, "\n_", $name, ":"),
            #[cfg(target_arch = "x86_64")]
            "jmp {}",
            #[cfg(target_arch = "aarch64")]
            "b {}",
            sym $function
        );
    };
}
// The unit tests run without a server.
#[cfg(not(test))]
hidden_symbol!(".globl", "CopyErrorData", copy_error_data);
#[cfg(not(test))]
hidden_symbol!(".globl", "FreeErrorData", free_error_data);

type CopyErrorData = unsafe extern "C-unwind" fn() -> *mut pg_sys::ErrorData;
type FreeErrorData = unsafe extern "C-unwind" fn(*mut pg_sys::ErrorData);

/// The server's own functions of these names.
fn core_functions() -> (CopyErrorData, FreeErrorData) {
    static FUNCTIONS: OnceLock<(CopyErrorData, FreeErrorData)> = OnceLock::new();
    *FUNCTIONS.get_or_init(|| {
        let find = |name: &CStr| {
            // SAFETY: a C string.
            let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            assert!(!function.is_null(), "the server has no {name:?}");
            function
        };
        // SAFETY: as utils/elog.h declares them.
        unsafe {
            (
                transmute::<*mut c_void, CopyErrorData>(find(c"CopyErrorData")),
                transmute::<*mut c_void, FreeErrorData>(find(c"FreeErrorData")),
            )
        }
    })
}

/// Looks up the server's functions while there is memory. Called once, at library load.
pub fn prepare() {
    core_functions();
}

// Thread-local storage with a destructor is registered with glibc, which ends the process if it gets no memory for that: for pgrx, at
// the first error of a session. A backend's only thread ends with the process, so nothing has to be destroyed. The symbol is weak, as the
// standard library's reference is: with link-time optimization, the assembler warns of a difference.
#[cfg(all(target_os = "linux", not(test)))]
hidden_symbol!(".weak", "__cxa_thread_atexit_impl", register_no_destructor);

#[cfg(all(target_os = "linux", not(test)))]
extern "C" fn register_no_destructor(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// Whether an error is being copied.
static IS_COPYING: AtomicBool = AtomicBool::new(false);

/// What pgrx gets instead of a copy if memory is short. PostgreSQL keeps the error itself, and reports that.
static OUT_OF_MEMORY: BackendLocal<MaybeUninit<pg_sys::ErrorData>> = BackendLocal::new(MaybeUninit::zeroed());

fn out_of_memory_data() -> *mut pg_sys::ErrorData {
    // SAFETY: a struct of numbers and pointers, for which zeros are valid. One thread, which reads it before the next error.
    unsafe {
        let data = OUT_OF_MEMORY.get().as_mut_ptr();
        (*data).elevel = PgLogLevel::ERROR as c_int;
        (*data).sqlerrcode = PgSqlErrorCode::ERRCODE_OUT_OF_MEMORY as c_int;
        (*data).message = c"out of memory".as_ptr().cast_mut();
        data
    }
}

/// The most bytes of a part of an error that pgrx copies once more, in Rust's memory. The error itself stays as it is.
const MAX_COPY: usize = 20_000;

/// `CopyErrorData()`, which never raises an error itself.
#[cfg_attr(test, expect(dead_code, reason = "the unit tests run without a server"))]
unsafe extern "C-unwind" fn copy_error_data() -> *mut pg_sys::ErrorData {
    // SAFETY: called while an error is handled, as CopyErrorData() is. The guard is around a function of C alone.
    unsafe {
        // An error of the copy itself: the guard below copies it, too.
        if IS_COPYING.swap(true, Ordering::Relaxed) {
            return out_of_memory_data();
        }
        let (copy, _) = core_functions();
        let copied = catch_unwind(|| guarded(|| copy()));
        IS_COPYING.store(false, Ordering::Relaxed);
        // The error that this memory was too little for is the last one now.
        let Ok(data) = copied else { return out_of_memory_data() };
        for part in [(*data).message, (*data).detail, (*data).hint] {
            truncate(part);
        }
        data
    }
}

/// # Safety
/// `part` is null or a C string that may be written to.
unsafe fn truncate(part: *mut c_char) {
    // SAFETY: as the caller promises. Rust replaces what is left of a character that is cut through.
    unsafe {
        if !part.is_null() && libc::strnlen(part, MAX_COPY) == MAX_COPY {
            *part.add(MAX_COPY) = 0;
        }
    }
}

/// `FreeErrorData()` for what [`copy_error_data`] returns.
#[cfg_attr(test, expect(dead_code, reason = "the unit tests run without a server"))]
unsafe extern "C-unwind" fn free_error_data(data: *mut pg_sys::ErrorData) {
    if data != out_of_memory_data() {
        let (_, free) = core_functions();
        // SAFETY: a copy that CopyErrorData() made.
        unsafe { free(data) }
    }
}
