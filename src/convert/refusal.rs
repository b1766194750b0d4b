//! The errors of `snowflake_convert_column`.

use crate::citus;
use crate::postgres::report::{Report, relation_name};
use crate::postgres::user_table::hint_of_other_owner;
use crate::wrong_layout;
use pg_snowflake_ids::Layout;
use pg_snowflake_ids::likely::Mismatch;
use pgrx::prelude::*;
use pgrx::spi::quote_identifier;

/// Citus manages the table.
#[track_caller]
pub fn managed_by_citus(relid: pg_sys::Oid, column: &str, kind: CitusColumn) -> ! {
    let table = relation_name(relid);
    let column = quote_identifier(column);
    let alter = match kind {
        CitusColumn::Identity => None,
        CitusColumn::Narrow => Some(format!(
            "ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint, ALTER COLUMN {column}"
        )),
        CitusColumn::Plain => Some(format!("ALTER TABLE {table} ALTER COLUMN {column}")),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot convert a column of table {table}, which Citus manages"),
        detail: Some("Nothing has been changed.".into()),
        // Citus neither changes the default of an identity column nor undistributes its table.
        hint: Some(alter.map_or_else(
            || {
                "Create a new table without IDENTITY, and copy the rows. See docs/engines.md."
                    .into()
            },
            |alter| citus::recipe(&alter),
        )),
    }
    .raise()
}

/// What a column of Citus is before a conversion.
#[derive(Clone, Copy, Debug)]
pub enum CitusColumn {
    /// An identity column.
    Identity,
    /// Of a type that is too narrow for an ID.
    Narrow,
    /// Any other.
    Plain,
}

/// The table is a shard of Citus.
#[track_caller]
pub fn shard_of_citus(relid: pg_sys::Oid) -> ! {
    let table = relation_name(relid);
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot convert a column of table {table}, which is a shard of Citus"),
        detail: Some("Nothing has been changed.".into()),
        hint: Some(
            "Change the default of the distributed table, on the coordinator. See docs/engines.md."
                .into(),
        ),
    }
    .raise()
}

/// The layout has no shards to check.
#[track_caller]
pub fn no_shard_field(layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("layout \"{layout}\" has no shard field"),
        detail: None,
        hint: Some("Omit check_shard, or pass a layout with a shard field.".into()),
    }
    .raise()
}

/// The clock is outside the layout's time range.
#[track_caller]
pub fn clock_out_of_range(layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("server clock is outside the time range of layout \"{layout}\""),
        detail: Some("The clock is before the layout's epoch or after its end. snowflake_layout_info() returns both.".into()),
        hint: Some(
            "Correct the server's clock, or pass another layout."
                .into(),
        ),
    }
    .raise()
}

/// The relation has no columns of its own.
#[track_caller]
pub fn not_a_table(name: &str, relkind: &str) -> ! {
    let (kind, hint) = match relkind {
        "v" | "m" => ("view", "Pass the table that the view selects from."),
        "f" => {
            ("foreign table", "Call snowflake_convert_column() on the server that has the table.")
        }
        "S" => ("sequence", "Pass the table whose column uses the sequence."),
        _ => ("relation", "Pass a table or a partitioned table."),
    };
    wrong_object_type(format!("cannot convert a column of {kind} {name}"), None, hint.into())
}

/// The column is inherited.
#[track_caller]
pub fn inherited_column(column: &str, parent: &str) -> ! {
    wrong_object_type(
        format!("cannot convert inherited {column}"),
        Some(format!("The column is inherited from {parent}.")),
        format!("Pass {parent}. Its partitions and children are converted with it."),
    )
}

/// The column is generated.
#[track_caller]
pub fn generated_column(column: &str) -> ! {
    wrong_object_type(
        format!("cannot convert generated {column}"),
        None,
        "ALTER TABLE ... ALTER COLUMN ... DROP EXPRESSION turns a stored generated column into an ordinary one."
            .into(),
    )
}

#[track_caller]
fn wrong_object_type(message: String, detail: Option<String>, hint: String) -> ! {
    let code = PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
    Report { code, message, detail, hint: Some(hint) }.raise()
}

/// The table has no such column.
#[track_caller]
pub fn no_such_column(column: &str, table: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        message: format!("column \"{column}\" of table {table} does not exist"),
        detail: None,
        hint: Some("The column name is case-sensitive.".into()),
    }
    .raise()
}

/// The column is a system column.
#[track_caller]
pub fn system_column(column: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot convert system column {column}"),
        detail: None,
        hint: Some("Pass a user-defined column.".into()),
    }
    .raise()
}

/// The user does not own a table or a sequence.
#[track_caller]
pub fn not_owner(kind: &str, name: &str, why: Option<String>) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("must be owner of {kind} {name}"),
        detail: why,
        hint: Some("Call snowflake_convert_column() as its owner, or as a superuser.".into()),
    }
    .raise()
}

/// The column's type cannot hold IDs, and is not changed automatically.
#[track_caller]
pub fn unsuitable_type(column: &str, type_name: &str, references: Option<&str>) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message: format!("type {type_name} of {column} cannot hold IDs"),
        detail: references.map(|converted| format!("The column references {converted} and must hold its IDs.")),
        hint: Some(
            "Change the column to bigint first, or its domain to one over bigint. Only smallint and integer are changed \
             automatically. For UUIDs, see docs/migrate.md."
                .into(),
        ),
    }
    .raise()
}

/// Objects depend on a column whose type must change.
#[track_caller]
pub fn has_dependent_objects(column: &str, objects: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot change {column} to bigint because other objects depend on it"),
        detail: Some(format!("These objects depend on its type: {}.", objects.join("; "))),
        hint: Some(
            "Drop them, call snowflake_convert_column(), and create them again, all in one transaction. A partition key of a \
             narrower type needs a new table."
                .into(),
        ),
    }
    .raise()
}

/// Some rows are on other servers, whose columns cannot be changed from here.
#[track_caller]
pub fn has_foreign_tables(table: &str, column: &str, foreign: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot change column {column} of table {table} to bigint on other servers"),
        detail: Some(format!("These foreign tables inherit the column: {}.", foreign.join(", "))),
        hint: Some(format!(
            "Change the column on those servers first, then on this one: ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint;"
        )),
    }
    .raise()
}

/// The table's owner, with whose privileges the conversion runs, lacks one.
#[track_caller]
pub fn lacks_privilege(privilege: &str, schema: &str, owner: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("role {owner} lacks {privilege} on schema {schema}"),
        detail: Some("A table is converted with the privileges of its owner.".into()),
        hint: Some(format!("Run: GRANT {privilege} ON SCHEMA {schema} TO {owner};")),
    }
    .raise()
}

/// A table with another owner than the converted table.
pub struct OtherOwner {
    /// The table.
    pub table: String,
    /// The owner.
    pub owner: String,
    /// The owner of the converted table.
    pub converting: String,
}

/// Expressions of one owner would be evaluated with the privileges of another.
#[track_caller]
pub fn other_owner(column: &str, other: &OtherOwner) -> ! {
    let OtherOwner { table, owner, converting } = other;
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("cannot convert {column} because its tables have different owners"),
        detail: Some(format!(
            "Constraints are evaluated with the privileges of role {converting}, but table {table} belongs to role {owner}."
        )),
        hint: Some(hint_of_other_owner(table, converting)),
    }
    .raise()
}

/// The column shares the sequence with other objects.
#[track_caller]
pub fn shared_sequence(sequence: &str, column: &str, users: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} of {column} is also used by other objects"),
        detail: Some(format!("The conversion would change the values that these objects get: {}.", users.join("; "))),
        hint: Some(format!(
            "If IDs must be unique across these objects, give them one new sequence: see docs/migrate.md. Otherwise, drop the \
             column's default, so that snowflake_convert_column() creates a sequence. If the column owns this one, also run: \
             ALTER SEQUENCE {sequence} OWNED BY NONE;"
        )),
    }
    .raise()
}

/// The column cannot own the sequence.
#[track_caller]
pub fn cannot_own_sequence(sequence: &str, table: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} must have the same owner and schema as table {table}"),
        detail: Some("A table can own only sequences of its own owner and schema.".into()),
        hint: Some(format!(
            "Run ALTER SEQUENCE {sequence} with SET SCHEMA or OWNER TO. Or drop the column's default, so that \
             snowflake_convert_column() creates a sequence."
        )),
    }
    .raise()
}

/// The column's identity was removed in the catalog by hand, but its sequence was left as it was.
#[track_caller]
pub fn detached_identity_sequence(sequence: &str, column: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} belongs to an identity column, but {column} is not one"),
        detail: Some(
            "The column's pg_attribute.attidentity was changed by hand, as pgEdge's extension does. The column and the \
             sequence can be neither altered nor dumped in this state."
                .into(),
        ),
        hint: Some("See the section about pgEdge in docs/migrate.md for the statement that undoes the change.".into()),
    }
    .raise()
}

/// The values are probably IDs of another layout. Only a warning if the caller has passed the layout.
#[track_caller]
pub fn other_layout(column: &str, mismatch: &Mismatch, is_explicit: bool) {
    wrong_layout::other_layout(newest_value(column), mismatch, is_explicit, |likely| {
        format!("Pass layout => '{likely}', or the layout that snowflake_find_layout() finds.")
    })
    .log(PgLogLevel::WARNING);
}

/// The present default does not show the layout of the IDs.
#[track_caller]
pub fn layout_not_known(column: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("could not determine the layout of the IDs of {column}"),
        detail: Some("Its default has several layouts, or one that is not a constant.".into()),
        hint: Some("Pass the layout of the IDs.".into()),
    }
    .raise()
}

/// The highest value is odd. `rows` is the query for its rows.
pub fn odd_value(column: &str, mismatch: &Mismatch, rows: String) {
    wrong_layout::odd_id(newest_value(column), mismatch, rows).log(PgLogLevel::WARNING);
}

fn newest_value(column: &str) -> String {
    format!("newest value of {column}")
}

/// One or more values are above the next IDs. `only_rows` is the query for the rows of the highest one if no other is above.
#[track_caller]
pub fn value_too_high(
    column: &str,
    highest: i64,
    only_rows: Option<String>,
    next: i64,
    layout: Layout,
) -> ! {
    let highest_is =
        if only_rows.is_some() { "The only value above it is" } else { "The highest value is" };
    let hint = if let Some(rows) = only_rows {
        format!(
            "If the value is an ID of another layout, pass that layout. If it is an ID from the future, set \
             pg_snowflake.max_lead to how far it is ahead. Otherwise, change it or delete the row. To see the row, run: {rows}"
        )
    } else {
        "If the values are IDs of another layout, pass that layout; snowflake_find_layout() finds it. If they are IDs \
         from the future, set pg_snowflake.max_lead to how far they are ahead. Otherwise, lower the values of those \
         rows."
            .into()
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("{column} has a value above the next ID"),
        detail: Some(format!(
            "{highest_is} {highest}. The next ID of layout \"{layout}\" would be about {next}."
        )),
        hint: Some(hint),
    }
    .raise()
}

/// Warns of functions of other roles that have the old type of a column in open sessions.
pub fn not_compiled_again(commands: impl Iterator<Item = String>) {
    Report {
        code: PgSqlErrorCode::ERRCODE_WARNING,
        message: "functions of other roles have the old type of the column in open sessions".into(),
        detail: Some("They fail there until the sessions reconnect.".into()),
        hint: Some(format!(
            "To let the sessions compile the functions again, run as their owners: {}",
            commands.collect::<Vec<_>>().join(" ")
        )),
    }
    .log(PgLogLevel::WARNING);
}

/// A CHECK would reject new IDs.
#[track_caller]
pub fn violates_constraint(constraint: &str, table: &str, id: i64) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("new IDs would violate constraint {constraint} of table {table}"),
        detail: Some(format!("The next ID would be about {id}.")),
        hint: Some(format!("Run: ALTER TABLE {table} DROP CONSTRAINT {constraint};")),
    }
    .raise()
}
