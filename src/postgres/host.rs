//! The host that the server runs on.

use crate::postgres::report::c_text;
use std::ffi::c_char;

/// The server's host name, as the command `hostname` prints it; empty if it is longer than POSIX allows.
pub fn host_name() -> String {
    // Linux has at most 64 bytes, POSIX at least 255.
    let mut buffer: [c_char; 256] = [0; 256];
    // SAFETY: the last byte of the buffer is not passed, and remains the terminator.
    let failed = unsafe { libc::gethostname(buffer.as_mut_ptr(), buffer.len() - 1) } != 0;
    if failed {
        return String::new();
    }
    // SAFETY: a C string.
    unsafe { c_text(buffer.as_ptr()) }
}
