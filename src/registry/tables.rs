//! The tables of the registry: the row of the registry itself, those of nodes, and those of shards.

use super::arguments::number;
use crate::postgres::encoding::Text;
use crate::postgres::query::{Row, execute, execute_kept, rows, rows_kept, text};
use crate::postgres::report::{Raise, quoted};
use crate::postgres::timestamp::{Instant, now_us, printed, unix_us_of};
use pg_snowflake_ids::presets::DEFAULT;
use pg_snowflake_policies::lease::Span;
use pg_snowflake_policies::messages::registry as messages;
use pg_snowflake_policies::registry::{self, Lease, Origin};
use pgrx::datum::{DatumWithOid, Interval};
use pgrx::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Which registry this is.
pub struct Identity {
    /// Made with the registry, and dumped and restored with its rows.
    pub id: pgrx::Uuid,
    /// The system identifier of this server.
    pub server: String,
    /// New spans do not begin before this instant.
    pub quiet_until_us: i64,
    /// The longest lease that a server has requested, in microseconds.
    pub longest_us: i64,
    /// Where the client of this session is; empty for a Unix-domain socket.
    pub client_address: String,
}

/// The columns of a row, in the order of [`lease()`] and [`write()`].
const COLUMNS: &str = "shard_id, node, incarnation, serial, nonce, starts, ends, released, barred, renewed_at, former_end, \
                       kept_until, known_serial, address, started_at, copy_address, copy_started_at, copy_seen_at";

/// Locks the table of the leases.
///
/// Only a superuser, or the owner of the functions, may own its schema: another owner could put a table with triggers in its place,
/// which would run as that superuser.
pub fn lock(mode: &str) {
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
        messages::ordinary_owner(quoted(&owner)).raise();
    }
    execute_kept(&format!("LOCK TABLE snowflake_registry.shards IN {mode} MODE"), &[]);
}

/// The identity of the registry, made by the first call.
///
/// If a call finds other storage, another timeline or another start of the server than the last one did, or a server has seen a serial
/// that is lost, the registry may be a copy that was restored or failed over to, and may have forgotten what it granted last. By the end
/// of the quiet time, such leases have ended.
pub fn identity(length_us: i64, has_lost_rows: bool) -> Identity {
    // SAFETY: these only read the server's state; it is not in recovery.
    let (server, timeline, started_at) = unsafe {
        (call!(GetSystemIdentifier()).to_string(), call!(GetWALInsertionTimeLine()).to_string(), Instant(unix_us_of(pg_sys::PgStartTime)))
    };
    let length = Interval::new(0, 0, length_us).expect("one unit has one sign");
    let arguments: [DatumWithOid; 4] = [text(&server), text(&timeline), started_at.into(), length.into()];
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
        messages::rolled_back(printed(identity.quiet_until_us)).log(PgLogLevel::LOG);
    }
    identity
}

/// The highest serial that a server has seen and the registry has lost. `explained` is the last one of its node that has begun a quiet
/// time. Read without a lock: serials only increase, and a server has seen only those that were committed.
pub fn lost_serial(seen: &BTreeMap<i32, i64>, explained: i64) -> Option<i64> {
    // A serial of days ahead is not one that this registry has granted.
    let latest = now_us() + 86_400_000_000;
    let seen = seen.iter().filter(|&(_, &serial)| serial <= latest);
    let shards: Vec<i32> = seen.clone().map(|(&shard, _)| shard).collect();
    let sql = "SELECT shard_id, serial FROM snowflake_registry.shards WHERE shard_id = ANY ($1)";
    let found = rows_kept(sql, &[shards.into()], |row| (row.get::<i32>(1), row.get::<i64>(2)));
    let found: BTreeMap<i32, i64> = found.into_iter().collect();
    let is_lost = |&(shard, &serial): &(&i32, &i64)| registry::is_lost(found.get(shard).copied(), serial, explained);
    seen.filter(is_lost).map(|(_, &serial)| serial).max()
}

/// The same news from the same node do not begin another quiet time.
pub fn note_lost(node: &str, serial: i64) {
    let sql = "UPDATE snowflake_registry.nodes SET lost_serial = $2 WHERE node = $1";
    execute(sql, &[text(node), serial.into()]);
}

/// Binds a node to this role, the first that claims a lease as it.
pub fn bind(node: &str) {
    let insert = "INSERT INTO snowflake_registry.nodes AS n (node, role) VALUES ($1, session_user)
         ON CONFLICT (node) DO UPDATE SET role = session_user WHERE n.role IS NULL";
    execute(insert, &[text(node)]);
    // Another session may have been first.
    node_of_this_role(node);
}

/// What the registry knows of a node.
#[derive(Default)]
pub struct Node {
    /// Whether it belongs to this role; if not, to none.
    pub is_bound: bool,
    /// The highest lost serial for which it has begun a quiet time; 0 if it has begun none.
    pub lost_serial: i64,
}

/// The node. Refuses one that belongs to another role.
pub fn node_of_this_role(node: &str) -> Node {
    let sql = "SELECT role::text, role = session_user, lost_serial FROM snowflake_registry.nodes WHERE node = $1";
    let read = |row: &Row| (row.nullable::<String>(1), row.nullable(2), row.get(3));
    match rows_kept(sql, &[text(node)], read).pop() {
        Some((Some(role), Some(false), _)) => messages::node_of_another_role(quoted(node), quoted(&role)).raise(),
        Some((role, _, lost_serial)) => Node { is_bound: role.is_some(), lost_serial },
        None => Node::default(),
    }
}

/// Refuses leases of nodes that belong to another role.
pub fn check_roles<'a>(leases: impl Iterator<Item = &'a Lease>) {
    let nodes: BTreeSet<&str> = leases.map(|lease| lease.node.as_str()).collect();
    for node in nodes {
        node_of_this_role(node);
    }
}

/// The shard for a node that asks for any: one of the default layout, since the registry knows no other. The table is locked against
/// all that change rows.
pub fn assigned_shard(node: &str) -> Option<i32> {
    let sql = "SELECT shard_id, node, ends <= clock_timestamp() FROM snowflake_registry.shards";
    let nodes = rows(sql, &[], |row| (row.get::<i32>(1), row.get::<String>(2), row.get::<bool>(3)));
    let nodes = nodes.iter().map(|(shard, node, has_ended)| (*shard, node.as_str(), *has_ended));
    registry::assign(nodes, node, DEFAULT.shards() as i32)
}

/// Locks the rows of `shards`, and reads the existing ones. Rows of `may_be_new` are created if they did not exist, so that there
/// is something to lock; the caller must write them.
pub fn lock_rows(shards: &[i32], may_be_new: &[i32]) -> BTreeMap<i32, Lease> {
    let insert = "INSERT INTO snowflake_registry.shards
             (shard_id, node, serial, starts, ends, released, renewed_at, former_end, kept_until)
         SELECT shard, '', 0, '-infinity', '-infinity', true, '-infinity', '-infinity', '-infinity'
         FROM unnest($1) AS shard ORDER BY shard
         ON CONFLICT DO NOTHING
         RETURNING shard_id";
    let made: Vec<i32> = if may_be_new.is_empty() { Vec::new() } else { rows(insert, &[may_be_new.into()], |row| row.get(1)) };
    let select = format!("SELECT {COLUMNS} FROM snowflake_registry.shards WHERE shard_id = ANY ($1) ORDER BY shard_id FOR UPDATE");
    let mut found: BTreeMap<i32, Lease> = rows_kept(&select, &[shards.into()], |row| (row.get(1), lease(row))).into_iter().collect();
    for shard in &made {
        found.remove(shard);
    }
    found
}

/// As SQL has it.
fn uuid(number: registry::Uuid) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(number.to_be_bytes())
}

/// Writes rows that are locked.
pub fn write(leases: &[(i32, Lease)]) {
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
        column(leases, |lease| lease.copy.as_ref().map(|(origin, _)| Text(origin.address.clone()))),
        column(leases, |lease| lease.copy.as_ref().and_then(|(origin, _)| origin.started_at_us.map(Instant))),
        column(leases, |lease| lease.copy.as_ref().map(|&(_, seen_at_us)| Instant(seen_at_us))),
    ];
    execute_kept(&sql, &arguments);
}

/// A column of rows as an array.
fn column<T: IntoDatum>(leases: &[(i32, Lease)], value: impl Fn(&Lease) -> T) -> DatumWithOid<'static> {
    leases.iter().map(|(_, lease)| value(lease)).collect::<Vec<T>>().into()
}

fn lease(row: &Row) -> Lease {
    let instant = |column| row.nullable(column).map(|Instant(unix_us)| unix_us);
    let required = |column| instant(column).expect("not null");
    let origin = |address, started_at| Some(Origin { address: row.nullable(address)?, started_at_us: instant(started_at) });
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
