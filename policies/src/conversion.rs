//! The plan of the conversion of a column: the statements that it executes, decided from facts.

use crate::messages::{Report, convert as messages};
use pg_snowflake_ids::generators::candidates;
use pg_snowflake_ids::likely::Reading;
use pg_snowflake_ids::{Layout, instant, presets::DEFAULT};
use std::ops::RangeInclusive;

/// What the catalog and the table contain.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The extension's schema. All names are quoted; those of relations include the schema.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// The tables whose column is an identity column: this one, or its partitions.
    pub identities: Vec<String>,
    /// The columns that must become bigint: the converted one and the columns that reference it.
    pub narrow_tables: Vec<NarrowTable>,
    /// The sequence that will generate the IDs.
    pub sequence: Sequence,
    /// The column's other sequences.
    pub other_sequences: Vec<String>,
    /// The next value of the column's current sequence.
    pub next: Option<i64>,
    /// The START value of that sequence.
    pub start: Option<i64>,
    /// The layout of the IDs that the column's default generates, if it generates any, and all of one layout.
    pub default_layout: Option<Layout>,
    /// The highest value in the column.
    pub highest: Option<i64>,
}

impl Facts {
    /// The START value of the sequence, if it is the boundary below its IDs of this layout: the default generates them, or, if a tool has
    /// replaced or dropped it, the sequence has generated the highest value.
    fn boundary(&self, layout: Layout) -> Option<i64> {
        let start = self.start.filter(|&start| first_id(start, layout).is_some())?;
        let has_generated = |next, highest: i64| (layout.tick_of(start)..=layout.tick_of(next)).contains(&(highest >> layout.low_bits()));
        let is_of_layout = match self.default_layout {
            Some(of_default) => of_default == layout,
            None => self.next.zip(self.highest).is_some_and(|(next, highest)| has_generated(next, highest)),
        };
        is_of_layout.then_some(start)
    }

    /// The highest value, if the sequence has not generated it in this layout, and its boundary must be above.
    pub fn highest_older_value(&self, layout: Layout) -> Option<i64> {
        let first = self.boundary(layout).and_then(|start| first_id(start, layout));
        let is_older = |highest| first.map_or(self.default_layout != Some(layout), |first| highest < first);
        self.highest.filter(|&highest| is_older(highest))
    }
}

/// A table with columns that are too narrow for an ID.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NarrowTable {
    /// The table.
    pub table: String,
    /// The columns.
    pub columns: Vec<String>,
}

/// A column's sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// Its name.
    pub name: String,
    /// The privileges to grant, which are added to those of an existing one.
    pub grants: Vec<Grant>,
    /// How it is created; `None` for the column's current sequence.
    pub new: Option<NewSequence>,
}

/// A sequence to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSequence {
    /// Its CACHE.
    pub cache: i64,
    /// Whether it belongs to an unlogged table.
    pub is_unlogged: bool,
    /// The comment on the sequence that it replaces.
    pub comment: Option<String>,
}

/// A privilege on a sequence, and the role that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The privilege.
    pub privilege: String,
    /// The role, or PUBLIC.
    pub role: String,
    /// Whether the role may grant it to others.
    pub is_grantable: bool,
}

/// The IDs that the column will have.
#[derive(Clone, Debug)]
pub struct Target {
    /// The shard, if the default is to name one.
    pub shard: Option<u32>,
    /// The layout of the IDs.
    pub layout: Layout,
    /// The constraint that rejects rows of other shards.
    pub shard_check: Option<ShardCheck>,
}

/// A constraint that rejects rows of other shards.
#[derive(Clone, Debug)]
pub struct ShardCheck {
    /// Its name.
    pub name: String,
    /// The shard that it accepts.
    pub shard: u32,
    /// The highest value of another shard, if there is one. The constraint accepts it and all values up to the end of its tick.
    pub highest_of_other_shards: Option<i64>,
}

/// The first tick whose IDs are above every value; the highest value as an error, if that tick is after `last_tick`.
///
/// New IDs start in a tick without existing values: within one tick, an ID of a lower shard is below one of a higher shard.
pub fn first_tick(highest: Option<i64>, layout: Layout, last_tick: i64) -> Result<i64, i64> {
    let Some(highest) = highest else { return Ok(0) };
    let tick = tick_after(highest, layout);
    if tick > last_tick { Err(highest) } else { Ok(tick) }
}

/// How long before the conversion the IDs begin that the sequence can generate. Rows that another generator inserts later have lower IDs,
/// as long as it lags behind the layout by more. A clock that was ahead by less during the conversion does not delay new IDs.
const HEAD_START_US: i64 = DAY_US;
const DAY_US: i64 = 86_400_000_000;

/// The first tick of the IDs of a column that has values of before: a day ago, or `first_tick` if that is later.
pub fn first_tick_after_older_values(first_tick: i64, layout: Layout, now_tick: i64) -> i64 {
    first_tick.max(now_tick - layout.ticks_in(HEAD_START_US))
}

/// The lowest ID that a sequence with this START value can generate; `None` if any ID of the layout can be of it.
pub fn first_id(start: i64, layout: Layout) -> Option<i64> {
    let tick = layout.tick_of(start);
    (1..=layout.max_tick()).contains(&tick).then(|| layout.shift_tick(tick))
}

/// The report of older values, of which `highest` is the highest: that the layout of the column applies to IDs from `first` on,
/// and how to continue in the layout of the older values, if they have one.
pub fn older_values(column: String, highest: i64, facts: &Facts, layout: Layout, first: i64, now_us: i64) -> Report {
    let reading = Reading::of(highest, "", layout, now_us);
    let what = match reading.doubt {
        None => messages::time_of_highest(layout, instant::text(&layout, reading.fields.tick)),
        Some(_) => messages::highest_is_not_an_id(layout),
    };
    // Layouts with the same low bits differ only in their epochs: a value of some months ago looks like a recent one of another layout.
    let is_fresh = |reading: &&Reading| reading.is_recent(now_us) && reading.unix_us >= now_us - DAY_US;
    let hint = if reading.is_recent(now_us) {
        String::new()
    } else if let Some(likely) = candidates(highest, now_us).first().filter(is_fresh) {
        messages::continue_in_likely_layout(likely.layout)
    } else {
        messages::continue_in_layout(first)
    };
    let former = facts.default_layout.zip(facts.start).and_then(|(former, start)| Some((former, first_id(start, former)?)));
    let boundary = former.map(|(former, first)| messages::former_boundary(first, former));
    messages::older_values(column, first, highest, what, hint).adding(&boundary.unwrap_or_default())
}

/// The tick after the value's.
fn tick_after(value: i64, layout: Layout) -> i64 {
    (value.max(-1) >> layout.low_bits()) + 1
}

/// The statements that convert the column, in order.
///
/// The START value of the sequence is the boundary between older values and new IDs: it is in a dump, and neither IDs nor RESTART change it.
///
/// The sequence starts at the first of `ticks`, so that new IDs are above existing ones by the counter, and not only while the clock does
/// not step back. A sequence that is already within `ticks` is not restarted. It may have been generating IDs, whatever the default says: a
/// function or a program may have called it, and IDs that are in no row may be stored elsewhere.
pub fn statements(facts: &Facts, target: &Target, ticks: RangeInclusive<i64>) -> Vec<String> {
    let Facts { table, column, sequence, .. } = facts;
    let alter = format!("ALTER TABLE {table} ALTER COLUMN {column}");
    let drop_identity = |table| format!("ALTER TABLE {table} ALTER COLUMN {column} DROP IDENTITY");
    let mut statements: Vec<String> = facts.identities.iter().map(drop_identity).collect();
    if !facts.narrow_tables.is_empty() {
        // The old default, whatever it is, need not be of the new type.
        statements.push(format!("{alter} DROP DEFAULT"));
        statements.extend(facts.narrow_tables.iter().map(NarrowTable::widen_statement));
    }
    // The second counter of the tick, because MINVALUE is 1, also in a layout without seq bits.
    let first = target.layout.at_tick(1, *ticks.start()).max(1);
    let last = target.layout.last_counter_in(*ticks.end());
    // A sequence at 0 could not get MINVALUE 1.
    let resume_at = facts.next.filter(|&next| next > 1 && (first..=last).contains(&next));
    let is_of_layout = facts.boundary(target.layout).is_some() || facts.default_layout == Some(target.layout);
    let start = match facts.start {
        _ if facts.highest_older_value(target.layout).is_some() => first,
        Some(start) if is_of_layout => start.clamp(1, resume_at.unwrap_or(first)),
        _ => 1,
    };
    statements.extend(sequence.statements(start, resume_at, first));
    // pg_get_serial_sequence() could return any of them.
    let release = |other| format!("ALTER SEQUENCE {other} OWNED BY NONE");
    statements.extend(facts.other_sequences.iter().map(release));
    statements.push(format!("ALTER SEQUENCE {} OWNED BY {table}.{column}", sequence.name));
    statements.push(format!("{alter} SET DEFAULT {}", default_expression(facts, target)));
    if let Some(shard_check) = &target.shard_check {
        let condition = shard_check.condition(facts, target.layout);
        statements.push(format!("ALTER TABLE {table} ADD CONSTRAINT {} CHECK ({condition})", shard_check.name));
    }
    statements
}

impl NarrowTable {
    /// Changes all columns of a table in one statement, because each statement rewrites the table.
    fn widen_statement(&self) -> String {
        let columns = self.columns.iter();
        let actions: Vec<String> = columns.map(|column| format!("ALTER COLUMN {column} TYPE pg_catalog.int8")).collect();
        format!("ALTER TABLE {} {}", self.table, actions.join(", "))
    }
}

impl Sequence {
    fn statements(&self, start: i64, resume_at: Option<i64>, first: i64) -> Vec<String> {
        let Sequence { name, grants, new } = self;
        let mut statements = match new {
            None => {
                let restart = if resume_at.is_some() { String::new() } else { format!(" RESTART WITH {first}") };
                vec![format!(
                    "ALTER SEQUENCE {name} AS pg_catalog.int8 INCREMENT BY 1 MINVALUE 1 NO MAXVALUE NO CYCLE START WITH {start}{restart}"
                )]
            }
            Some(NewSequence { cache, is_unlogged, comment }) => {
                let unlogged = if *is_unlogged { "UNLOGGED " } else { "" };
                let mut statements = vec![format!("CREATE {unlogged}SEQUENCE {name} START WITH {start} CACHE {cache}")];
                let describe = |comment: &String| format!("COMMENT ON SEQUENCE {name} IS {}", quote_literal(comment));
                statements.extend(comment.as_ref().map(describe));
                let next = resume_at.unwrap_or(first);
                if next > start {
                    statements.push(format!("ALTER SEQUENCE {name} RESTART WITH {next}"));
                }
                statements
            }
        };
        statements.extend(grants.iter().map(|Grant { privilege, role, is_grantable }| {
            let option = if *is_grantable { " WITH GRANT OPTION" } else { "" };
            format!("GRANT {privilege} ON SEQUENCE {name} TO {role}{option}")
        }));
        statements
    }
}

impl ShardCheck {
    fn condition(&self, facts: &Facts, layout: Layout) -> String {
        let Facts { schema, column, .. } = facts;
        // All arguments are passed, as in the default.
        let shard = format!("{schema}.snowflake_shard_id({column}::pg_catalog.int8, {})", layout_argument(schema, layout));
        let is_of_shard = format!("{shard} OPERATOR(pg_catalog.=) {}", self.shard);
        let Some(highest_of_other_shards) = self.highest_of_other_shards else { return is_of_shard };
        let first = layout.shift_tick(tick_after(highest_of_other_shards, layout));
        format!("{column}::pg_catalog.int8 OPERATOR(pg_catalog.<) {first}::pg_catalog.int8 OR {is_of_shard}")
    }
}

/// The default.
///
/// All arguments are passed, and none needs an implicit cast: otherwise a function in the extension's schema
/// that fits the call better could be called instead.
fn default_expression(facts: &Facts, target: &Target) -> String {
    let Facts { schema, sequence, .. } = facts;
    let sequence = format!("{}::pg_catalog.regclass", quote_literal(&sequence.name));
    let Target { shard, layout, .. } = target;
    let shard = match shard {
        Some(shard) => shard.to_string(),
        None if *layout == DEFAULT => return format!("{schema}.snowflake_nextval({sequence})"),
        None => format!("{schema}.snowflake_current_shard()"),
    };
    let layout = layout_argument(schema, *layout);
    format!("{schema}.snowflake_nextval({sequence}, {shard}, {layout})")
}

fn layout_argument(schema: &str, layout: Layout) -> String {
    format!("'{layout}'::{schema}.snowflake_layout")
}

/// Core's `quote_literal()`, which needs a server that this module's tests do not have. Correct for both values
/// of `standard_conforming_strings`.
fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

#[cfg(test)]
mod tests;
