//! The definition of a sequence and its state, which are read here without fetching from it. Follows `pg_sequence_last_value()` in
//! PostgreSQL's `src/backend/commands/sequence.c` in who may read, and in what is left unread instead of raising an error.
//!
//! As in `pg_get_sequence_data()` of PostgreSQL 18, the lock is the weakest and is released at once, since a view reads thousands of
//! sequences. Core locks the page exclusively, because its `read_seq_tuple()` clears an old xmax. Nothing is changed here, so a share lock
//! is enough, and a standby or a read-only transaction may read.

use super::interface::NoCounter;
use super::page::{SetBack, check_magic, marked_counter, set_back};
use super::sys::{self, FormData_pg_sequence};
use crate::postgres::call::guarded;
use pg_snowflake_policies::counter::{State, group_of_range};
use pgrx::pg_sys;
use std::ffi::c_char;

/// The options of CREATE SEQUENCE that matter here.
#[derive(Clone, Copy, Debug, Default)]
pub struct Definition {
    typid: pg_sys::Oid,
    increment: i64,
    cycle: bool,
    min_value: i64,
    start: i64,
    /// MAXVALUE.
    pub max_value: i64,
    /// CACHE.
    pub cache: i64,
}

impl Definition {
    /// Returns an error if the sequence cannot hold a counter with these options.
    pub fn check(self) -> Result<(), NoCounter> {
        if self.typid != pg_sys::INT8OID {
            Err(NoCounter::UnsupportedType(self.typid))
        } else if self.increment != 1 {
            Err(NoCounter::UnsupportedIncrement(self.increment))
        } else if self.cycle {
            Err(NoCounter::UnsupportedCycle)
        } else if let Some(group) = group_of_range(self.min_value, self.max_value) {
            Err(NoCounter::RangeOfNode { group })
        } else {
            Ok(())
        }
    }

    /// The number at which the sequence is defined to start.
    pub fn start(self) -> i64 {
        self.start.max(self.min_value)
    }

    /// Reads the row of the sequence `relid`.
    ///
    /// # Safety
    /// Called inside a `sigsetjmp` guard, in a transaction.
    pub unsafe fn look_up(relid: pg_sys::Oid) -> Result<Self, NoCounter> {
        // SAFETY: the row is read between lookup and release.
        unsafe {
            let tuple = sys::SearchSysCache1(sys::SEQRELID, relid.into());
            if tuple.is_null() {
                return Err(NoCounter::NoSuchRelation);
            }
            // Read through the pointer: the row ends with seqcycle, without the struct's padding.
            let form = sys::GETSTRUCT::<FormData_pg_sequence>((*tuple).t_data);
            let definition = Definition {
                typid: (*form).seqtypid,
                increment: (*form).seqincrement,
                cycle: (*form).seqcycle,
                min_value: (*form).seqmin,
                start: (*form).seqstart,
                max_value: (*form).seqmax,
                cache: (*form).seqcache,
            };
            sys::ReleaseSysCache(tuple);
            Ok(definition)
        }
    }
}

/// The definition and the state of a sequence.
#[derive(Clone, Copy, Debug)]
pub struct SequenceData {
    /// The row in `pg_sequence`.
    pub definition: Definition,
    /// The state on the page. `None` for another session's temporary sequence, and for an unlogged one on a
    /// standby, whose pages cannot be read.
    pub state: Option<State>,
    /// A counter up to which the sequence has generated IDs, if its page still shows one.
    pub marked: Option<i64>,
    /// Whether the sequence was set back, and from where it goes on.
    pub set_back: Option<SetBack>,
    /// Whether the sequence survives a crash and reaches a standby: it is neither unlogged nor temporary.
    pub is_logged: bool,
}

impl SequenceData {
    /// The state from which the next ID goes on.
    pub fn next_state(&self) -> Option<State> {
        self.set_back.map(|set_back| State::after(set_back.from)).or(self.state)
    }
}

/// Reads the definition and the state of the sequence `relid`, if the current user may, without fetching from it, and releases the lock.
pub fn read_data(relid: pg_sys::Oid) -> Result<SequenceData, NoCounter> {
    // SAFETY: SQL functions run in a transaction; read_sequence_data() owns nothing that an ERROR could leak.
    unsafe { guarded(|| read_sequence_data(relid)) }
}

/// The number at which the sequence `relid` is defined to start, which every user may read; `None` if it is not a sequence.
pub fn start_of(relid: pg_sys::Oid) -> Option<i64> {
    // SAFETY: inside the guard. A row of the syscache needs no lock, and is copied before its release.
    unsafe { guarded(|| Definition::look_up(relid)) }.ok().map(Definition::start)
}

/// # Safety
/// Called inside a `sigsetjmp` guard, in a transaction.
unsafe fn read_sequence_data(relid: pg_sys::Oid) -> Result<SequenceData, NoCounter> {
    // SAFETY: the relation is open and locked from try_relation_open() to relation_close().
    unsafe {
        let relation = sys::try_relation_open(relid, ACCESS_SHARE_LOCK);
        if relation.is_null() {
            return Err(NoCounter::NoSuchRelation);
        }
        let data = read_open_sequence(relation);
        sys::relation_close(relation, ACCESS_SHARE_LOCK);
        data
    }
}

unsafe fn read_open_sequence(relation: pg_sys::Relation) -> Result<SequenceData, NoCounter> {
    // SAFETY: the relation is open.
    unsafe {
        let class = &*(*relation).rd_rel;
        if class.relkind != pg_sys::RELKIND_SEQUENCE as c_char {
            return Err(NoCounter::NotASequence);
        }
        if !has_privilege(relation, pg_sys::ACL_SELECT | pg_sys::ACL_USAGE) {
            return Err(NoCounter::PermissionDenied { either: ["USAGE", "SELECT"] });
        }
        let definition = Definition::look_up((*relation).rd_id)?;
        let is_logged = class.relpersistence == pg_sys::RELPERSISTENCE_PERMANENT as c_char;
        // RELATION_IS_OTHER_TEMP()
        let is_of_another_session = class.relpersistence == pg_sys::RELPERSISTENCE_TEMP as c_char && !(*relation).rd_islocaltemp;
        let is_readable = !is_of_another_session && (is_logged || !sys::RecoveryInProgress());
        let page = if is_readable { Some(read_page(relation)?) } else { None };
        let (state, marked, set_back) = page.map_or((None, None, None), |(state, marked, set_back)| (Some(state), marked, set_back));
        Ok(SequenceData { definition, state, marked, set_back, is_logged })
    }
}

/// The state, and what [`marked_counter`] and [`set_back`] return.
unsafe fn read_page(relation: pg_sys::Relation) -> Result<(State, Option<i64>, Option<SetBack>), NoCounter> {
    // SAFETY: the relation is open and a sequence; the buffer is pinned and locked until UnlockReleaseBuffer().
    unsafe {
        let buffer = sys::ReadBuffer(relation, 0);
        sys::LockBuffer(buffer, sys::BUFFER_LOCK_SHARE);
        let data = check_magic(buffer).map(|page| {
            let (tuple, _) = sys::first_tuple(page);
            let state = (*sys::GETSTRUCT::<sys::FormData_pg_sequence_data>(tuple)).state();
            let storage = sys::storage_numbers(sys::relation_locator(relation));
            (state, marked_counter(page), set_back(page, storage))
        });
        sys::UnlockReleaseBuffer(buffer);
        data
    }
}

/// Whether the current user has at least one of the privileges.
///
/// # Safety
/// `relation` is open, in a transaction.
pub unsafe fn has_privilege(relation: pg_sys::Relation, one_of: u32) -> bool {
    // SAFETY: as the caller promises.
    unsafe {
        let mode = pg_sys::AclMode::from(one_of);
        sys::pg_class_aclcheck((*relation).rd_id, sys::GetUserId(), mode) == pg_sys::AclResult::ACLCHECK_OK
    }
}

const ACCESS_SHARE_LOCK: pg_sys::LOCKMODE = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
