//! `snowflake_find_layout`: the layout of another generator's IDs, found from the times of their rows.

use crate::postgres::encoding::from_server;
use crate::postgres::memory;
use crate::postgres::query::rows_of_snapshot;
use crate::postgres::report::{Raise, duration, no_such_table, quoted, relation_name, type_name};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{Instant, now_us, unix_us_of};
use crate::postgres::user_table::UserTable;
use pg_snowflake_ids::Unit;
use pg_snowflake_ids::find::{self, Division, Found, MIN_SAMPLES, NotFound, Sample};
use pg_snowflake_policies::messages::arguments as messages;
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};
use std::ffi::CStr;

/// The newest rows that are read. A counter that begins again among them shows its width: most have fewer values.
const NEWEST: usize = 200_000;

/// The oldest rows that are read, which are far in time from the newest.
const OLDEST: usize = 1_000;

/// Rows of a later time than this after now do not show when their IDs were generated.
const DAY_US: i64 = 86_400_000_000;

/// The most elements of an array in the result.
const SHOWN: usize = 100;

/// The most shards of a layout that a doubt names.
const SHOWN_OF_A_CANDIDATE: usize = 5;

/// `snowflake_find_layout(table_name regclass, id_column name, created_at_column name) → record`
///
/// The SQL declaration sets `search_path` and `row_security`, so that every name here is core's or qualified, and no row is hidden.
#[pg_extern(sql = false)]
fn snowflake_find_layout(table_name: pg_sys::Oid, id_column: &CStr, created_at_column: &CStr) -> NullableResultRow<7> {
    let source = Source::open(table_name);
    let [id, created_at] = [id_column, created_at_column].map(|name| source.column(name));
    source.check_privileges([&id, &created_at]);
    if !id.is_bigint() && !matches!(id.typid, pg_sys::INT2OID | pg_sys::INT4OID) {
        source.refuse_type(&id, "IDs", "smallint, integer, bigint or snowflake");
    }
    if !matches!(created_at.typid, pg_sys::TIMESTAMPTZOID | pg_sys::TIMESTAMPOID | pg_sys::DATEOID) {
        source.refuse_type(&created_at, "times", "timestamptz, timestamp or date");
    }
    let mut samples = source.samples(&id.name, &created_at.name);
    let found = find(&mut samples).unwrap_or_else(|reason| {
        let column = format!("column {} of table {}", quoted(&id.name), quoted(&source.name));
        not_found(reason, &column)
    });
    result(&samples, &found, |shard| {
        (id.typid == pg_sys::INT8OID && source.is_converted_by_itself(&id)).then(|| {
            format!(
                "SELECT snowflake_convert_column({}, {}, {shard}, {});",
                quote_literal(&source.name),
                quote_literal(&id.name),
                quote_literal(found.layout().to_string())
            )
        })
    })
}

/// `snowflake_find_layout(ids bigint[], created_at timestamptz[]) → record`
#[pg_extern(sql = false)]
fn snowflake_find_layout_of_ids(ids: pgrx::Array<i64>, created_at: pgrx::Array<pg_sys::TimestampTz>) -> NullableResultRow<7> {
    if ids.len() != created_at.len() {
        messages::different_lengths(ids.len(), created_at.len()).raise()
    }
    if ids.len() > NEWEST + OLDEST {
        messages::too_many_ids(ids.len(), NEWEST + OLDEST).raise()
    }
    let mut samples = Vec::new();
    memory::reserve(&mut samples, ids.len());
    let pairs = ids.iter().zip(created_at.iter());
    samples.extend(pairs.filter_map(|(id, at)| {
        let (id, unix_us) = (id?, unix_us_of(at?));
        // The lower end of i64 is an infinity.
        (unix_us > i64::MIN / 2).then_some(Sample { id, unix_us })
    }));
    let found = find(&mut samples).unwrap_or_else(|reason| not_found(reason, "the IDs"));
    result(&samples, &found, |_| None)
}

/// Finds the layout. A layout cannot begin in the future.
fn find(samples: &mut Vec<Sample>) -> Result<Found, NotFound> {
    let now_us = now_us();
    samples.retain(|sample| sample.unix_us <= now_us.saturating_add(DAY_US));
    memory::fallible(|| find::find(samples))
        .and_then(|found| if found.layout().epoch_ms > now_us / 1_000 { Err(NotFound::OtherLayout) } else { Ok(found) })
}

/// The table whose rows are read.
struct Source {
    relid: pg_sys::Oid,
    /// As `regclass` prints it.
    name: String,
    table: UserTable,
}

/// A column of the table.
struct Column {
    number: pg_sys::AttrNumber,
    name: String,
    typid: pg_sys::Oid,
}

impl Column {
    /// Whether it is a `bigint` or a `snowflake`, and not a domain. Only a superuser can make another type that is read as a `bigint`.
    fn is_bigint(&self) -> bool {
        // SAFETY: a type of the catalog.
        unsafe { call!(IsBinaryCoercible(self.typid, pg_sys::INT8OID)) && call!(get_typtype(self.typid)) as u8 == pg_sys::TYPTYPE_BASE }
    }
}

impl Source {
    /// Refuses what has no rows of its own on this server: a view calls functions as whoever queries it, and a foreign table is read with
    /// the passwords of its owner.
    fn open(relid: pg_sys::Oid) -> Self {
        // SAFETY: takes any OID.
        let kind = match unsafe { call!(get_rel_relkind(relid)) } as u8 {
            0 => no_such_table(relid),
            pg_sys::RELKIND_RELATION | pg_sys::RELKIND_PARTITIONED_TABLE | pg_sys::RELKIND_MATVIEW => {
                let table = UserTable::open(relid);
                let name = relation_name(relid);
                if let Some(&foreign) = table.foreign_tables().first() {
                    messages::no_rows_to_read("foreign table", quoted(&relation_name(foreign))).raise();
                }
                return Source { relid, name, table };
            }
            pg_sys::RELKIND_VIEW => "view",
            pg_sys::RELKIND_FOREIGN_TABLE => "foreign table",
            pg_sys::RELKIND_SEQUENCE => "sequence",
            _ => "relation",
        };
        messages::no_rows_to_read(kind, quoted(&relation_name(relid))).raise()
    }

    fn column(&self, column: &CStr) -> Column {
        let name = from_server(column);
        // SAFETY: the relation exists; a C string.
        let number = unsafe { call!(get_attnum(self.relid, column.as_ptr())) };
        if number == 0 {
            messages::no_such_column(quoted(&name), quoted(&self.name)).raise();
        }
        // SAFETY: the column exists.
        Column { number, name, typid: unsafe { call!(get_atttype(self.relid, number)) } }
    }

    /// Whether `snowflake_convert_column` takes the column: not of a materialized view, nor an inherited or a generated one.
    fn is_converted_by_itself(&self, column: &Column) -> bool {
        let sql = "SELECT relkind <> 'm' AND attinhcount = 0 AND attgenerated = ''
            FROM pg_class AS c JOIN pg_attribute ON attrelid = c.oid WHERE c.oid = $1 AND attnum = $2";
        let arguments = [self.relid.into(), column.number.into()];
        rows_of_snapshot(sql, &arguments, |row| row.get::<bool>(1)) == [true]
    }

    /// Refuses a column whose type is not core's: another role may have written its casts, which would run as the caller.
    #[track_caller]
    fn refuse_type(&self, Column { name, typid, .. }: &Column, what: &str, types: &str) -> ! {
        let (column, table) = (quoted(name), quoted(&self.name));
        messages::unsuitable_column(column, table, type_name(*typid), what, types).raise()
    }

    /// Refuses a caller who may not read the columns, or not every row.
    fn check_privileges(&self, columns: [&Column; 2]) {
        let sql = "SELECT has_schema_privilege(relnamespace, 'USAGE') AND has_column_privilege(oid, $2, 'SELECT')
                AND has_column_privilege(oid, $3, 'SELECT')
            FROM pg_class WHERE oid = $1";
        let [id, created_at] = columns.map(|column| column.number.into());
        let may_read = rows_of_snapshot(sql, &[self.relid.into(), id, created_at], |row| row.get::<bool>(1));
        if may_read != [true] {
            messages::table_permission_denied(quoted(&self.name)).raise();
        }
        // SAFETY: takes the OID of a relation. Raises core's error, because the SQL declaration sets row_security.
        unsafe { call!(check_enable_rls(self.relid, pg_sys::InvalidOid, false)) };
    }

    /// The newest rows and the oldest, by ID. Those of a small table are there twice.
    fn samples(&self, id: &str, created_at: &str) -> Vec<Sample> {
        let (id, at) = (quote_identifier(id), quote_identifier(created_at));
        let mut samples = Vec::new();
        for (order, limit) in [("DESC", NEWEST), ("ASC", OLDEST)] {
            let columns = format!("{id}::int8, {at}::timestamptz");
            let rest = format!("WHERE {id}::int8 > 0 AND isfinite({at}::timestamptz) ORDER BY {id} {order} LIMIT {limit}");
            let read = self.table.select_of_snapshot(&columns, &rest, |row| {
                let Instant(unix_us) = row.get(2);
                Sample { id: row.get(1), unix_us }
            });
            memory::reserve(&mut samples, read.len());
            samples.extend(read);
        }
        samples
    }
}

/// The result row. If the layout is sure, it has the conversion for the shard of the newest ID.
fn result(samples: &[Sample], found: &Found, conversion: impl FnOnce(u32) -> Option<String>) -> NullableResultRow<7> {
    let newest = samples.iter().rev().find(|sample| found.time.fits(sample));
    let misfits = || samples.iter().rev().filter(|sample| !found.time.fits(sample));
    let fitting = samples.len() - misfits().count();
    let conversion = newest.filter(|_| found.is_sure()).and_then(|newest| conversion(found.layout().split(newest.id).shard));
    let shown_misfits: Vec<i64> = misfits().take(SHOWN).map(|sample| sample.id).collect();
    let shards: Vec<i32> = found.divisions[0].shards.iter().take(SHOWN).map(|&shard| shard as i32).collect();
    NullableResultRow([
        Some((found.layout().pack() as i64).into()),
        (samples.len() as i32).into_datum(),
        (fitting as i32).into_datum(),
        shards.into_datum(),
        doubts(found).into_datum(),
        shown_misfits.into_datum(),
        conversion.into_datum(),
    ])
}

/// Why the layout may be another one; `None` if there is no such reason.
fn doubts(found: &Found) -> Option<String> {
    let mut doubts = Vec::new();
    if !found.time.other_ticks_us.is_empty() || !found.time.is_unit_certain {
        let ticks: Vec<String> = found.time.other_ticks_us.iter().map(|&us| tick_text(us)).collect();
        let ticks = if ticks.is_empty() { "longer or shorter".to_owned() } else { ticks.join(" or ") };
        doubts.push(format!(
            "A tick may also last {ticks}: the generator has such ticks, or the times are too close together, too inexact, or too regular."
        ));
        if found.time.other_ticks_us.iter().any(|&us| Unit::ALL.iter().all(|(unit, _)| unit.us() != us)) {
            doubts.push("If it does, no layout fits: see docs/import.md.".to_owned());
        }
    }
    if !found.is_division_certain {
        let candidates = found.divisions.iter().map(|Division { layout, shards, .. }| {
            let rate = layout.seqs() * 1_000_000 / layout.tick_us();
            let numbers: Vec<String> = shards.iter().take(SHOWN_OF_A_CANDIDATE).map(u32::to_string).collect();
            let more = if shards.len() > SHOWN_OF_A_CANDIDATE { ", …" } else { "" };
            let noun = if shards.len() == 1 { "shard" } else { "shards" };
            format!("{layout} ({noun} {}{more}; {rate} IDs per second)", numbers.join(", "))
        });
        doubts.push(format!(
            "The rows do not prove where the counter ends and the shard begins. The layout may be {}.",
            candidates.collect::<Vec<_>>().join(", or ")
        ));
    }
    if found.counts_on {
        doubts.push(
            "The shard number changes almost only where the counter restarts, so some of its bits may belong to the counter.".to_owned(),
        );
    }
    if !found.fits_most_of_the_time {
        doubts.push("Most IDs do not fit the layout in more than a tenth of the time between the first ID and the last.".to_owned());
    }
    if found.layout().shard_bits == 0 {
        doubts.push("The layout has no shard: only one server may generate its IDs.".to_owned());
    }
    if found.time.spread_us > 1_000_000 {
        doubts.push(format!("The epoch is accurate to about {}, like the times of the rows.", duration(found.time.spread_us)));
    }
    (!doubts.is_empty()).then(|| doubts.join(" "))
}

/// The length of a tick, as the units of layouts are written.
fn tick_text(us: i64) -> String {
    match us {
        _ if us % 1_000_000 == 0 => format!("{}s", us / 1_000_000),
        _ if us % 1_000 == 0 => format!("{}ms", us / 1_000),
        _ => format!("{us}us"),
    }
}

/// No layout was found.
#[track_caller]
fn not_found(reason: NotFound, ids: &str) -> ! {
    let why = match reason {
        NotFound::TooFew => messages::too_few_ids(MIN_SAMPLES),
        NotFound::SameTime => messages::same_time(),
        NotFound::NoTime => messages::not_rising(),
        NotFound::OtherLayout => messages::other_ticks(),
        NotFound::Serial => messages::consecutive(),
        NotFound::OutOfMemory => memory::out_of_memory(0),
    };
    messages::no_layout_found(ids, why).raise()
}
