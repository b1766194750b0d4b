//! The registry of leases, the extension `pg_snowflake_registry`: a table with one row a shard, and the functions that change
//! it. Servers call them over the connection that `pg_snowflake.registry` names; a person calls `take_over`. Who gets which span is
//! decided in `pg_snowflake_policies::registry`.
//!
//! The functions run as the superuser that owns them. Their SQL declarations set `search_path` to core's schema, and the names
//! of our tables have the schema that the extension created, so that nothing that others created can be called.
//!
//! Locks are taken in one order: the table, the row of the registry, that of the node, and the rows of the shards in ascending order. Every call
//! locks the table before it locks a row, since an assignment locks it against all that change rows.

mod refusal;

use crate::postgres::arguments;
use crate::postgres::backend_local::BackendLocal;
use crate::postgres::encoding::{Text, from_server};
use crate::postgres::query::{Row, execute, execute_kept, rows, rows_kept, text};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{Instant, now_us, timestamptz, unix_us_of};
use crate::postgres::transaction::{check_read_committed, check_writable};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::lease::Span;
use pg_snowflake_policies::registry::{
    self, Claim, LONGEST_LEASE_US, Lease, MAX_SHARDS_OF_A_NODE, Moment, Origin, Refusal, Release,
    SHORTEST_LEASE_US,
};
use pgrx::datum::{Array, DatumWithOid, Interval};
use pgrx::prelude::*;
use refusal::Reason;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::iter::repeat;

/// The longest name of a node, in bytes: that of a host name.
const LONGEST_NODE: usize = 255;

/// `snowflake_registry.claim(shard_ids int[], node text, incarnation uuid, serials bigint[], nonce uuid, until timestamptz, length
/// interval, known_shard_ids int[], known_serials bigint[], started_at timestamptz) → setof (shard_id int, granted boolean, starts
/// timestamptz, ends timestamptz, serial bigint, reason text, other_server text, registry uuid, server text, read_at timestamptz)`
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
) -> SetOfIterator<'static, NullableResultRow<10>> {
    check_transaction("snowflake_registry.claim");
    let known = shards(("known_shard_ids", known_shard_ids), ("known_serials", known_serials));
    let known: BTreeMap<i32, i64> =
        known.into_iter().filter_map(|(shard, serial)| Some((shard, serial?))).collect();
    let mut shards = shards(("shard_ids", shard_ids), ("serials", serials));
    let node = node_name(node);
    let incarnation = number(required("incarnation", incarnation));
    let nonce = number(required("nonce", nonce));
    let until_us = finite(required("until", until));
    let length_us = length_us(required("length", length));

    let _own = OwnChange::begin();
    lock(if shards.is_empty() { "SHARE ROW EXCLUSIVE" } else { "ROW EXCLUSIVE" });
    let held = shards.iter().filter_map(|&(shard, serial)| Some((shard, serial?)));
    let seen: BTreeMap<i32, i64> =
        known.iter().map(|(&shard, &serial)| (shard, serial)).chain(held).collect();
    let known_node = node_of_this_role(&node);
    let lost = lost_serial(&seen, known_node.lost_serial);
    let identity = identity(length_us, lost.is_some());
    let is_finite = |&at: &pg_sys::TimestampTz| at != i64::MIN && at != i64::MAX;
    let origin = Origin {
        address: identity.client_address.clone(),
        started_at_us: started_at.filter(is_finite).map(unix_us_of),
    };
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
            None => refusal::no_free_shard(DEFAULT.shards()),
        }
    }
    // A claim with a serial is for a row that exists.
    let may_be_new: Vec<i32> =
        shards.iter().filter(|(_, serial)| serial.is_none()).map(|&(shard, _)| shard).collect();
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
        let claim = Claim {
            node: &node,
            incarnation,
            serial,
            known_serial,
            nonce,
            until_us,
            length_us,
            origin: &origin,
        };
        let row = found.get(&shard);
        let answer = registry::claim(row, claim, moment);
        let written = match (&answer, row) {
            (Ok(lease), _) => Some(lease.clone()).filter(|lease| row != Some(lease)),
            // The holder, if it runs, learns of it.
            (Err(Refusal::HeldBy { node: of, .. }), Some(row)) if *of == node => {
                Some(registry::with_copy(row, claim, moment))
            }
            (Err(_), _) => None,
        };
        changed.extend(written.map(|lease| (shard, lease)));
        answers.push((
            shard,
            answer
                .map_err(|refusal| refusal::reason(refusal, shard, claim, moment, lost.is_some())),
        ));
    }
    write(&changed);
    SetOfIterator::new(
        answers
            .into_iter()
            .map(move |(shard, answer)| answer_row(shard, answer, &identity, length_us, moment)),
    )
}

fn answer_row(
    shard: i32,
    answer: Result<Lease, Reason>,
    identity: &Identity,
    length_us: i64,
    moment: Moment,
) -> NullableResultRow<10> {
    let (lease, reason) = match answer {
        // A copy that still runs claims again within the length of a lease.
        Ok(lease) => {
            let copy = lease.copy.as_ref().filter(|(_, at_us)| at_us + length_us > moment.now_us);
            let reason = copy.map(|(origin, _)| refusal::copy_is_running(shard, origin));
            (Some(lease), reason)
        }
        Err(reason) => (None, Some(reason)),
    };
    let (reason, other_server) = match reason {
        Some(Reason { text, other_server }) => (Some(text), other_server),
        None => (None, None),
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
    let identity = identity(SHORTEST_LEASE_US, false);
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
    let identity = identity(SHORTEST_LEASE_US, false);
    let sql = "SELECT shard_id FROM snowflake_registry.shards WHERE node = $1";
    let shards: Vec<i32> = rows(sql, &[text(&node)], |row| row.get(1));
    // Its lost serial is still needed by end_quiet_time().
    let sql = "UPDATE snowflake_registry.nodes SET role = NULL WHERE node = $1 AND role IS NOT NULL RETURNING node";
    let is_known = !rows(sql, &[text(&node)], |row| row.get::<String>(1)).is_empty();
    if shards.is_empty() && !is_known {
        refusal::no_such_node(&node);
    }
    let found = lock_rows(&shards, &[]);
    let now_us = now_us();
    let is_held = |lease: &Lease| lease.incarnation.is_some() && !lease.has_ended(now_us);
    if let Some((&shard, lease)) = found.iter().find(|(_, lease)| is_held(lease)) {
        refusal::holds_a_lease(&node, shard, lease.span.ends_us);
    }
    let retired: Vec<(i32, Lease)> =
        found.iter().map(|(&shard, lease)| (shard, registry::retire(lease))).collect();
    write(&retired);
    let earliest_us = now_us.max(identity.quiet_until_us);
    SetOfIterator::new(retired.into_iter().map(move |(shard, lease)| {
        NullableResultRow([
            Some(shard.into()),
            Some(timestamptz(lease.span.ends_us.max(earliest_us))),
        ])
    }))
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
    let identity = identity(SHORTEST_LEASE_US, false);
    // A serial is not below the clock at its grant.
    let sql = "SELECT max(serial) FROM snowflake_registry.shards
               UNION ALL SELECT max(lost_serial) FROM snowflake_registry.nodes";
    let granted_at = rows(sql, &[], |row| row.nullable::<i64>(1));
    let now_us = now_us();
    let Identity { quiet_until_us, longest_us, .. } = identity;
    let granted_at = granted_at.into_iter().flatten();
    let ends_us = registry::end_quiet_time(quiet_until_us, now_us, longest_us, granted_at)
        .unwrap_or_else(|reason| refusal::quiet_time_goes_on(reason, quiet_until_us, now_us));
    execute("UPDATE snowflake_registry.identity SET quiet_until = $1", &[Instant(ends_us).into()]);
    timestamptz(ends_us).value() as pg_sys::TimestampTz
}

/// `snowflake_registry.is_own_change() → boolean`
///
/// Whether one of the functions above is changing the tables. Their triggers refuse the changes of others.
#[pg_extern(sql = false)]
fn registry_is_own_change() -> bool {
    // SAFETY: the closure calls nothing.
    unsafe { OWN_CHANGE.with(|is_own| *is_own) }
}

static OWN_CHANGE: BackendLocal<bool> = BackendLocal::new(false);

/// While it lives, the tables may be changed.
struct OwnChange;

impl OwnChange {
    fn begin() -> Self {
        // SAFETY: the closure calls nothing.
        unsafe { OWN_CHANGE.with(|is_own| *is_own = true) };
        OwnChange
    }
}

impl Drop for OwnChange {
    fn drop(&mut self) {
        // SAFETY: the closure calls nothing.
        unsafe { OWN_CHANGE.with(|is_own| *is_own = false) };
    }
}

/// Refuses a transaction that cannot change a row, or whose snapshot may be older than the lock on it.
fn check_transaction(function: &str) {
    check_writable(function, "Only the primary changes leases.");
    check_read_committed(
        function,
        "It must see every lease that is committed before it locks the lease's row.",
    );
}

fn required<T>(name: &str, argument: Option<T>) -> T {
    arguments::required(
        name,
        argument,
        "Only started_at, and the arguments for shards and serials can be null.",
    )
}

/// The shards in ascending order, each with its serial if that is known.
fn shards(
    (name, shard_ids): (&str, Option<Array<i32>>),
    (name_of_serials, serials): (&str, Option<Array<i64>>),
) -> Vec<(i32, Option<i64>)> {
    let shard_ids = elements(name, shard_ids);
    let serials = elements(name_of_serials, serials);
    if !serials.is_empty() && serials.len() != shard_ids.len() {
        refusal::different_lengths([name, name_of_serials], [shard_ids.len(), serials.len()]);
    }
    let mut shards: Vec<(i32, Option<i64>)> = shard_ids
        .into_iter()
        .map(|shard| shard.unwrap_or_else(|| refusal::null_shard(name, name_of_serials)))
        .inspect(|&shard| check_shard(shard))
        .zip(serials.into_iter().chain(repeat(None)))
        .collect();
    shards.sort_unstable();
    if let Some(pair) = shards.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        refusal::duplicate_shard(name, pair[0].0);
    }
    shards
}

/// The elements of an array argument; none if it is null.
fn elements<T>(name: &str, array: Option<Array<T>>) -> Vec<Option<T>>
where
    Vec<Option<T>>: FromDatum,
{
    let Some(array) = array else { return Vec::new() };
    if array.len() > MAX_SHARDS_OF_A_NODE {
        refusal::too_many_elements(name, array.len(), MAX_SHARDS_OF_A_NODE);
    }
    let array = array.into_array_type();
    // SAFETY: the array is detoasted, and stays allocated as long as the function's arguments.
    unsafe {
        if (*array).ndim > 1 {
            refusal::not_one_dimensional(name, (*array).ndim);
        }
        Vec::from_datum(array.into(), false).unwrap_or_default()
    }
}

fn check_shard(shard: i32) {
    if shard < 0 {
        refusal::negative_shard(shard);
    }
}

/// A name that a message can repeat.
fn node_name(node: Option<&[u8]>) -> String {
    let node = required("node", node);
    if node.is_empty() || node.len() > LONGEST_NODE {
        refusal::invalid_node(LONGEST_NODE);
    }
    let name = from_server(&CString::new(node).expect("a text has no zero byte"));
    if name.contains(char::is_control) {
        refusal::invalid_node(LONGEST_NODE);
    }
    name
}

fn number(uuid: pgrx::Uuid) -> registry::Uuid {
    u128::from_be_bytes(*uuid.as_bytes())
}

/// As SQL has it.
fn uuid(number: registry::Uuid) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(number.to_be_bytes())
}

fn finite(until: pg_sys::TimestampTz) -> i64 {
    if until == i64::MIN || until == i64::MAX {
        refusal::infinite_end();
    }
    unix_us_of(until)
}

fn length_us(length: Interval) -> i64 {
    let length_us = i64::try_from(length.as_micros());
    length_us
        .ok()
        .filter(|us| (SHORTEST_LEASE_US..=LONGEST_LEASE_US).contains(us))
        .unwrap_or_else(|| refusal::length_out_of_range())
}

/// Which registry this is.
struct Identity {
    /// Made with the registry, and dumped and restored with its rows.
    id: pgrx::Uuid,
    /// The system identifier of this server.
    server: String,
    /// New spans do not begin before this instant.
    quiet_until_us: i64,
    /// The longest lease that a server has requested, in microseconds.
    longest_us: i64,
    /// Where the client of this session is; empty for a Unix-domain socket.
    client_address: String,
}

/// The columns of a row, in the order of [`lease()`] and [`write()`].
const COLUMNS: &str = "shard_id, node, incarnation, serial, nonce, starts, ends, released, barred, renewed_at, former_end, \
                       kept_until, known_serial, address, started_at, copy_address, copy_started_at, copy_seen_at";

/// Locks the table of the leases.
///
/// Only a superuser, or the owner of the functions, may own its schema: another owner could put a table with triggers in its place,
/// which would run as that superuser.
fn lock(mode: &str) {
    let sql = "SELECT r.rolname::text
               FROM (
                   SELECT nspowner FROM pg_namespace WHERE nspname = 'snowflake_registry'
                   UNION
                   SELECT c.relowner FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                   WHERE n.nspname = 'snowflake_registry'
               ) AS owner (oid)
               JOIN pg_roles AS r USING (oid)
               WHERE NOT r.rolsuper AND r.rolname <> current_user";
    if let Some(owner) = rows_kept(sql, &[], |row| row.get::<String>(1)).pop() {
        refusal::ordinary_owner(&owner);
    }
    execute_kept(&format!("LOCK TABLE snowflake_registry.shards IN {mode} MODE"), &[]);
}

/// The identity of the registry, made by the first call.
///
/// If a call finds other storage, another timeline or another start of the server than the last one did, or a server has seen a serial
/// that is lost, the registry may be a copy that was restored or failed over to, and may have forgotten what it granted last. By the end
/// of the quiet time, such leases have ended.
fn identity(length_us: i64, has_lost_rows: bool) -> Identity {
    // SAFETY: these only read the server's state; it is not in recovery.
    let (server, timeline, started_at) = unsafe {
        (
            pg_sys::GetSystemIdentifier().to_string(),
            pg_sys::GetWALInsertionTimeLine().to_string(),
            Instant(unix_us_of(pg_sys::PgStartTime)),
        )
    };
    let length = Interval::new(0, 0, length_us).expect("one unit has one sign");
    let arguments: [DatumWithOid; 4] =
        [text(&server), text(&timeline), started_at.into(), length.into()];
    let storage = "pg_relation_filepath('snowflake_registry.shards')";
    let is_another = format!("(server, timeline, storage, started_at) <> ($1, $2, {storage}, $3)");
    let found = format!(
        "SELECT id, quiet_until, (extract(epoch FROM longest_lease) * 1000000)::bigint,
             coalesce(host(inet_client_addr()), ''), {is_another} OR longest_lease < $4
         FROM snowflake_registry.identity"
    );
    let read = || {
        rows_kept(&found, &arguments, |row| {
            let (id, Instant(quiet_until_us)) = (row.get(1), row.get(2));
            let (longest_us, client_address) = (row.get(3), row.get(4));
            let server = server.clone();
            let identity = Identity { id, server, quiet_until_us, longest_us, client_address };
            (identity, row.get::<bool>(5))
        })
        .pop()
    };
    if let Some((identity, false)) = read()
        && !has_lost_rows
    {
        return identity;
    }
    execute(
        &format!(
            "INSERT INTO snowflake_registry.identity
                 (id, server, timeline, storage, started_at, quiet_until, longest_lease)
             SELECT gen_random_uuid(), $1, $2, {storage}, $3, '-infinity', $4
             ON CONFLICT DO NOTHING"
        ),
        &arguments,
    );
    execute(
        &format!(
            "UPDATE snowflake_registry.identity
             SET server = $1, timeline = $2, storage = {storage}, started_at = $3,
                 longest_lease = greatest(longest_lease, $4),
                 quiet_until = CASE WHEN {is_another}
                     THEN clock_timestamp() + greatest(longest_lease, $4) + interval '1 s'
                     ELSE quiet_until END
             WHERE {is_another} OR longest_lease < $4"
        ),
        &arguments,
    );
    let (mut identity, _) = read().expect("inserted above");
    if has_lost_rows {
        let until_us = registry::quiet_until_us(now_us(), identity.longest_us);
        identity.quiet_until_us = identity.quiet_until_us.max(until_us);
        execute(
            "UPDATE snowflake_registry.identity SET quiet_until = greatest(quiet_until, $1)",
            &[Instant(identity.quiet_until_us).into()],
        );
        refusal::rolled_back(identity.quiet_until_us);
    }
    identity
}

/// The highest serial that a server has seen and the registry has lost. `explained` is the last one of its node that has begun a quiet
/// time. Read without a lock: serials only increase, and a server has seen only those that were committed.
fn lost_serial(seen: &BTreeMap<i32, i64>, explained: i64) -> Option<i64> {
    // A serial of days ahead is not one that this registry has granted.
    let latest = now_us() + 86_400_000_000;
    let seen = seen.iter().filter(|&(_, &serial)| serial <= latest);
    let shards: Vec<i32> = seen.clone().map(|(&shard, _)| shard).collect();
    let sql = "SELECT shard_id, serial FROM snowflake_registry.shards WHERE shard_id = ANY ($1)";
    let found = rows_kept(sql, &[shards.into()], |row| (row.get::<i32>(1), row.get::<i64>(2)));
    let found: BTreeMap<i32, i64> = found.into_iter().collect();
    let is_lost = |&(shard, &serial): &(&i32, &i64)| {
        registry::is_lost(found.get(shard).copied(), serial, explained)
    };
    seen.filter(is_lost).map(|(_, &serial)| serial).max()
}

/// The same news from the same node do not begin another quiet time.
fn note_lost(node: &str, serial: i64) {
    let sql = "UPDATE snowflake_registry.nodes SET lost_serial = $2 WHERE node = $1";
    execute(sql, &[text(node), serial.into()]);
}

/// Binds a node to this role, the first that claims a lease as it.
fn bind(node: &str) {
    let insert = "INSERT INTO snowflake_registry.nodes AS n (node, role) VALUES ($1, session_user)
         ON CONFLICT (node) DO UPDATE SET role = session_user WHERE n.role IS NULL";
    execute(insert, &[text(node)]);
    // Another session may have been first.
    node_of_this_role(node);
}

/// What the registry knows of a node.
#[derive(Default)]
struct Node {
    /// Whether it belongs to this role; if not, to none.
    is_bound: bool,
    /// The highest lost serial for which it has begun a quiet time; 0 if it has begun none.
    lost_serial: i64,
}

/// The node. Refuses one that belongs to another role.
fn node_of_this_role(node: &str) -> Node {
    let sql = "SELECT role::text, role = session_user, lost_serial FROM snowflake_registry.nodes WHERE node = $1";
    let read = |row: &Row| (row.nullable::<String>(1), row.nullable(2), row.get(3));
    match rows_kept(sql, &[text(node)], read).pop() {
        Some((Some(role), Some(false), _)) => refusal::node_of_another_role(node, &role),
        Some((role, _, lost_serial)) => Node { is_bound: role.is_some(), lost_serial },
        None => Node::default(),
    }
}

/// Refuses leases of nodes that belong to another role.
fn check_roles<'a>(leases: impl Iterator<Item = &'a Lease>) {
    let nodes: BTreeSet<&str> = leases.map(|lease| lease.node.as_str()).collect();
    for node in nodes {
        node_of_this_role(node);
    }
}

/// The shard for a node that asks for any: one of the default layout, since the registry knows no other. The table is locked against
/// all that change rows.
fn assigned_shard(node: &str) -> Option<i32> {
    let sql = "SELECT shard_id, node, ends <= clock_timestamp() FROM snowflake_registry.shards";
    let nodes = rows(sql, &[], |row| (row.get::<i32>(1), row.get::<String>(2), row.get::<bool>(3)));
    let nodes = nodes.iter().map(|(shard, node, has_ended)| (*shard, node.as_str(), *has_ended));
    registry::assign(nodes, node, DEFAULT.shards() as i32)
}

/// Locks the rows of `shards`, and reads the existing ones. Rows of `may_be_new` are created if they did not exist, so that there
/// is something to lock; the caller must write them.
fn lock_rows(shards: &[i32], may_be_new: &[i32]) -> BTreeMap<i32, Lease> {
    let insert = "INSERT INTO snowflake_registry.shards
             (shard_id, node, serial, starts, ends, released, renewed_at, former_end, kept_until)
         SELECT shard, '', 0, '-infinity', '-infinity', true, '-infinity', '-infinity', '-infinity'
         FROM unnest($1) AS shard ORDER BY shard
         ON CONFLICT DO NOTHING
         RETURNING shard_id";
    let made: Vec<i32> = if may_be_new.is_empty() {
        Vec::new()
    } else {
        rows(insert, &[may_be_new.into()], |row| row.get(1))
    };
    let select = format!(
        "SELECT {COLUMNS} FROM snowflake_registry.shards WHERE shard_id = ANY ($1) ORDER BY shard_id FOR UPDATE"
    );
    let mut found: BTreeMap<i32, Lease> =
        rows_kept(&select, &[shards.into()], |row| (row.get(1), lease(row))).into_iter().collect();
    for shard in &made {
        found.remove(shard);
    }
    found
}

/// Writes rows that are locked.
fn write(leases: &[(i32, Lease)]) {
    let sql = format!(
        "UPDATE snowflake_registry.shards AS l
         SET node = w.node, incarnation = w.incarnation, serial = w.serial, nonce = w.nonce, starts = w.starts,
             ends = w.ends, released = w.released, barred = w.barred, renewed_at = w.renewed_at,
             former_end = w.former_end, kept_until = w.kept_until, known_serial = w.known_serial,
             address = w.address, started_at = w.started_at, copy_address = w.copy_address,
             copy_started_at = w.copy_started_at, copy_seen_at = w.copy_seen_at
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18) AS w ({COLUMNS})
         WHERE l.shard_id = w.shard_id"
    );
    let shards: Vec<i32> = leases.iter().map(|&(shard, _)| shard).collect();
    let arguments = [
        shards.into(),
        column(leases, |lease| Text(lease.node.clone())),
        column(leases, |lease| lease.incarnation.map(uuid)),
        column(leases, |lease| lease.serial),
        column(leases, |lease| lease.nonce.map(uuid)),
        column(leases, |lease| Instant(lease.span.starts_us)),
        column(leases, |lease| Instant(lease.span.ends_us)),
        column(leases, |lease| lease.is_released),
        column(leases, |lease| lease.barred.map(uuid)),
        column(leases, |lease| Instant(lease.renewed_at_us)),
        column(leases, |lease| Instant(lease.former_end_us)),
        column(leases, |lease| Instant(lease.kept_until_us)),
        column(leases, |lease| lease.known_serial),
        column(leases, |lease| Text(lease.origin.address.clone())),
        column(leases, |lease| lease.origin.started_at_us.map(Instant)),
        column(leases, |lease| lease.copy.as_ref().map(|(of, _)| Text(of.address.clone()))),
        column(leases, |lease| {
            lease.copy.as_ref().and_then(|(of, _)| of.started_at_us.map(Instant))
        }),
        column(leases, |lease| lease.copy.as_ref().map(|&(_, seen_at_us)| Instant(seen_at_us))),
    ];
    execute_kept(&sql, &arguments);
}

/// A column of rows as an array.
fn column<T: IntoDatum>(
    leases: &[(i32, Lease)],
    value: impl Fn(&Lease) -> T,
) -> DatumWithOid<'static> {
    leases.iter().map(|(_, lease)| value(lease)).collect::<Vec<T>>().into()
}

fn lease(row: &Row) -> Lease {
    let instant = |column| row.nullable(column).map(|Instant(unix_us)| unix_us);
    let required = |column| instant(column).expect("not null");
    let origin = |address, started_at| {
        Some(Origin { address: row.nullable(address)?, started_at_us: instant(started_at) })
    };
    Lease {
        node: row.get(2),
        incarnation: row.nullable(3).map(number),
        serial: row.get(4),
        nonce: row.nullable(5).map(number),
        span: Span { starts_us: required(6), ends_us: required(7) },
        is_released: row.get(8),
        barred: row.nullable(9).map(number),
        renewed_at_us: required(10),
        former_end_us: required(11),
        kept_until_us: required(12),
        known_serial: row.nullable(13),
        origin: origin(14, 15).unwrap_or_default(),
        copy: origin(16, 17).zip(instant(18)),
    }
}
