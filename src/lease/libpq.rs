//! The server's own libpq, which knows the connection strings, password files, services and TLS of this machine: its functions, as
//! the process has them.

use super::problem::Problem;
use pgrx::pg_sys;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

/// Types of libpq, to which there are only pointers.
pub enum PGconn {}
pub enum PGresult {}

/// An option of a connection, in an array whose last element has no keyword.
#[repr(C)]
pub struct PQconninfoOption {
    pub keyword: *const c_char,
    envvar: *const c_char,
    compiled: *const c_char,
    pub val: *const c_char,
    label: *const c_char,
    dispchar: *const c_char,
    dispsize: c_int,
}

pub type NoticeProcessor = unsafe extern "C" fn(*mut c_void, *const c_char);

/// Constants of `libpq-fe.h`.
pub const CONNECTION_BAD: c_int = 1;
pub const PGRES_POLLING_READING: c_int = 1;
pub const PGRES_POLLING_WRITING: c_int = 2;
pub const PGRES_POLLING_OK: c_int = 3;
pub const PGRES_TUPLES_OK: c_int = 2;
pub const PQTRANS_IDLE: c_int = 0;
pub const BINARY: c_int = 1;

/// Declares functions of libpq, and a function that finds them in the process.
macro_rules! libpq {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)+) => {
        /// The functions of libpq, as `libpq-fe.h` declares them.
        #[allow(non_snake_case, reason = "the names in C")]
        pub struct Libpq {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)+
        }

        impl Libpq {
            /// # Safety
            /// libpq is loaded.
            unsafe fn find() -> Self {
                // SAFETY: the functions have had these types since libpq has them.
                unsafe {
                    Libpq {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(symbol(concat!(stringify!($name), "\0"))),)+
                    }
                }
            }
        }
    };
}

libpq! {
    fn PQclear(*mut PGresult);
    fn PQconnectPoll(*mut PGconn) -> c_int;
    fn PQconnectStartParams(*const *const c_char, *const *const c_char, c_int) -> *mut PGconn;
    fn PQconninfo(*mut PGconn) -> *mut PQconninfoOption;
    fn PQconninfoFree(*mut PQconninfoOption);
    fn PQconninfoParse(*const c_char, *mut *mut c_char) -> *mut PQconninfoOption;
    fn PQconsumeInput(*mut PGconn) -> c_int;
    fn PQerrorMessage(*const PGconn) -> *const c_char;
    fn PQfinish(*mut PGconn);
    fn PQflush(*mut PGconn) -> c_int;
    fn PQfreemem(*mut c_void);
    fn PQgetResult(*mut PGconn) -> *mut PGresult;
    fn PQgetisnull(*const PGresult, c_int, c_int) -> c_int;
    fn PQgetlength(*const PGresult, c_int, c_int) -> c_int;
    fn PQgetvalue(*const PGresult, c_int, c_int) -> *const u8;
    fn PQisBusy(*mut PGconn) -> c_int;
    fn PQntuples(*const PGresult) -> c_int;
    fn PQresultErrorField(*const PGresult, c_int) -> *const c_char;
    fn PQresultStatus(*const PGresult) -> c_int;
    fn PQsendQueryParams(
        *mut PGconn,
        *const c_char,
        c_int,
        *const pg_sys::Oid,
        *const *const c_char,
        *const c_int,
        *const c_int,
        c_int
    ) -> c_int;
    fn PQsetNoticeProcessor(*mut PGconn, NoticeProcessor, *mut c_void) -> Option<NoticeProcessor>;
    fn PQsetnonblocking(*mut PGconn, c_int) -> c_int;
    fn PQsocket(*const PGconn) -> c_int;
    fn PQstatus(*const PGconn) -> c_int;
    fn PQtransactionStatus(*const PGconn) -> c_int;
}

/// The address of a function, by its name with a terminator.
fn symbol(name: &'static str) -> *mut c_void {
    // SAFETY: a C string.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr().cast()) };
    assert!(!address.is_null(), "the server's libpq has no function {name:?}");
    address
}

impl Libpq {
    /// Loads the part of the server that replication uses, which is linked to libpq and makes its functions available.
    pub fn load() -> Self {
        // SAFETY: a C string; the functions are found in what it loads.
        unsafe {
            call!(load_file(c"$libdir/libpqwalreceiver".as_ptr(), false));
            Libpq::find()
        }
    }

    /// Refuses what is not a connection string. libpq would take a single word as the name of a database.
    /// Refuses another text than a connection string.
    pub fn check(&self, conninfo: &CStr) -> Result<(), Problem> {
        let mut message = ptr::null_mut();
        // SAFETY: a C string, and a pointer to a pointer that libpq sets to a string of its own or leaves null.
        unsafe {
            let options = (self.PQconninfoParse)(conninfo.as_ptr(), &raw mut message);
            if !options.is_null() {
                (self.PQconninfoFree)(options);
                return Ok(());
            }
            let error = line(message);
            (self.PQfreemem)(message.cast());
            Err(Problem::InvalidConninfo(error.unwrap_or_else(|| "out of memory".into())))
        }
    }
}

/// A text of libpq in one line; `None` if it is null or empty.
///
/// # Safety
/// `text` is null or a C string.
pub unsafe fn line(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, and a C string as the caller promises.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}
