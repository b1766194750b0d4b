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
pub const MIN_LEASE_US: i64 = 1_000_000;

/// The longest lease, in microseconds: after a crash, the shard has no IDs for up to this long.
pub const MAX_LEASE_US: i64 = 300_000_000;

/// The most shards that a server can have leases of: twice as many as the default layout has.
pub const MAX_SHARDS_OF_A_NODE: usize = 8192;

/// How far a server's clock may differ from the registry's. If it is behind, the limit is a third of the lease's length if that is less.
///
/// A clock that is ahead would reserve the shard for longer, and for years if it is wrong by years. A renewal is due when two
/// thirds of the span are left, and may take a third. The renewals of a server that is further behind would arrive when its span
/// has ended by the registry's clock: each would begin a new span, in the server's future. A request that arrives late looks like
/// a clock that is behind, and is refused.
const CLOCK_TOLERANCE_US: i64 = 1_000_000;

/// A running server: where its connection came from, and when it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The address of the client, as `pg_stat_activity` has it; empty for a Unix-domain socket.
    pub address: String,
    /// The start of the server, in microseconds since 1970, by its own clock; `None` if it is not known.
    pub started_at_us: Option<i64>,
}

/// The registry's row of a shard.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// The end of the span before this one, or of the quiet time. A holder that has used nothing of its span gives it back up to there.
    pub former_end_us: i64,
    /// Until this instant, only the server that knows the row's serial can claim a lease that has ended or was released: its former
    /// holder. A copy of that server that is older than the last renewal does not know the serial.
    pub kept_until_us: i64,
    /// The serial that the holder knew when it claimed the lease. A copy of its data directory knows it too.
    pub known_serial: Option<i64>,
    /// The server that holds the lease, or held it last.
    pub origin: Origin,
    /// A server with the name of the holder that was refused while the holder had the lease, and when, in microseconds since 1970.
    pub copy: Option<(Origin, i64)>,
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
    /// The serial that the server's data directory has, of this run or an earlier one.
    pub known_serial: Option<i64>,
    /// Identifies the claim, so that it has the same answer if it arrives again.
    pub nonce: Uuid,
    /// The end that the server asks for: its clock plus the length.
    pub until_us: i64,
    /// The length of a lease.
    pub length_us: i64,
    /// The server.
    pub origin: &'a Origin,
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
        /// The server.
        origin: Origin,
        /// Whether both have the same data directory, or copies of it: both knew the same serial before the holder got the lease.
        is_copy: bool,
    },
    /// The lease has ended or was released, and is kept for its former holder.
    KeptFor {
        /// The name of that server.
        node: String,
        /// Until when.
        until_us: i64,
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

impl Refusal {
    /// The instant from which the shard can be granted, if nobody claims it before: the lease ends, or is no longer kept.
    pub fn until_us(&self) -> Option<i64> {
        match *self {
            Refusal::HeldBy { ends_us, .. } | Refusal::EndsLater { ends_us } => Some(ends_us),
            Refusal::KeptFor { until_us, .. } => Some(until_us),
            _ => None,
        }
    }
}

/// Decides a claim. Returns the row to write; the row as it is if the claim was granted before.
///
/// ```
/// use pg_snowflake_policies::registry::{Claim, Moment, Origin, claim};
///
/// let second = |s: i64| s * 1_000_000;
/// let origin = Origin::default();
/// let by = |incarnation, serial, at: i64| Claim {
///     node: "db-1", incarnation, serial, known_serial: serial, nonce: 7 + at as u128,
///     until_us: second(at + 10), length_us: second(10), origin: &origin,
/// };
/// let at = |at: i64| Moment { now_us: second(at), quiet_until_us: 0 };
///
/// let lease = claim(None, by(1, None, 100), at(100)).unwrap();
/// let renewed = claim(Some(&lease), by(1, Some(lease.serial), 103), at(103)).unwrap();
/// assert_eq!((renewed.span.starts_us, renewed.span.ends_us), (second(100), second(113)));
///
/// assert!(claim(Some(&renewed), by(2, None, 112), at(112)).is_err());
/// assert!(claim(Some(&renewed), by(2, None, 122), at(122)).is_err()); // kept for its former holder
/// let next = claim(Some(&renewed), by(2, None, 123), at(123)).unwrap();
/// assert_eq!(next.span.starts_us, second(123));
/// ```
///
/// # Errors
/// The reason why it is not granted. The row does not change then.
pub fn claim(row: Option<&Lease>, claim: Claim, moment: Moment) -> Result<Lease, Refusal> {
    check_clock(claim, moment)?;
    let Some(row) = row else {
        return match claim.serial {
            Some(_) => Err(Refusal::Superseded),
            None => Ok(new_span(None, claim, moment)),
        };
    };
    // A run of a server keeps its name.
    let is_holder = row.incarnation == Some(claim.incarnation) && row.node == claim.node;
    if is_holder && row.nonce == Some(claim.nonce) {
        return Ok(row.clone());
    }
    // A server that holds nothing keeps its incarnation when it is refused, and may be the one that the lease is reserved for.
    let may_be_next = claim.serial.is_none() && (row.node.is_empty() || row.node == claim.node);
    if row.barred == Some(claim.incarnation) && !may_be_next {
        return Err(Refusal::Barred);
    }
    match claim.serial {
        Some(serial) if !is_holder || serial != row.serial => Err(Refusal::Superseded),
        Some(_) if !row.is_released && moment.now_us < row.span.ends_us => Ok(renewed(row, claim, moment)),
        // After a crash, the holder does not know what it has used of its span, and starts where the span ends.
        _ if is_holder => Ok(Lease { known_serial: row.known_serial, ..new_span(Some(row), claim, moment) }),
        _ if row.incarnation.is_none() && row.node != claim.node && !row.node.is_empty() => {
            Err(Refusal::ReservedFor { node: row.node.clone() })
        }
        // Not even for a node that it is reserved for: a registry that fails over may forget the reservation, and renew.
        _ if !row.is_released && moment.now_us < row.span.ends_us => {
            let ends_us = row.span.ends_us;
            Err(match row.incarnation {
                Some(_) => Refusal::HeldBy { node: row.node.clone(), ends_us, origin: row.origin.clone(), is_copy: is_copy(row, claim) },
                None => Refusal::EndsLater { ends_us },
            })
        }
        _ if is_kept_for_another(row, claim, moment) => {
            let (node, until_us) = (row.node.clone(), row.kept_until_us);
            Err(Refusal::KeptFor { node, until_us })
        }
        _ => Ok(new_span(Some(row), claim, moment)),
    }
}

/// Whether the server and the holder of the lease had the same data directory when the holder claimed the lease.
fn is_copy(row: &Lease, claim: Claim) -> bool {
    claim.known_serial.is_some() && claim.known_serial == row.known_serial
}

/// Whether the former holder of a lease comes first. It wrote the serial of each grant into its data directory.
fn is_kept_for_another(row: &Lease, claim: Claim, moment: Moment) -> bool {
    let is_former_holder = claim.known_serial.is_some_and(|known| known >= row.serial);
    row.incarnation.is_some() && !is_former_holder && moment.now_us < row.kept_until_us
}

/// The row after a copy of its holder was refused, so that the holder learns of it. The serial stays: the holder renews with it.
pub fn with_copy(row: &Lease, claim: Claim, moment: Moment) -> Lease {
    Lease { copy: Some((claim.origin.clone(), moment.now_us)), ..row.clone() }
}

/// Whether the registry has lost the row that has had the serial `seen`: the present row has a lower one, or is gone. `explained` is the
/// highest lost serial for which a quiet time has begun.
///
/// Rows are never deleted, and serials only increase. So a server that has seen a higher one knows a later state of the registry: that was
/// restored from a backup, or is a copy.
pub fn is_lost(serial: Option<i64>, seen: i64, explained: i64) -> bool {
    seen > explained && serial.is_none_or(|serial| serial < seen)
}

/// When the quiet time of a registry that may have lost rows ends: all leases that it granted with this clock have ended by then.
pub fn quiet_until_us(now_us: i64, longest_us: i64) -> i64 {
    now_us.saturating_add(longest_us).saturating_add(CLOCK_TOLERANCE_US)
}

/// Why a quiet time does not end earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// It ends as soon as one that begins now.
    AsSoonAsPossible,
    /// A lease was granted at this instant, which is in the future: the clock was ahead then, or is behind now.
    GrantedAt(i64),
}

/// The end of a quiet time that began while the registry's clock was ahead, now that it is right: that of one that begins now.
/// `granted_at_us` are the times of grants, also of those that the registry has lost.
///
/// ```
/// use pg_snowflake_policies::registry::{NotYet, end_quiet_time};
///
/// let second = 1_000_000;
/// assert_eq!(end_quiet_time(3_600 * second, 0, 10 * second, []), Ok(11 * second));
/// assert_eq!(end_quiet_time(11 * second, 0, 10 * second, []), Err(NotYet::AsSoonAsPossible));
/// let granted_at = 3_590 * second;
/// assert_eq!(end_quiet_time(3_600 * second, 0, 10 * second, [granted_at]), Err(NotYet::GrantedAt(granted_at)));
/// ```
///
/// # Errors
/// Why it does not end earlier.
pub fn end_quiet_time(quiet_until: i64, now_us: i64, longest_us: i64, granted_at_us: impl IntoIterator<Item = i64>) -> Result<i64, NotYet> {
    let earliest_us = quiet_until_us(now_us, longest_us);
    if quiet_until <= earliest_us {
        return Err(NotYet::AsSoonAsPossible);
    }
    match granted_at_us.into_iter().max() {
        Some(at_us) if at_us > now_us.saturating_add(CLOCK_TOLERANCE_US) => Err(NotYet::GrantedAt(at_us)),
        _ => Ok(earliest_us),
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
    Lease {
        former_end_us: row.former_end_us,
        known_serial: row.known_serial,
        copy: row.copy.clone(),
        ..granted(row.serial, Span { ends_us, ..row.span }, claim, moment)
    }
}

fn new_span(row: Option<&Lease>, claim: Claim, moment: Moment) -> Lease {
    let (serial, last_end_us) = row.map_or((0, i64::MIN), |row| (row.serial, row.span.ends_us));
    let starts_us = last_end_us.max(moment.now_us).max(moment.quiet_until_us);
    // Empty if it begins later than the claim ends, until it is renewed. With an end of its own, it could outlast the quiet
    // time of a registry that forgets it.
    let ends_us = starts_us.max(claim.until_us);
    let span = Span { starts_us, ends_us };
    // A lease that the registry has forgotten may end in its quiet time.
    let former_end_us = last_end_us.max(moment.quiet_until_us);
    Lease { former_end_us, ..granted(serial, span, claim, moment) }
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
        former_end_us: i64::MIN,
        kept_until_us: span.ends_us.saturating_add(claim.length_us),
        known_serial: claim.known_serial,
        origin: claim.origin.clone(),
        copy: None,
    }
}

/// A server's request to release a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// The run of the server.
    pub incarnation: Uuid,
    /// The serial of the lease.
    pub serial: i64,
    /// The first instant above all ticks that the holder has used: the begin of the last one plus 1 µs.
    pub mark_us: i64,
    /// Whether the server wants the shard again when it has restarted. If not, any server can claim it at once.
    pub keep: bool,
}

/// The row after its holder has released it; `None` if the request is not the holder's.
pub fn release(row: &Lease, request: Release, now_us: i64) -> Option<Lease> {
    let Release { incarnation, serial, mark_us, keep } = request;
    let is_holder = row.incarnation == Some(incarnation) && row.serial == serial;
    (is_holder && !row.is_released).then(|| {
        let span = if mark_us <= row.span.starts_us {
            Span { starts_us: row.former_end_us, ends_us: row.former_end_us }
        } else {
            Span { ends_us: row.span.ends_us.min(mark_us), ..row.span }
        };
        let length_us = row.kept_until_us.saturating_sub(row.span.ends_us);
        let kept_until_us = if keep { now_us.saturating_add(length_us) } else { i64::MIN };
        Lease { serial: serial + 1, nonce: None, span, is_released: true, kept_until_us, ..row.clone() }
    })
}

/// The row after a person has reserved the shard for `node`. The holder can no longer renew, and the node gets the shard when
/// the holder's span has ended.
pub fn take_over(row: Option<&Lease>, node: &str) -> Lease {
    let reserved = Lease {
        node: node.to_owned(),
        incarnation: None,
        serial: 1,
        nonce: None,
        // Nothing has been used, whatever the clock reads.
        span: Span { starts_us: i64::MIN, ends_us: i64::MIN },
        is_released: false,
        barred: None,
        renewed_at_us: i64::MIN,
        former_end_us: i64::MIN,
        kept_until_us: i64::MIN,
        known_serial: None,
        origin: Origin::default(),
        copy: None,
    };
    match row {
        None => reserved,
        Some(row) => Lease {
            serial: row.serial + 1,
            span: row.span,
            barred: row.incarnation.or(row.barred),
            renewed_at_us: row.renewed_at_us,
            former_end_us: row.former_end_us,
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
        barred: row.incarnation.filter(|_| !row.is_released).or(row.barred),
        kept_until_us: i64::MIN,
        known_serial: None,
        origin: Origin::default(),
        copy: None,
        ..row.clone()
    }
}

/// The shard for a node that asks for any, below `shards`: the lowest that it had before, else the lowest that no node has. `None` if all
/// are taken. Each row has a shard, its node, and whether its last span has ended.
///
/// ```
/// use pg_snowflake_policies::registry::assign;
///
/// let rows = [(0, "db-1", false), (1, "", true), (2, "db-3", false)];
/// assert_eq!(assign(rows, "db-3", 4096), Some(2));
/// assert_eq!(assign(rows, "db-4", 4096), Some(1)); // that of a retired node
/// assert_eq!(assign(rows, "db-4", 1), None);
/// assert_eq!(assign([(7, "db-1", false)], "db-1", 4), Some(0));
/// ```
pub fn assign<'a>(rows: impl IntoIterator<Item = (i32, &'a str, bool)>, node: &str, shards: i32) -> Option<i32> {
    let mut rows: Vec<(i32, &str, bool)> = rows.into_iter().collect();
    rows.sort_unstable();
    let own = rows.iter().find(|&&(shard, owner, _)| owner == node && shard < shards);
    own.map(|&(shard, ..)| shard).or_else(|| {
        rows.retain(|&(_, owner, has_ended)| !(owner.is_empty() && has_ended));
        let is_taken = |&(free, &(shard, ..)): &(i32, &(i32, &str, bool))| free == shard;
        let free = (0..).zip(&rows).take_while(is_taken).count() as i32;
        Some(free).filter(|&free| free < shards)
    })
}

#[cfg(test)]
mod tests;
