//! `snowflake_find_layout`: the layout of another generator's IDs, found from the times of their rows.

use crate::postgres::encoding::from_server;
use crate::postgres::memory;
use crate::postgres::query::rows_of_snapshot;
use crate::postgres::report::{Report, duration, no_such_table, quoted, relation_name};
use crate::postgres::result_row::NullableResultRow;
use crate::postgres::timestamp::{Instant, now_us, unix_us_of};
use pg_snowflake_ids::find::{self, Found, MIN_SAMPLES, NotFound, Sample};
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

/// `snowflake_find_layout(table_name regclass, id_column name, created_at_column name) → record`
///
/// The SQL declaration sets `search_path` and `row_security`, so that every name here is core's or qualified, and no row is hidden.
#[pg_extern(sql = false)]
fn snowflake_find_layout(
    table_name: pg_sys::Oid,
    id_column: &CStr,
    created_at_column: &CStr,
) -> NullableResultRow<7> {
    // SAFETY: takes any OID.
    if unsafe { pg_sys::get_rel_relkind(table_name) } == 0 {
        no_such_table(table_name);
    }
    let (table, id) = (relation_name(table_name), from_server(id_column));
    let mut samples = samples_of_table(&table, &id, &from_server(created_at_column));
    let found = find(&mut samples).unwrap_or_else(|reason| {
        let column = format!("column {} of table {}", quoted(&id), quoted(&table));
        not_found(reason, format!("could not find the layout of {column}"))
    });
    // SAFETY: the column has been read.
    let id_type = unsafe {
        pg_sys::get_atttype(table_name, pg_sys::get_attnum(table_name, id_column.as_ptr()))
    };
    result(&samples, &found, |shard| {
        (id_type == pg_sys::INT8OID).then(|| {
            format!(
                "SELECT snowflake_convert_column({}, {}, {shard}, {});",
                quote_literal(&table),
                quote_literal(&id),
                quote_literal(found.layout.to_string())
            )
        })
    })
}

/// `snowflake_find_layout(ids bigint[], created_at timestamptz[]) → record`
#[pg_extern(sql = false)]
fn snowflake_find_layout_of_ids(
    ids: pgrx::Array<i64>,
    created_at: pgrx::Array<pg_sys::TimestampTz>,
) -> NullableResultRow<7> {
    if ids.len() != created_at.len() {
        Report {
            code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
            message: "arrays of IDs and times must have the same length".into(),
            detail: Some(format!("There are {} IDs and {} times.", ids.len(), created_at.len())),
            hint: None,
        }
        .raise()
    }
    if ids.len() > NEWEST + OLDEST {
        Report {
            code: PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED,
            message: "too many IDs to find their layout".into(),
            detail: Some(format!(
                "There are {} IDs, and the limit is {}.",
                ids.len(),
                NEWEST + OLDEST
            )),
            hint: Some("Pass the newest ones, or store them in a table.".into()),
        }
        .raise()
    }
    let mut samples = Vec::new();
    memory::reserve(&mut samples, ids.len());
    let pairs = ids.iter().zip(created_at.iter());
    samples.extend(pairs.filter_map(|(id, at)| {
        let (id, unix_us) = (id?, unix_us_of(at?));
        is_sample(id, unix_us).then_some(Sample { id, unix_us })
    }));
    let found = find(&mut samples)
        .unwrap_or_else(|reason| not_found(reason, "could not find the layout of the IDs".into()));
    result(&samples, &found, |_| None)
}

/// Finds the layout. A layout cannot begin in the future.
fn find(samples: &mut Vec<Sample>) -> Result<Found, NotFound> {
    let now_us = now_us();
    samples.retain(|sample| sample.unix_us <= now_us.saturating_add(DAY_US));
    memory::fallible(|| find::find(samples)).and_then(|found| {
        if found.layout.epoch_ms > now_us / 1_000 { Err(NotFound::NoTime) } else { Ok(found) }
    })
}

/// A row of a table by which a layout can be found.
fn is_sample(id: i64, unix_us: i64) -> bool {
    // The ends of i64 are the infinities.
    id > 0 && unix_us != i64::MAX && unix_us > i64::MIN / 2
}

/// The newest rows of the table and the oldest, by ID. Those of a small table are there twice.
fn samples_of_table(table: &str, id: &str, created_at: &str) -> Vec<Sample> {
    let (id, at) = (quote_identifier(id), quote_identifier(created_at));
    let mut samples = Vec::new();
    for (order, limit) in [("DESC", NEWEST), ("ASC", OLDEST)] {
        let sql = format!(
            "SELECT {id}::int8, {at}::timestamptz FROM {table}
             WHERE {id}::int8 > 0 AND isfinite({at}::timestamptz) ORDER BY {id} {order} LIMIT {limit}"
        );
        let read = rows_of_snapshot(&sql, &[], |row| {
            let Instant(unix_us) = row.get(2);
            Sample { id: row.get(1), unix_us }
        });
        memory::reserve(&mut samples, read.len());
        samples.extend(read);
    }
    samples
}

/// The result row. If the layout is sure, it has the conversion for the shard of the newest ID.
fn result(
    samples: &[Sample],
    found: &Found,
    conversion: impl FnOnce(u32) -> Option<String>,
) -> NullableResultRow<7> {
    let newest = samples.iter().rev().find(|sample| found.fits(sample));
    let misfits = || samples.iter().rev().filter(|sample| !found.fits(sample));
    let fitting = samples.len() - misfits().count();
    let is_sure = found.is_division_certain
        && !found.counts_into_shard
        && found.other_units.is_empty()
        && fitting * 10 >= samples.len() * 9;
    let conversion = newest
        .filter(|_| is_sure)
        .and_then(|newest| conversion(found.layout.split(newest.id).shard));
    let shown_misfits: Vec<i64> = misfits().take(SHOWN).map(|sample| sample.id).collect();
    let shards: Vec<i32> = found.shards.iter().take(SHOWN).map(|&shard| shard as i32).collect();
    NullableResultRow([
        Some((found.layout.pack() as i64).into()),
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
    if !found.other_units.is_empty() {
        let units: Vec<&str> = found.other_units.iter().map(|unit| unit.name()).collect();
        doubts.push(format!(
            "The unit may also be {}: the times are too close together, or too inexact.",
            units.join(" or ")
        ));
    }
    if !found.is_division_certain {
        doubts.push(
            "The rows do not show where the counter ends and the shard begins: the counter has not begun again, always does, or has no order."
                .to_owned(),
        );
    }
    if found.counts_into_shard {
        doubts.push(
            "The shard changes when the counter begins again: the counter has no modulo, or a larger one, and the bits of the shard are \
             not only its."
                .to_owned(),
        );
    }
    if found.spread_us > 1_000_000 {
        doubts.push(format!(
            "The epoch is exact to about {}, as the times of the rows are.",
            duration(found.spread_us)
        ));
    }
    (!doubts.is_empty()).then(|| doubts.join(" "))
}

/// No layout was found.
#[track_caller]
fn not_found(reason: NotFound, message: String) -> ! {
    let detail = match reason {
        NotFound::TooFew => {
            format!("There are fewer than {MIN_SAMPLES} different positive IDs with a finite time.")
        }
        NotFound::SameTime => "The rows have the same time.".into(),
        NotFound::NoTime => "The IDs do not rise with the times of their rows.".into(),
        NotFound::Serial => "The IDs are consecutive numbers, as of a sequence.".into(),
        NotFound::OutOfMemory => memory::out_of_memory(0),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        detail: Some(detail),
        hint: Some(
            "Compare IDs with the times at which they were generated, hours or days apart.".into(),
        ),
    }
    .raise()
}
