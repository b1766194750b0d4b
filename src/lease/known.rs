//! What this server knows of its registry, [`Known`], in texts that change by WAL: a standby that has replayed all WAL knows what its primary
//! knew, and comes as its successor once it is promoted. A copy of the disk knows what was known when it was made.

use crate::sequence::shared_text::{self, NotOurs};
use pg_snowflake_policies::holder::Known;
use pgrx::bgworkers::BackgroundWorker;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::{PgTryBuilder, pg_sys};
use std::panic::AssertUnwindSafe;

/// The pages cannot be read or written; the error of the server.
#[derive(Debug)]
pub struct Unusable(pub String);

impl From<NotOurs> for Unusable {
    fn from(_: NotOurs) -> Self {
        Unusable("The file contains something else.".into())
    }
}

/// Lets the transactions of this process wait for nothing, whatever the server's configuration says of transactions. Called once, when the
/// worker starts.
pub fn prepare() {
    let settings = [
        (c"default_transaction_isolation", c"read committed"),
        (c"default_transaction_read_only", c"off"),
        (c"default_transaction_deferrable", c"off"),
        #[cfg(not(any(feature = "pg15", feature = "pg16")))]
        (c"transaction_timeout", c"0"),
    ];
    for (name, value) in settings {
        let (context, source) = (pg_sys::GucContext::PGC_SUSET, pg_sys::GucSource::PGC_S_OVERRIDE);
        // SAFETY: a setting of core's, and one of its values, as the autovacuum worker sets them.
        unsafe { call!(SetConfigOption(name.as_ptr(), value.as_ptr(), context, source)) };
    }
}

/// Reads it, in a transaction of the worker. `None` if the server has used no registry, or a person had it forgotten.
///
/// # Errors
/// The pages are damaged, or are not ours.
pub fn read() -> Result<Option<Known>, Unusable> {
    in_transaction(|| Known::of_pages(&shared_text::read()?).map_err(|invalid| Unusable(invalid.to_string())))
}

/// Writes it, durably, in a transaction of the worker.
///
/// # Errors
/// As for [`read`], or the disk is full.
pub fn write(known: &Known) -> Result<(), Unusable> {
    let pages = known.pages(shared_text::ROOM);
    in_transaction(|| Ok(shared_text::write(&pages)?))
}

/// An ERROR would end the worker, and nobody would see the cause.
fn in_transaction<T>(run: impl Fn() -> Result<T, Unusable>) -> Result<T, Unusable> {
    let in_transaction = || BackgroundWorker::transaction(AssertUnwindSafe(&run as &dyn Fn() -> _));
    PgTryBuilder::new(AssertUnwindSafe(in_transaction))
        .catch_others(|error| {
            // SAFETY: the transaction of above has failed.
            unsafe { call!(AbortCurrentTransaction()) };
            match error {
                CaughtError::PostgresError(report) | CaughtError::ErrorReport(report) => Err(Unusable(report.message().to_owned())),
                error @ CaughtError::RustPanic { .. } => error.rethrow(),
            }
        })
        .execute()
}

/// Forgets it, also if the caller's transaction is rolled back. Returns whether something was known.
///
/// # Errors
/// As for [`write()`], without those of the server, which are raised.
pub fn forget() -> Result<bool, Unusable> {
    let is_known = shared_text::read()?.iter().any(|text| !text.is_empty());
    if is_known {
        shared_text::write(&[])?;
    }
    Ok(is_known)
}
