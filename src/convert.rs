//! `snowflake_convert_column`: converts a serial, identity or plain integer column to one that generates IDs,
//! with ordinary commands in the caller's transaction.
//!
//! It locks, reads the catalog, decides, and then changes. Every check comes before the first change, and an
//! error after that rolls back the whole statement.

mod column;
mod references;

use crate::authority::Asked;
use crate::distributed;
use crate::error::Error;
use crate::layout_type::SqlLayout;
use crate::newest_id::other_layout;
use crate::postgres::arguments;
use crate::postgres::encoding::from_server;
use crate::postgres::query::{execute, rows, text};
use crate::postgres::relation::as_owner;
use crate::postgres::report::{Raise, relation_name};
use crate::postgres::transaction::{check_read_committed, check_writable, naming_the_function};
use crate::sequence;
use crate::settings;
use column::Column;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::{Mismatch, Verdict, judge};
use pg_snowflake_policies::conversion::{self as plan, Facts, ShardCheck, Target};
use pg_snowflake_policies::messages::arguments::{clock_out_of_range, odd_id};
use pg_snowflake_policies::messages::convert as messages;
use pgrx::prelude::*;
use references::Extension;
use std::ffi::CStr;
use std::ops::RangeInclusive;

const FUNCTION: &str = "snowflake_convert_column";

/// `snowflake_convert_column(table_name regclass, column_name name, shard_id int, layout, check_shard boolean) → regclass`
///
/// Without a layout, that of the column's present default, else the default layout; if the existing values are not IDs of another.
///
/// The SQL declaration sets `search_path` and `row_security`, so that every name here is core's or qualified, and no row is hidden.
#[pg_extern(sql = false)]
pub fn snowflake_convert_column(
    table_name: Option<pg_sys::Oid>,
    column_name: Option<&CStr>,
    shard_id: Option<i32>,
    layout: Option<SqlLayout>,
    check_shard: Option<bool>,
) -> pg_sys::Oid {
    let table = required("table_name", table_name);
    let name = required("column_name", column_name);
    let passed_layout = layout.map(|SqlLayout(layout)| layout);
    let check_shard = required("check_shard", check_shard);
    check_writable(FUNCTION, "Only the primary generates IDs.");
    check_read_committed(FUNCTION, "A conversion must see every row that is committed before it locks the table.");

    let extension = Extension::read();
    let column = Column::open(table, &from_server(name), &extension);
    let layout = passed_layout.unwrap_or_else(|| column.layout_of_default().unwrap_or_default());
    let shard = Asked::shard(shard_id).class(layout).unwrap_or_else(|denied| Error::from(denied).raise(FUNCTION, pg_sys::InvalidOid)).first;
    if check_shard && layout.shards() == 1 {
        messages::no_shard_field(layout).raise();
    }
    // Each command would be propagated by itself, some refused, and the others would stay done.
    if distributed::is_managed_now(table) {
        column.refuse_distributed();
    }
    if distributed::is_shard(table) {
        messages::shard_of_distributed(relation_name(table)).raise();
    }
    let options = Options { shard, is_explicit: shard_id.is_some(), layout, is_layout_explicit: passed_layout.is_some(), check_shard };
    as_owner(column.owner(), || naming_the_function(|| convert(&column, &options, &extension)))
}

/// The arguments other than the column.
struct Options {
    shard: u32,
    /// Whether the caller passed the shard.
    is_explicit: bool,
    layout: Layout,
    /// Whether the caller passed the layout.
    is_layout_explicit: bool,
    check_shard: bool,
}

/// Plans and executes the conversion, as the owner of the table. Returns the sequence.
fn convert(column: &Column, options: &Options, extension: &Extension) -> pg_sys::Oid {
    let &Options { shard, is_explicit, layout, is_layout_explicit, check_shard } = options;
    let facts = column.facts(extension);
    let odd = check_layout(column, &facts, layout, is_layout_explicit);
    let ticks = ticks(column, &facts, layout, shard);
    if let Some(odd) = odd {
        odd_id(newest_value(column), odd, column.rows_of(odd.id)).log(PgLogLevel::WARNING);
    }
    check_constraints(column, layout, *ticks.start(), shard);
    let shard_check = check_shard.then(|| ShardCheck {
        name: column.free_constraint_name(),
        shard,
        highest_of_other_shards: column.highest_of_other_shards(layout, shard),
    });
    let first = layout.shift_tick(*ticks.start());
    let now_us = sequence::read_clock().reading_us;
    let highest_older = facts.highest_older_value(layout);
    let of_own_shard = highest_older.and_then(|_| column.recent_id_of_other_generator(layout, shard, now_us));
    let target = Target { shard: is_explicit.then_some(shard), layout, shard_check };
    for statement in plan::statements(&facts, &target, ticks) {
        execute(&statement, &[]);
    }
    column.narrow_columns.compile_again();
    if let Some(check) = &target.shard_check {
        column.drop_if_duplicate(&check.name);
    }
    if let Some(highest) = highest_older {
        plan::older_values(column.name(), highest, &facts, layout, first, now_us).log(PgLogLevel::NOTICE);
    }
    if let Some(id) = of_own_shard {
        messages::shard_of_other_generator(column.name(), shard, id).log(PgLogLevel::WARNING);
    }
    rows("SELECT $1::regclass::oid", &[text(&facts.sequence.name)], |row| row.get(1))[0]
}

#[track_caller]
fn required<T>(name: &str, argument: Option<T>) -> T {
    arguments::required(
        name,
        argument,
        "Only shard_id and layout can be null, which selects pg_snowflake.shard_id, and the layout of the present default or \"postgres\".",
    )
}

/// Refuses if the existing values are probably IDs of another layout, which the caller has not passed. Warns if the caller has passed
/// this one. Returns the highest value if only that is odd.
fn check_layout(column: &Column, facts: &Facts, layout: Layout, is_explicit: bool) -> Option<Mismatch> {
    let last = facts.next.map(|next| layout.tick_of(next.saturating_sub(1)));
    let generated_us = || last.map(|tick| layout.instant_of(tick));
    let now_us = sequence::read_clock().reading_us;
    let newest = |count, at_most| {
        Some(match count {
            1 => facts.highest.into_iter().collect(),
            _ => column.highest_values(count, at_most),
        })
    };
    match judge(&layout, now_us, generated_us, newest)? {
        Verdict::OtherLayout(mismatch) => {
            let hint = |likely: &str| messages::pass_layout(likely);
            other_layout(newest_value(column), &mismatch, is_explicit, "roll back, or convert the column again", hint)
                .log(PgLogLevel::WARNING);
            None
        }
        Verdict::OddId(mismatch) => Some(mismatch),
    }
}

/// From the first tick of the column's new IDs to the last tick that any sequence of the layout can have
/// reached. The first is above every existing value, and no further ahead of the clock than a call may be.
fn ticks(column: &Column, facts: &Facts, layout: Layout, shard: u32) -> RangeInclusive<i64> {
    let now_tick = layout.tick_at(sequence::read_clock().reading_us);
    if !(0..=layout.max_tick()).contains(&now_tick) {
        clock_out_of_range(layout).raise();
    }
    let ahead = |lead_us: i64| layout.max_tick().min(now_tick + layout.ticks_in(lead_us));
    // The clock reaches the next tick by itself, however long a tick is.
    let last_tick = ahead(settings::policy().max_lead_us.max(layout.tick_us()));
    let first_tick = plan::first_tick(facts.highest, layout, last_tick).unwrap_or_else(|highest| {
        let next = layout.id(layout.at_tick(0, now_tick), shard);
        let second = column.highest_values(2, i64::MAX).get(1).copied();
        let name = column.name();
        match plan::first_tick(second, layout, last_tick) {
            Ok(_) => messages::value_too_high(name, highest, layout, next, column.rows_of(highest)),
            Err(_) => messages::values_too_high(name, highest, layout, next),
        }
        .raise()
    });
    let after_older = |_| plan::first_tick_after_older_values(first_tick, layout, now_tick);
    let first_tick = facts.highest_older_value(layout).map_or(first_tick, after_older);
    first_tick..=ahead(settings::MAX_LEAD_US)
}

/// Refuses if a constraint on the column, or on its type, would reject the new IDs.
fn check_constraints(column: &Column, layout: Layout, first_tick: i64, shard: u32) {
    let tick = layout.tick_at(sequence::read_clock().reading_us).max(first_tick);
    column.check_constraints(layout.id(layout.at_tick(1, tick), shard));
}

/// The column's highest value, in messages.
fn newest_value(column: &Column) -> String {
    format!("newest value of {}", column.name())
}
