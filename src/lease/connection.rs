//! A connection to the registry.
//!
//! Nothing waits in libpq, except that it may look up a host name: a wait is one on the process's latch, ends at a deadline, and
//! ends soon if the server stops.

use super::activity::{is_stopping, wait_latch};
use super::libpq::*;
use super::problem::Problem;
use super::settings;
use pg_snowflake_policies::conninfo::Host;
use pg_snowflake_policies::pacing;
use pgrx::pg_sys;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// When a request is given up.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    since: Instant,
    limit: Duration,
}

impl Deadline {
    /// The limit of a request once the server stops: with the release that follows, two seconds at most.
    pub const WHEN_STOPPING: Duration = Duration::from_secs(1);

    /// That long from now.
    pub fn within(limit: Duration) -> Self {
        Deadline { since: Instant::now(), limit }
    }

    /// The time left; `None` if it is over.
    pub fn remaining(self) -> Option<Duration> {
        let limit = if is_stopping() { self.limit.min(Self::WHEN_STOPPING) } else { self.limit };
        limit.checked_sub(self.since.elapsed()).filter(|remaining| !remaining.is_zero())
    }
}

/// A connection. It is closed when it is dropped.
pub struct Connection<'a> {
    libpq: &'a Libpq,
    conn: NonNull<PGconn>,
    /// The last notice or warning since the request began. libpq has a pointer to it.
    warning: Rc<RefCell<Option<String>>>,
}

impl<'a> Connection<'a> {
    /// Connects to the first of the hosts that answers. Each has an equal part of the time, so that one that is silent does not
    /// keep the others from being tried.
    pub fn open(libpq: &'a Libpq, conninfo: &CStr, deadline: Deadline) -> Result<Self, Problem> {
        libpq.check(conninfo)?;
        let connection = Self::start(libpq, conninfo, &Host::default())?;
        let hosts = connection.hosts();
        if hosts.is_empty() {
            return connection.connect(deadline);
        }
        drop(connection);
        // Also where one host could take longer: the next one may be the primary by now.
        let limit = pacing::third(settings::lease());
        let share = deadline.remaining().unwrap_or_default().min(limit) / hosts.len() as u32;
        let mut reasons = Vec::new();
        for host in hosts {
            let Some(remaining) = deadline.remaining() else { break };
            let connection = Self::start(libpq, conninfo, &host)?;
            match connection.connect(Deadline::within(share.min(remaining))) {
                Err(Problem::NoAnswer(reason)) => {
                    reasons.push(format!("{}: {reason}", host.title()));
                }
                outcome => return outcome,
            }
        }
        Err(Problem::NoAnswer(reasons.join("; ")))
    }

    /// Begins to connect.
    fn start(libpq: &'a Libpq, conninfo: &CStr, host: &Host) -> Result<Self, Problem> {
        let value = |text: &Option<CString>| text.as_deref().map_or(ptr::null(), CStr::as_ptr);
        // The later ones override those in the connection string, unless they are null.
        let options = [
            (c"fallback_application_name".as_ptr(), c"pg_snowflake lease worker".as_ptr()),
            (c"client_encoding".as_ptr(), c"UTF8".as_ptr()),
            (c"dbname".as_ptr(), conninfo.as_ptr()),
            (c"host".as_ptr(), value(&host.name)),
            (c"hostaddr".as_ptr(), value(&host.address)),
            (c"port".as_ptr(), value(&host.port)),
            (ptr::null(), ptr::null()),
        ];
        let (keywords, values) = (options.map(|(keyword, _)| keyword), options.map(|(_, value)| value));
        // SAFETY: two arrays of C strings with a terminator. The connection, and with it the receiver of notices, are ours.
        unsafe {
            let conn = (libpq.PQconnectStartParams)(keywords.as_ptr(), values.as_ptr(), 1);
            let conn = NonNull::new(conn).ok_or_else(|| Problem::NoAnswer("out of memory".into()))?;
            let connection = Connection { libpq, conn, warning: Rc::default() };
            let receiver = Rc::as_ptr(&connection.warning).cast_mut().cast();
            (libpq.PQsetNoticeProcessor)(conn.as_ptr(), keep_notice, receiver);
            Ok(connection)
        }
    }

    /// The hosts of the connection string, its service and the environment, if there are several.
    fn hosts(&self) -> Vec<Host> {
        let [mut names, mut addresses, mut ports] = [const { String::new() }; 3];
        // SAFETY: libpq returns null, or an array that is ours and that ends with an option without a keyword.
        unsafe {
            let options = (self.libpq.PQconninfo)(self.conn.as_ptr());
            let mut option = options;
            while !option.is_null() && !(*option).keyword.is_null() {
                let list = match CStr::from_ptr((*option).keyword).to_bytes() {
                    b"host" => Some(&mut names),
                    b"hostaddr" => Some(&mut addresses),
                    b"port" => Some(&mut ports),
                    _ => None,
                };
                if let Some(list) = list
                    && !(*option).val.is_null()
                {
                    *list = CStr::from_ptr((*option).val).to_string_lossy().into_owned();
                }
                option = option.add(1);
            }
            (self.libpq.PQconninfoFree)(options);
        }
        Host::of_lists(&names, &addresses, &ports)
    }

    /// Waits until the connection is there.
    fn connect(self, deadline: Deadline) -> Result<Self, Problem> {
        let (libpq, conn) = (self.libpq, self.conn.as_ptr());
        let mut polling = PGRES_POLLING_WRITING;
        // SAFETY: an open connection.
        while unsafe { (libpq.PQstatus)(conn) } != CONNECTION_BAD {
            let events = match polling {
                PGRES_POLLING_READING => pg_sys::WL_SOCKET_READABLE,
                PGRES_POLLING_WRITING => pg_sys::WL_SOCKET_WRITEABLE,
                PGRES_POLLING_OK => {
                    // SAFETY: an open connection.
                    unsafe { (libpq.PQsetnonblocking)(conn, 1) };
                    return Ok(self);
                }
                _ => break,
            };
            self.wait(events, deadline)?;
            // SAFETY: an open connection.
            polling = unsafe { (libpq.PQconnectPoll)(conn) };
        }
        Err(self.no_answer())
    }

    /// Sends a query with parameters as text, and returns its rows after its transaction has committed.
    pub fn query(&mut self, sql: &CStr, parameters: &[CString], deadline: Deadline) -> Result<Rows<'a>, Problem> {
        self.warning.take();
        let (libpq, conn) = (self.libpq, self.conn.as_ptr());
        let values: Vec<*const c_char> = parameters.iter().map(|value| value.as_ptr()).collect();
        // SAFETY: an open connection, C strings, and as many parameters as are announced.
        unsafe {
            let is_sent = (libpq.PQsendQueryParams)(
                conn,
                sql.as_ptr(),
                values.len() as c_int,
                ptr::null(),
                values.as_ptr(),
                ptr::null(),
                ptr::null(),
                BINARY,
            );
            if is_sent != 1 {
                return Err(self.no_answer());
            }
            loop {
                match (libpq.PQflush)(conn) {
                    0 => break,
                    1 => {
                        self.wait(pg_sys::WL_SOCKET_READABLE | pg_sys::WL_SOCKET_WRITEABLE, deadline)?;
                        self.consume_input()?;
                    }
                    _ => return Err(self.no_answer()),
                }
            }
            let mut rows = None;
            loop {
                while (libpq.PQisBusy)(conn) != 0 {
                    self.wait(pg_sys::WL_SOCKET_READABLE, deadline)?;
                    self.consume_input()?;
                }
                // The last result is null: the registry is ready for the next query.
                let Some(result) = NonNull::new((libpq.PQgetResult)(conn)) else { break };
                rows = Some(Rows { libpq, result });
            }
            let is_idle = (libpq.PQtransactionStatus)(conn) == PQTRANS_IDLE;
            match rows {
                Some(rows) if is_idle => self.checked(rows),
                _ => Err(self.no_answer()),
            }
        }
    }

    fn checked(&self, rows: Rows<'a>) -> Result<Rows<'a>, Problem> {
        // SAFETY: a result.
        if unsafe { (self.libpq.PQresultStatus)(rows.result.as_ptr()) } != PGRES_TUPLES_OK {
            return Err(rows.error());
        }
        match self.warning.take() {
            Some(warning) => Err(Problem::Warning(warning)),
            None => Ok(rows),
        }
    }

    fn consume_input(&self) -> Result<(), Problem> {
        // SAFETY: an open connection.
        match unsafe { (self.libpq.PQconsumeInput)(self.conn.as_ptr()) } {
            1 => Ok(()),
            _ => Err(self.no_answer()),
        }
    }

    /// Waits for one of the events of the socket.
    fn wait(&self, events: u32, deadline: Deadline) -> Result<(), Problem> {
        // SAFETY: an open connection.
        let socket = unsafe { (self.libpq.PQsocket)(self.conn.as_ptr()) };
        if socket < 0 {
            return Err(self.no_answer());
        }
        loop {
            let Some(remaining) = deadline.remaining() else {
                let limit = deadline.limit.as_millis();
                return Err(Problem::NoAnswer(format!("no answer within {limit} ms")));
            };
            if wait_latch(events, socket, remaining) {
                return Ok(());
            }
        }
    }

    fn no_answer(&self) -> Problem {
        // SAFETY: an open connection, whose message is a C string.
        let message = unsafe { line((self.libpq.PQerrorMessage)(self.conn.as_ptr())) };
        Problem::NoAnswer(message.unwrap_or_else(|| "the connection was lost".into()))
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        // SAFETY: it was open until now.
        unsafe { (self.libpq.PQfinish)(self.conn.as_ptr()) }
    }
}

/// The rows of an answer, in binary format.
pub struct Rows<'a> {
    libpq: &'a Libpq,
    result: NonNull<PGresult>,
}

impl Rows<'_> {
    /// The number of rows.
    pub fn count(&self) -> usize {
        // SAFETY: a result.
        unsafe { (self.libpq.PQntuples)(self.result.as_ptr()) as usize }
    }

    /// The bytes of a value; `None` if it is null.
    pub fn bytes(&self, row: usize, column: usize) -> Option<&[u8]> {
        let (row, column, result) = (row as c_int, column as c_int, self.result.as_ptr());
        // SAFETY: libpq checks the numbers, and returns a pointer to that many bytes, which live as long as the result.
        unsafe {
            ((self.libpq.PQgetisnull)(result, row, column) == 0).then(|| {
                let length = (self.libpq.PQgetlength)(result, row, column) as usize;
                std::slice::from_raw_parts((self.libpq.PQgetvalue)(result, row, column), length)
            })
        }
    }

    /// An integer, a boolean or the microseconds of a timestamp.
    pub fn number(&self, row: usize, column: usize) -> Option<i64> {
        let bytes = self.bytes(row, column)?;
        match *bytes {
            [byte] => Some(byte.into()),
            [a, b, c, d] => Some(i32::from_be_bytes([a, b, c, d]).into()),
            _ => Some(i64::from_be_bytes(bytes.try_into().ok()?)),
        }
    }

    /// A text.
    pub fn text(&self, row: usize, column: usize) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes(row, column)?).into_owned())
    }

    fn error(&self) -> Problem {
        // SAFETY: a result, whose fields are C strings or null.
        let field = |code: u8| unsafe { line((self.libpq.PQresultErrorField)(self.result.as_ptr(), code.into())) };
        let message = field(b'M').unwrap_or_else(|| "the answer has no rows".into());
        let sqlstate = field(b'C').unwrap_or_default();
        Problem::Error { sqlstate, message, detail: field(b'D'), hint: field(b'H') }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: a result, which is not used any more.
        unsafe { (self.libpq.PQclear)(self.result.as_ptr()) }
    }
}

/// Keeps a notice for [`Connection::query`].
unsafe extern "C" fn keep_notice(receiver: *mut c_void, message: *const c_char) {
    // SAFETY: the receiver lives as long as the connection, and the message is a C string.
    unsafe { (*receiver.cast::<RefCell<Option<String>>>()).replace(line(message)) };
}
