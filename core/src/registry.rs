//! The registry of leases: who gets which span of ID time. Functions of a row, a claim and the registry's clock; the caller
//! locks the row before it reads the clock.
//!
//! Uniqueness depends on one rule: the span of a new holder begins where the last one ended, or later. `ends_us` goes down in
//! one case: its holder releases the lease, and has used nothing above the new end. Clocks, and judgements about who is alive,
//! decide only who gets the next span.

use crate::lease::Span;

/// A UUID as a number: an incarnation of a server, or a nonce.
pub type Uuid = u128;

/// The shortest lease, in microseconds.
pub const SHORTEST_LEASE_US: i64 = 1_000_000;

/// The longest lease, in microseconds: after a crash, the shard has no IDs for up to this long.
pub const LONGEST_LEASE_US: i64 = 300_000_000;

/// How far a server's clock may differ from the registry's. If it is behind, the limit is a third of the lease's length if that
/// is less.
///
/// A clock that is ahead would reserve the shard for longer, and for years if it is wrong by years. A renewal is due when two
/// thirds of the span are left, and may take a third. The renewals of a server that is further behind would arrive when its span
/// has ended by the registry's clock: each would begin a new span, in the server's future. A request that arrives late looks like
/// a clock that is behind, and is refused.
const CLOCK_TOLERANCE_US: i64 = 1_000_000;

/// The registry's row of a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The node that holds the lease, or held it last, or that it is reserved for. Empty if that node was retired.
    pub node: String,
    /// The holder: one run of a server. `None` if the lease is reserved for the node.
    pub incarnation: Option<Uuid>,
    /// Raised by each change of the row.
    pub serial: i64,
    /// The nonce of the claim that was granted last.
    pub nonce: Option<Uuid>,
    /// The holder's span.
    pub span: Span,
    /// Whether the holder has released the lease.
    pub is_released: bool,
    /// The incarnation that lost the lease to [`take_over`].
    pub barred: Option<Uuid>,
    /// The registry's clock at the last grant, in microseconds since 1970.
    pub renewed_at_us: i64,
}

/// A server's claim for a span of a shard.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The name of the server.
    pub node: &'a str,
    /// The run of the server.
    pub incarnation: Uuid,
    /// The serial of the lease that the server holds; `None` if it holds none, or no longer knows.
    pub serial: Option<i64>,
    /// Identifies the claim, so that it has the same answer if it arrives again.
    pub nonce: Uuid,
    /// The end that the server asks for: its clock plus the length.
    pub until_us: i64,
    /// The length of a lease.
    pub length_us: i64,
}

/// The registry's clock.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The reading after the row was locked, in microseconds since 1970.
    pub now_us: i64,
    /// New spans do not begin before this instant. A registry that was restored, or failed over, may have forgotten the
    /// leases that it granted last; by then they have ended.
    pub quiet_until_us: i64,
}

/// Why a claim is not granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another server holds the lease.
    HeldBy {
        /// Its name.
        node: String,
        /// The end of its span.
        ends_us: i64,
    },
    /// The lease is reserved for another node.
    ReservedFor {
        /// Its name.
        node: String,
    },
    /// The lease is reserved for this node, and the span of its last holder has not ended.
    EndsLater {
        /// The end of that span.
        ends_us: i64,
    },
    /// A person took the lease from this incarnation.
    Barred,
    /// The lease has changed since the serial of the claim.
    Superseded,
    /// The server's clock is ahead of the registry's by more than the tolerance.
    ClockAhead {
        /// How far, in microseconds.
        us: i64,
    },
    /// The server's clock is behind the registry's by more than the tolerance or a third of the lease's length, or the claim
    /// arrived that late.
    ClockBehind {
        /// How far, in microseconds.
        us: i64,
    },
}

/// Decides a claim. Returns the row to write; the row as it is if the claim was granted before.
///
/// ```
/// use pg_snowflake_core::registry::{Claim, Moment, claim};
///
/// let second = |s: i64| s * 1_000_000;
/// let by = |incarnation, serial, at: i64| Claim {
///     node: "db-1", incarnation, serial, nonce: 7 + at as u128, until_us: second(at + 10), length_us: second(10),
/// };
/// let at = |at: i64| Moment { now_us: second(at), quiet_until_us: 0 };
///
/// let lease = claim(None, by(1, None, 100), at(100)).unwrap();
/// let renewed = claim(Some(&lease), by(1, Some(lease.serial), 103), at(103)).unwrap();
/// assert_eq!((renewed.span.starts_us, renewed.span.ends_us), (second(100), second(113)));
///
/// assert!(claim(Some(&renewed), by(2, None, 112), at(112)).is_err());
/// let next = claim(Some(&renewed), by(2, None, 113), at(113)).unwrap();
/// assert_eq!(next.span.starts_us, second(113));
/// ```
///
/// # Errors
/// The reason why it is not granted. The row does not change then.
pub fn claim(row: Option<&Lease>, claim: Claim, moment: Moment) -> Result<Lease, Refusal> {
    check_clock(claim, moment)?;
    let Some(row) = row else {
        return match claim.serial {
            Some(_) => Err(Refusal::Superseded),
            None => Ok(new_span(0, i64::MIN, claim, moment)),
        };
    };
    let is_holder = row.incarnation == Some(claim.incarnation);
    if is_holder && row.nonce == Some(claim.nonce) {
        return Ok(row.clone());
    }
    if row.barred == Some(claim.incarnation) {
        return Err(Refusal::Barred);
    }
    match claim.serial {
        Some(serial) if !is_holder || serial != row.serial => Err(Refusal::Superseded),
        Some(_) if !row.is_released && moment.now_us < row.span.ends_us => {
            Ok(renewed(row, claim, moment))
        }
        // After a crash, the holder does not know what it has used of its span, and starts where the span ends.
        _ if is_holder => Ok(new_span(row.serial, row.span.ends_us, claim, moment)),
        _ if row.incarnation.is_none() && row.node != claim.node && !row.node.is_empty() => {
            Err(Refusal::ReservedFor { node: row.node.clone() })
        }
        // Not even for a node that it is reserved for: a registry that fails over may forget the reservation, and renew.
        _ if !row.is_released && moment.now_us < row.span.ends_us => {
            let ends_us = row.span.ends_us;
            Err(match row.incarnation {
                Some(_) => Refusal::HeldBy { node: row.node.clone(), ends_us },
                None => Refusal::EndsLater { ends_us },
            })
        }
        _ => Ok(new_span(row.serial, row.span.ends_us, claim, moment)),
    }
}

/// A claim that passes ends after now: it is late by less than its length.
fn check_clock(claim: Claim, moment: Moment) -> Result<(), Refusal> {
    let ahead_us = claim.until_us.saturating_sub(claim.length_us).saturating_sub(moment.now_us);
    if ahead_us > CLOCK_TOLERANCE_US {
        return Err(Refusal::ClockAhead { us: ahead_us });
    }
    let behind_us = ahead_us.saturating_neg();
    if behind_us > CLOCK_TOLERANCE_US.min(claim.length_us / 3) {
        return Err(Refusal::ClockBehind { us: behind_us });
    }
    Ok(())
}

fn renewed(row: &Lease, claim: Claim, moment: Moment) -> Lease {
    let ends_us = row.span.ends_us.max(claim.until_us);
    granted(row.serial, Span { ends_us, ..row.span }, claim, moment)
}

fn new_span(serial: i64, last_end_us: i64, claim: Claim, moment: Moment) -> Lease {
    let starts_us = last_end_us.max(moment.now_us).max(moment.quiet_until_us);
    // Empty if it begins later than the claim ends, until it is renewed. With an end of its own, it could outlast the quiet
    // time of a registry that forgets it.
    let ends_us = starts_us.max(claim.until_us);
    let span = Span { starts_us, ends_us };
    granted(serial, span, claim, moment)
}

fn granted(serial: i64, span: Span, claim: Claim, moment: Moment) -> Lease {
    Lease {
        node: claim.node.to_owned(),
        incarnation: Some(claim.incarnation),
        // Not below the clock, so that a restored registry never repeats a serial: a late request has an old one.
        serial: (serial + 1).max(moment.now_us),
        nonce: Some(claim.nonce),
        span,
        is_released: false,
        barred: None,
        renewed_at_us: moment.now_us,
    }
}

/// The row after its holder has released it; `None` if `incarnation` with `serial` is not the holder. `mark_us` is the first
/// instant above all ticks that the holder has used: the begin of the last one plus 1 µs.
pub fn release(row: &Lease, incarnation: Uuid, serial: i64, mark_us: i64) -> Option<Lease> {
    let is_holder = row.incarnation == Some(incarnation) && row.serial == serial;
    (is_holder && !row.is_released).then(|| {
        let ends_us = row.span.ends_us.min(row.span.starts_us.max(mark_us));
        let span = Span { ends_us, ..row.span };
        Lease { serial: serial + 1, nonce: None, span, is_released: true, ..row.clone() }
    })
}

/// The row after a person has reserved the shard for `node`. The holder can no longer renew, and the node gets the shard when
/// the holder's span has ended.
pub fn take_over(row: Option<&Lease>, node: &str, now_us: i64) -> Lease {
    let reserved = Lease {
        node: node.to_owned(),
        incarnation: None,
        serial: 1,
        nonce: None,
        span: Span { starts_us: now_us, ends_us: now_us },
        is_released: false,
        barred: None,
        renewed_at_us: now_us,
    };
    match row {
        None => reserved,
        Some(row) => Lease {
            serial: row.serial + 1,
            span: row.span,
            barred: row.incarnation.or(row.barred),
            renewed_at_us: row.renewed_at_us,
            ..reserved
        },
    }
}

impl Lease {
    /// Whether the node has lost the lease, or never had it.
    pub fn has_ended(&self, now_us: i64) -> bool {
        self.is_released || self.span.ends_us <= now_us
    }
}

/// The row after its node was retired: any node may claim the shard when the last span has ended. A run of the node that comes back
/// must claim it anew, like any other.
pub fn retire(row: &Lease) -> Lease {
    Lease {
        node: String::new(),
        incarnation: None,
        serial: row.serial + 1,
        nonce: None,
        barred: row.incarnation.or(row.barred),
        ..row.clone()
    }
}

/// The shard for a node that asks for any: the lowest that it had before, else the lowest of `shards` that no node has; `None` if there is
/// none. Each row is a shard, its node, and whether its last span has ended.
///
/// ```
/// use pg_snowflake_core::registry::assign;
///
/// let rows = [(0, "db-1", false), (1, "", true), (2, "db-3", false)];
/// assert_eq!(assign(rows, "db-3", 4096), Some(2));
/// assert_eq!(assign(rows, "db-4", 4096), Some(1)); // that of a retired node
/// assert_eq!(assign(rows, "db-4", 1), None);
/// ```
pub fn assign<'a>(
    rows: impl IntoIterator<Item = (i32, &'a str, bool)>,
    node: &str,
    shards: i32,
) -> Option<i32> {
    let mut rows: Vec<(i32, &str, bool)> = rows.into_iter().collect();
    rows.sort_unstable();
    let own = rows.iter().find(|(_, of, _)| *of == node).map(|&(shard, ..)| shard);
    own.or_else(|| {
        rows.retain(|&(_, of, has_ended)| !(of.is_empty() && has_ended));
        let is_taken = |&(free, &(shard, ..)): &(i32, &(i32, &str, bool))| free == shard;
        let free = (0..).zip(&rows).take_while(is_taken).count() as i32;
        Some(free).filter(|&free| free < shards)
    })
}

#[cfg(test)]
mod tests;
