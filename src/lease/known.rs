//! What this server knows of its registry, [`Known`], in a text that changes by WAL: a standby that has replayed all WAL knows what its primary
//! knew, and comes as its successor once it is promoted. A copy of the disk knows what was known when it was made.

use crate::sequence::shared_text;
use pg_snowflake_policies::holder::Known;
use pgrx::bgworkers::BackgroundWorker;

/// What this server has of its registry cannot be read.
#[derive(Debug)]
pub struct Unreadable;

/// Reads it, in a transaction of the worker. `None` if the server has used no registry, or a person had it forgotten.
///
/// # Errors
/// The file is damaged, or is not ours.
pub fn read() -> Result<Option<Known>, Unreadable> {
    let text = BackgroundWorker::transaction(shared_text::read).map_err(|_| Unreadable)?;
    (!text.is_empty()).then(|| text.parse().map_err(|_| Unreadable)).transpose()
}

/// Writes it, durably, in a transaction of the worker.
///
/// # Errors
/// As for [`read`].
pub fn write(known: &Known) -> Result<(), Unreadable> {
    let text = known.to_string();
    BackgroundWorker::transaction(|| shared_text::write(&text)).map_err(|_| Unreadable)
}

/// Forgets it, also if the caller's transaction is rolled back. Returns whether something was known.
///
/// # Errors
/// As for [`read`].
pub fn forget() -> Result<bool, Unreadable> {
    let is_known = !shared_text::read().map_err(|_| Unreadable)?.is_empty();
    shared_text::write("").map_err(|_| Unreadable)?;
    Ok(is_known)
}
