//! The row of a sequence in `pg_sequence`, and whether the sequence can hold a counter.

use super::error::NoCounter;
use super::sys::{self, FormData_pg_sequence};
use pgrx::pg_sys;

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
        } else if let Some(group) = self.citus_group() {
            Err(NoCounter::RangeOfCitus { group })
        } else {
            Ok(())
        }
    }

    /// The number at which the sequence is defined to start.
    pub fn start(self) -> i64 {
        self.start.max(self.min_value)
    }

    /// The group of the worker to whose range Citus has set the sequence: `AlterSequenceMinMax()` in its
    /// `worker/worker_data_fetch_protocol.c`. Citus does so on each worker if a default of a distributed table uses the sequence.
    fn citus_group(self) -> Option<i64> {
        const NUMBERS_OF_A_GROUP: i64 = 1 << 48;
        let group = self.min_value.saturating_sub(1) / NUMBERS_OF_A_GROUP;
        let is_range =
            self.min_value == group * NUMBERS_OF_A_GROUP + 1 && self.max_value.checked_sub(self.min_value) == Some(NUMBERS_OF_A_GROUP);
        (group > 0 && is_range).then_some(group)
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
