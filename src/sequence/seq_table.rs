//! What a session remembers of each sequence it has used, for the backend's life or until DISCARD, as core's
//! `seqhashtab`.

use super::backend_local::OfBackend;
use super::nextval::{Permit, Place};
use crate::settings;
use pg_snowflake_core::Layout;
use pg_snowflake_core::clock::Now;
use pg_snowflake_core::counter::{Cached, Request};
use pgrx::pg_sys;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What a session remembers of a sequence from call to call: core's `SeqTableData`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// What a visit found allowed.
    pub permit: Permit,
    /// Counters that were taken and not yet used.
    pub cached: Option<Cached>,
    /// The highest counter that was taken, and its layout.
    pub taken: Option<(Layout, i64)>,
    /// The last id that was returned in this session.
    pub last_id: Option<i64>,
    /// Where the page is.
    pub place: Place,
    /// The transaction in which the sequence was last locked; 0 is `InvalidLocalTransactionId`.
    pub lxid: pg_sys::LocalTransactionId,
    /// The storage that `cached` was taken from: RESTART and TRUNCATE give the sequence a new one.
    pub storage: pg_sys::Oid,
    /// The state of `pg_sequence` that `cached` was taken under: every ALTER SEQUENCE changes it.
    pub sequences_version: u64,
}

impl Session {
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
    /// Where in `sessions` each is. Slim entries beside a dense vector, instead of the sessions as the table's fat
    /// values, and [`OidHasher`]: 520 -> 258 ns of CPU time an id with 100,000 sequences in the order of their OIDs, where
    /// no record is written, and 194 -> 168 with 1,000.
    indexes: HashMap<u32, u32, BuildHasherDefault<OidHasher>>,
    /// In the order of their first use. Nothing is ever taken out.
    sessions: Vec<Session>,
    /// The one that was used last: core's `last_used_seq`.
    last: Option<(pg_sys::Oid, usize)>,
}

static SESSIONS: OfBackend<Sessions> = OfBackend::new(Sessions {
    indexes: HashMap::with_hasher(BuildHasherDefault::new()),
    sessions: Vec::new(),
    last: None,
});

impl Sessions {
    fn get(&mut self, relid: pg_sys::Oid) -> Option<&mut Session> {
        let index = match self.last {
            Some((last, index)) if last == relid => index,
            _ => {
                let index = *self.indexes.get(&relid.to_u32())? as usize;
                self.last = Some((relid, index));
                index
            }
        };
        self.sessions.get_mut(index)
    }

    fn get_or_insert(&mut self, relid: pg_sys::Oid) -> &mut Session {
        let index = *self.indexes.entry(relid.to_u32()).or_insert_with(|| {
            self.sessions.push(Session::default());
            self.sessions.len() as u32 - 1
        }) as usize;
        self.last = Some((relid, index));
        &mut self.sessions[index]
    }
}

/// Sequences that are made together, and so used together, have OIDs next to each other: hashed to slots next to
/// each other they share cache lines. The upper bits, which distinguish neighbours in the table, are mixed.
#[derive(Default)]
struct OidHasher(u64);

impl Hasher for OidHasher {
    fn write_u32(&mut self, oid: u32) {
        let mixed = u64::from(oid).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = (mixed & !u64::from(u32::MAX)) | u64::from(oid);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("an OID is hashed as the u32 that it is");
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// Lets `f` have what the session knows of a sequence, which is nothing to begin with.
///
/// # Safety
/// As for [`OfBackend::with`]: nothing that `f` calls comes back here.
pub unsafe fn with_session<T>(relid: pg_sys::Oid, f: impl FnOnce(&mut Session) -> T) -> T {
    // SAFETY: as the caller promises.
    unsafe { SESSIONS.with(|sessions| f(sessions.get_or_insert(relid))) }
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
    unsafe { SESSIONS.with(|sessions| f(sessions.get(relid)?)) }
}

/// `ResetSequenceCaches()`: after `DISCARD`. What the session has taken stays known, so that it never repeats
/// itself.
pub fn forget_all() {
    // SAFETY: nobody has a session's memory while a utility command runs.
    unsafe { SESSIONS.with(|sessions| sessions.sessions.iter_mut().for_each(Session::forget)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_keeps_a_session_of_its_own() {
        let mut sessions =
            Sessions { indexes: HashMap::default(), sessions: Vec::new(), last: None };
        // Neighbours, and OIDs that differ in their high bits only.
        let oids: Vec<pg_sys::Oid> = (16_384..18_384)
            .chain((1..2_000).map(|n: u32| n << 20))
            .map(pg_sys::Oid::from)
            .collect();
        for &oid in &oids {
            assert!(sessions.get(oid).is_none());
            sessions.get_or_insert(oid).last_id = Some(i64::from(oid.to_u32()));
        }
        for &oid in &oids {
            let expected = Some(i64::from(oid.to_u32()));
            assert_eq!(sessions.get(oid).and_then(|session| session.last_id), expected);
            assert_eq!(sessions.get_or_insert(oid).last_id, expected);
        }
    }
}
