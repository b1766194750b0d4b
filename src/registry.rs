//! The registry of leases, the extension `pg_snowflake_registry`: a table with one row a shard, and the functions that change
//! it. Servers call them over the connection that `pg_snowflake.registry` names; a person calls `take_over`. Who gets which span is
//! decided in `pg_snowflake_policies::registry`.
//!
//! The functions run as the superuser that owns them. Their SQL declarations set `search_path` to core's schema, and the names
//! of our tables have the schema that the extension created, so that nothing that others created can be called.
//!
//! Locks are taken in one order: the table, the row of the registry, that of the node, and the rows of the shards in ascending order. Every call
//! locks the table before it locks a row, since an assignment locks it against all that change rows.

mod arguments;
mod reason;
mod tables;

use crate::postgres::backend_local::BackendLocal;
use crate::postgres::encoding::Text;
use crate::postgres::query::{execute, rows, rows_kept, text};
use crate::postgres::report::{Raise, quoted};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{Instant, now_us, printed, timestamptz, unix_us_of};
use arguments::{check_shard, check_transaction, finite, length_us, node_name, number, required, shards};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::messages::registry as messages;
use pg_snowflake_policies::registry::{self, Claim, Lease, MIN_LEASE_US, Moment, Origin, Refusal, Release};
use pgrx::datum::{Array, Interval};
use pgrx::prelude::*;
use reason::Reason;
use std::collections::BTreeMap;
use tables::{Identity, assigned_shard, bind, check_roles, identity, lock, lock_rows, lost_serial, node_of_this_role, note_lost, write};

/// `snowflake_registry.claim(shard_ids int[], node text, incarnation uuid, serials bigint[], nonce uuid, until timestamptz, length
/// interval, known_shard_ids int[], known_serials bigint[], started_at timestamptz) → setof (shard_id int, granted boolean, starts
/// timestamptz, ends timestamptz, serial bigint, reason text, other_server text, registry uuid, server text, read_at timestamptz,
/// retry_at timestamptz)`
///
/// Grants or renews the lease of each shard. Without shards, it assigns one to the node.
#[pg_extern(sql = false)]
#[expect(clippy::too_many_arguments, reason = "the arguments of the SQL function")]
fn registry_claim(
    shard_ids: Option<Array<i32>>,
    node: Option<&[u8]>,
    incarnation: Option<pgrx::Uuid>,
    serials: Option<Array<i64>>,
    nonce: Option<pgrx::Uuid>,
    until: Option<pg_sys::TimestampTz>,
    length: Option<Interval>,
    known_shard_ids: Option<Array<i32>>,
    known_serials: Option<Array<i64>>,
    started_at: Option<pg_sys::TimestampTz>,
) -> SetOfIterator<'static, NullableResultRow<11>> {
    check_transaction("snowflake_registry.claim");
    let known = shards(("known_shard_ids", known_shard_ids), ("known_serials", known_serials));
    let known: BTreeMap<i32, i64> = known.into_iter().filter_map(|(shard, serial)| Some((shard, serial?))).collect();
    let mut shards = shards(("shard_ids", shard_ids), ("serials", serials));
    let node = node_name(node);
    let incarnation = number(required("incarnation", incarnation));
    let nonce = number(required("nonce", nonce));
    let until_us = finite(required("until", until));
    let length_us = length_us(required("length", length));

    let _own = OwnChange::begin();
    lock(if shards.is_empty() { "SHARE ROW EXCLUSIVE" } else { "ROW EXCLUSIVE" });
    let held = shards.iter().filter_map(|&(shard, serial)| Some((shard, serial?)));
    let seen: BTreeMap<i32, i64> = known.iter().map(|(&shard, &serial)| (shard, serial)).chain(held).collect();
    let known_node = node_of_this_role(&node);
    let lost = lost_serial(&seen, known_node.lost_serial);
    let identity = identity(length_us, lost.is_some());
    let is_finite = |&at: &pg_sys::TimestampTz| at != i64::MIN && at != i64::MAX;
    let origin = Origin { address: identity.client_address.clone(), started_at_us: started_at.filter(is_finite).map(unix_us_of) };
    if !known_node.is_bound {
        bind(&node);
    }
    if let Some(lost) = lost {
        note_lost(&node, lost);
    }
    if shards.is_empty() {
        match assigned_shard(&node) {
            Some(shard) => shards.push((shard, None)),
            // An error would undo the quiet time. The server asks again.
            None if lost.is_some() => return SetOfIterator::empty(),
            None => messages::no_free_shard(DEFAULT.shards()).raise(),
        }
    }
    // A claim with a serial is for a row that exists.
    let may_be_new: Vec<i32> = shards.iter().filter(|(_, serial)| serial.is_none()).map(|&(shard, _)| shard).collect();
    let all: Vec<i32> = shards.iter().map(|&(shard, _)| shard).collect();
    let found = lock_rows(&all, &may_be_new);
    // Another claim may have begun a quiet time while this one waited for the rows.
    let sql = "SELECT quiet_until FROM snowflake_registry.identity";
    let quiet_until = rows_kept(sql, &[], |row| row.get::<Instant>(1)).pop();
    let quiet_until_us = quiet_until.map_or(identity.quiet_until_us, |Instant(us)| us);
    let moment = Moment { now_us: now_us(), quiet_until_us };

    let (mut answers, mut changed) = (Vec::new(), Vec::new());
    for (shard, serial) in shards {
        let known_serial = known.get(&shard).copied().or(serial);
        let claim = Claim { node: &node, incarnation, serial, known_serial, nonce, until_us, length_us, origin: &origin };
        let row = found.get(&shard);
        let answer = registry::claim(row, claim, moment);
        let written = match (&answer, row) {
            (Ok(lease), _) => Some(lease.clone()).filter(|lease| row != Some(lease)),
            // The holder, if it runs, learns of it.
            (Err(Refusal::HeldBy { node: of, .. }), Some(row)) if *of == node => Some(registry::with_copy(row, claim, moment)),
            (Err(_), _) => None,
        };
        changed.extend(written.map(|lease| (shard, lease)));
        answers.push((shard, answer.map_err(|refusal| reason::reason(refusal, shard, claim, moment, lost.is_some()))));
    }
    write(&changed);
    SetOfIterator::new(answers.into_iter().map(move |(shard, answer)| answer_row(shard, answer, &identity, length_us, moment)))
}

fn answer_row(shard: i32, answer: Result<Lease, Reason>, identity: &Identity, length_us: i64, moment: Moment) -> NullableResultRow<11> {
    let (lease, reason) = match answer {
        // A copy that still runs claims again within the length of a lease.
        Ok(lease) => {
            let copy = lease.copy.as_ref().filter(|(_, at_us)| at_us + length_us > moment.now_us);
            let reason = copy.map(|(origin, _)| reason::copy_is_running(shard, origin));
            (Some(lease), reason)
        }
        Err(reason) => (None, Some(reason)),
    };
    let (reason, other_server, retry_at_us) = match reason {
        Some(Reason { text, other_server, retry_at_us }) => (Some(text), other_server, retry_at_us),
        None => (None, None, None),
    };
    let span = lease.as_ref().map(|lease| lease.span);
    NullableResultRow([
        Some(shard.into()),
        Some(lease.is_some().into()),
        span.map(|span| timestamptz(span.starts_us)),
        span.map(|span| timestamptz(span.ends_us)),
        lease.map(|lease| lease.serial.into()),
        reason.and_then(|reason| Text(reason).into_datum()),
        other_server.and_then(|other| Text(other).into_datum()),
        identity.id.into_datum(),
        Text(identity.server.clone()).into_datum(),
        Some(timestamptz(moment.now_us)),
        retry_at_us.map(timestamptz),
    ])
}

/// `snowflake_registry.release(incarnation uuid, shard_ids int[], serials bigint[], mark timestamptz, keep boolean) → int`
///
/// Ends the leases of which `incarnation` is the holder, at the mark: the first instant above all ticks that it has used. With
/// `keep`, the server comes first for the length of a lease. Returns their number.
#[pg_extern(sql = false)]
fn registry_release(
    incarnation: Option<pgrx::Uuid>,
    shard_ids: Option<Array<i32>>,
    serials: Option<Array<i64>>,
    mark: Option<pg_sys::TimestampTz>,
    keep: Option<bool>,
) -> i32 {
    check_transaction("snowflake_registry.release");
    let incarnation = number(required("incarnation", incarnation));
    let shards = shards(("shard_ids", shard_ids), ("serials", serials));
    let mark_us = unix_us_of(required("mark", mark));
    let keep = required("keep", keep);

    let _own = OwnChange::begin();
    lock("ROW EXCLUSIVE");
    let all: Vec<i32> = shards.iter().map(|&(shard, _)| shard).collect();
    let found = lock_rows(&all, &[]);
    check_roles(found.values().filter(|lease| lease.incarnation == Some(incarnation)));
    let now_us = now_us();
    let released: Vec<(i32, Lease)> = shards
        .into_iter()
        .filter_map(|(shard, serial)| {
            let request = Release { incarnation, serial: serial?, mark_us, keep };
            Some((shard, registry::release(found.get(&shard)?, request, now_us)?))
        })
        .collect();
    write(&released);
    released.len() as i32
}

/// `snowflake_registry.take_over(shard_id int, node text) → timestamptz`
///
/// Reserves the shard for the node, and bars its holder from renewing. Returns the earliest begin of the node's span.
#[pg_extern(sql = false)]
fn registry_take_over(shard_id: Option<i32>, node: Option<&[u8]>) -> pg_sys::TimestampTz {
    check_transaction("snowflake_registry.take_over");
    let shard = required("shard_id", shard_id);
    check_shard(shard);
    let node = node_name(node);

    let _own = OwnChange::begin();
    lock("ROW EXCLUSIVE");
    let identity = identity(MIN_LEASE_US, false);
    let found = lock_rows(&[shard], &[shard]);
    let now_us = now_us();
    let reserved = registry::take_over(found.get(&shard), &node);
    let begins_us = reserved.span.ends_us.max(now_us).max(identity.quiet_until_us);
    write(&[(shard, reserved)]);
    timestamptz(begins_us).value() as pg_sys::TimestampTz
}

/// `snowflake_registry.retire(node text) → setof (shard_id int, free_at timestamptz)`
///
/// Takes its shards from a node that is gone. Returns them, with the time from which another node can have each.
#[pg_extern(sql = false)]
fn registry_retire(node: Option<&[u8]>) -> SetOfIterator<'static, NullableResultRow<2>> {
    check_transaction("snowflake_registry.retire");
    let node = node_name(node);

    let _own = OwnChange::begin();
    // Until the lock is held, the node could get another shard.
    lock("SHARE ROW EXCLUSIVE");
    let identity = identity(MIN_LEASE_US, false);
    let sql = "SELECT shard_id FROM snowflake_registry.shards WHERE node = $1";
    let shards: Vec<i32> = rows(sql, &[text(&node)], |row| row.get(1));
    // Its lost serial is still needed by end_quiet_time().
    let sql = "UPDATE snowflake_registry.nodes SET role = NULL WHERE node = $1 AND role IS NOT NULL RETURNING node";
    let is_known = !rows(sql, &[text(&node)], |row| row.get::<String>(1)).is_empty();
    if shards.is_empty() && !is_known {
        messages::no_such_node(quoted(&node)).raise();
    }
    let found = lock_rows(&shards, &[]);
    let now_us = now_us();
    let is_held = |lease: &Lease| lease.incarnation.is_some() && !lease.has_ended(now_us);
    if let Some((&shard, lease)) = found.iter().find(|(_, lease)| is_held(lease)) {
        messages::holds_a_lease(quoted(&node), shard, printed(lease.span.ends_us)).raise();
    }
    let retired: Vec<(i32, Lease)> = found.iter().map(|(&shard, lease)| (shard, registry::retire(lease))).collect();
    write(&retired);
    let earliest_us = now_us.max(identity.quiet_until_us);
    SetOfIterator::new(
        retired
            .into_iter()
            .map(move |(shard, lease)| NullableResultRow([Some(shard.into()), Some(timestamptz(lease.span.ends_us.max(earliest_us)))])),
    )
}

/// `snowflake_registry.end_quiet_time() → timestamptz`
///
/// Ends a quiet time that began while the registry's clock was ahead as soon as one that begins now. Returns its end.
#[pg_extern(sql = false)]
fn registry_end_quiet_time() -> pg_sys::TimestampTz {
    check_transaction("snowflake_registry.end_quiet_time");

    let _own = OwnChange::begin();
    // No span is granted until the end of the transaction.
    lock("SHARE ROW EXCLUSIVE");
    let identity = identity(MIN_LEASE_US, false);
    // A serial is not below the clock at its grant.
    let sql = "SELECT max(serial) FROM snowflake_registry.shards
               UNION ALL SELECT max(lost_serial) FROM snowflake_registry.nodes";
    let granted_at = rows(sql, &[], |row| row.nullable::<i64>(1));
    let now_us = now_us();
    let Identity { quiet_until_us, longest_us, .. } = identity;
    let granted_at = granted_at.into_iter().flatten();
    let ends_us = registry::end_quiet_time(quiet_until_us, now_us, longest_us, granted_at)
        .unwrap_or_else(|reason| reason::quiet_time_goes_on(reason, quiet_until_us, now_us));
    execute("UPDATE snowflake_registry.identity SET quiet_until = $1", &[Instant(ends_us).into()]);
    timestamptz(ends_us).value() as pg_sys::TimestampTz
}

/// `snowflake_registry.is_own_change() → boolean`
///
/// Whether one of the functions above is changing the tables. Their triggers refuse the changes of others.
#[pg_extern(sql = false)]
fn registry_is_own_change() -> bool {
    // SAFETY: a plain read.
    unsafe { *OWN_CHANGE.get() }
}

static OWN_CHANGE: BackendLocal<bool> = BackendLocal::new(false);

/// While it lives, the tables may be changed.
struct OwnChange;

impl OwnChange {
    fn begin() -> Self {
        // SAFETY: a plain write.
        unsafe { *OWN_CHANGE.get() = true };
        OwnChange
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        // SAFETY: a plain write.
        unsafe { *OWN_CHANGE.get() = false };
    }
}
