//! What a session remembers of each sequence it has used, for the backend's life or until DISCARD, as core's
//! `seqhashtab`.

use super::backend::OfBackend;
use super::page::{Permit, Place};
use crate::clock::Now;
use crate::counter::{Cached, Request};
use crate::layout::Layout;
use crate::settings;
use pgrx::pg_sys;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::ptr::NonNull;

/// What a session remembers of a sequence from call to call: core's `SeqTableData`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// What a visit found allowed.
    pub permit: Permit,
    /// Counters that were taken and not yet used.
    pub cached: Option<Cached>,
    /// The highest counter that was taken, and its layout.
    pub taken: Option<(Layout, i64)>,
    /// The last id that this session was given.
    pub last_id: Option<i64>,
    /// Where the page is.
    pub place: Place,
    /// The transaction in which the sequence was last locked; 0 is `InvalidLocalTransactionId`.
    pub lxid: pg_sys::LocalTransactionId,
    /// The storage that `cached` was taken from: RESTART and TRUNCATE give the sequence a new one.
    pub storage: pg_sys::Oid,
    /// The state of the catalog that `cached` was taken under: every ALTER SEQUENCE changes it.
    pub catalog_version: u64,
}

impl Session {
    /// Forgets what was taken and not used.
    pub fn drop_cached(&mut self) {
        self.cached = None;
    }

    /// What the session asks of the sequence at this moment.
    pub fn request(&self, layout: Layout, now: Now) -> Request {
        let taken = self.taken.and_then(|(of, counter)| (of == layout).then_some(counter));
        Request { layout, policy: settings::policy(), now, taken }
    }

    /// Forgets all but what the session must not repeat.
    fn forget(&mut self) {
        self.cached = None;
        self.last_id = None;
    }
}

/// The sequences that this backend has used.
struct Sessions {
    by_relid: FxHashMap<pg_sys::Oid, Session>,
    /// The one that was used last, in `by_relid`: core's `last_used_seq`. Nothing is ever taken out, and
    /// whatever puts one in sets this.
    last: Option<(pg_sys::Oid, NonNull<Session>)>,
}

static SESSIONS: OfBackend<Sessions> =
    OfBackend::new(Sessions { by_relid: FxHashMap::with_hasher(FxBuildHasher), last: None });

impl Sessions {
    fn get(&mut self, relid: pg_sys::Oid) -> Option<NonNull<Session>> {
        if let Some((last, session)) = self.last
            && last == relid
        {
            return Some(session);
        }
        let session = NonNull::from(self.by_relid.get_mut(&relid)?);
        self.last = Some((relid, session));
        Some(session)
    }

    fn get_or_insert(&mut self, relid: pg_sys::Oid) -> NonNull<Session> {
        self.get(relid).unwrap_or_else(|| {
            let session = NonNull::from(self.by_relid.entry(relid).or_default());
            self.last = Some((relid, session));
            session
        })
    }
}

/// Lets `f` have what the session knows of a sequence, which is nothing to begin with.
///
/// # Safety
/// As for [`OfBackend::with`]: nothing that `f` calls comes back here.
pub unsafe fn with_session<T>(relid: pg_sys::Oid, f: impl FnOnce(&mut Session) -> T) -> T {
    // SAFETY: as the caller promises.
    unsafe { SESSIONS.with(|sessions| f(sessions.get_or_insert(relid).as_mut())) }
}

/// As [`with_session`], for a sequence that the session has used; `None` where it has not.
///
/// # Safety
/// As for [`with_session`].
pub unsafe fn with_known_session<T>(
    relid: pg_sys::Oid,
    f: impl FnOnce(&mut Session) -> Option<T>,
) -> Option<T> {
    // SAFETY: as the caller promises.
    unsafe { SESSIONS.with(|sessions| f(sessions.get(relid)?.as_mut())) }
}

/// `ResetSequenceCaches()`: after `DISCARD`. What the session has taken stays known, so that it never repeats
/// itself.
pub fn forget_all() {
    // SAFETY: nobody has a session's memory while a utility command runs.
    unsafe { SESSIONS.with(|sessions| sessions.by_relid.values_mut().for_each(Session::forget)) }
}
