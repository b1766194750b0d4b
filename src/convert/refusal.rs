//! What `snowflake_convert_column` refuses, and how it is reported.

use super::references::OtherOwner;
use crate::report::Report;
use pg_snowflake_core::Layout;
use pgrx::prelude::*;

/// An argument that must be given.
pub fn null_argument(name: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_NULL_VALUE_NOT_ALLOWED,
        message: format!("snowflake_convert_column: {name} is null"),
        detail: None,
        hint: Some("Only shard_id may be: it is then the setting pg_snowflake.shard_id.".into()),
    }
    .raise()
}

/// A transaction whose snapshot may be older than the lock.
pub fn old_snapshot() -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_TRANSACTION_STATE,
        message: "cannot execute snowflake_convert_column() in a transaction that keeps its snapshot".into(),
        detail: Some(
            "It has to see the rows that others have committed by the time that the table is locked.".into(),
        ),
        hint: Some("Start the transaction with BEGIN ISOLATION LEVEL READ COMMITTED.".into()),
    }
    .raise()
}

/// A layout without shards has none to check.
pub fn no_shard_field(layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message: format!("ids of layout {layout} carry no shard to check"),
        detail: None,
        hint: Some("Leave check_shard out, or pass a layout with a shard field.".into()),
    }
    .raise()
}

/// The clock is outside the layout's life.
pub fn not_in_the_time_of(layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("layout {layout} has no ids for the present time"),
        detail: Some("The server's clock is before the layout's epoch, or after its end.".into()),
        hint: Some(
            "snowflake_layout_info() returns both. Set the clock right, or pass another layout."
                .into(),
        ),
    }
    .raise()
}

/// The relation has no column of its own that generates ids.
pub fn not_a_table(name: &str, relkind: &str) -> ! {
    let (kind, hint) = match relkind {
        "v" | "m" => ("a view", "Pass the table that the view selects from."),
        "f" => {
            ("a foreign table", "Call snowflake_convert_column() on the server that has the table.")
        }
        "S" => ("a sequence", "Pass the table whose column takes its values."),
        _ => ("no table", "Pass a table, partitioned or not."),
    };
    wrong_object(format!("cannot convert a column of {name}: it is {kind}"), None, hint.into())
}

/// The column is its parent's.
pub fn inherited(column: &str, parent: &str) -> ! {
    wrong_object(
        format!("cannot convert {column} alone"),
        Some(format!("It is inherited from {parent}.")),
        format!("Pass {parent}: its partitions and children are converted with it."),
    )
}

/// The column is computed.
pub fn generated(column: &str) -> ! {
    wrong_object(
        format!("cannot convert {column}: it is a generated column"),
        None,
        "ALTER TABLE … ALTER COLUMN … DROP EXPRESSION makes a stored one an ordinary column."
            .into(),
    )
}

fn wrong_object(message: String, detail: Option<String>, hint: String) -> ! {
    let code = PgSqlErrorCode::ERRCODE_WRONG_OBJECT_TYPE;
    Report { code, message, detail, hint: Some(hint) }.raise()
}

/// The table has no such column.
pub fn no_such_column(column: &str, table: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_UNDEFINED_COLUMN,
        message: format!("column {column} of table {table} does not exist"),
        detail: None,
        hint: Some("The name is taken as it stands, and case matters.".into()),
    }
    .raise()
}

/// The column is one that every table has.
pub fn system_column(column: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("cannot convert system column {column}"),
        detail: None,
        hint: Some("Pass a column that the table was made with.".into()),
    }
    .raise()
}

/// The user may not alter a table or a sequence.
pub fn not_owner(kind: &str, name: &str, why: Option<String>) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("must be owner of {kind} {name}"),
        detail: why,
        hint: Some("Call snowflake_convert_column() as its owner, or as a superuser.".into()),
    }
    .raise()
}

/// The column's type holds no id and does not become one that does.
pub fn unfit_type(column: &str, type_name: &str, references: Option<&str>) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_DATATYPE_MISMATCH,
        message: format!("{column} of type {type_name} cannot hold ids"),
        detail: references.map(|converted| format!("It references {converted}, and has to hold its ids.")),
        hint: Some(
            "Ids are bigint. Only smallint and integer columns are changed to it; change this one first, or a domain to \
             one over bigint. For UUIDs see docs/migrate.md."
                .into(),
        ),
    }
    .raise()
}

/// Something depends on a column whose type has to change.
pub fn in_the_way(column: &str, objects: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("{column} has to become bigint, and {} in the way", of_them(objects.len())),
        detail: Some(format!("They depend on its type: {}.", objects.join("; "))),
        hint: Some(
            "Drop them, call snowflake_convert_column(), and make them again, all in one transaction. A partition key of a \
             narrower type needs a new table."
                .into(),
        ),
    }
    .raise()
}

/// Some of the rows are on other servers, whose columns cannot be widened from here.
pub fn narrow_elsewhere(table: &str, column: &str, foreign: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_FEATURE_NOT_SUPPORTED,
        message: format!("column {column} of table {table} has to become bigint, on other servers too"),
        detail: Some(format!("Foreign tables inherit it: {}.", foreign.join(", "))),
        hint: Some(format!(
            "Change the column on those servers, then here: ALTER TABLE {table} ALTER COLUMN {column} TYPE bigint;"
        )),
    }
    .raise()
}

/// The conversion runs with the rights of the table's owner, who lacks one.
pub fn no_privilege(privilege: &str, schema: &str, owner: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("role {owner} lacks {privilege} on schema {schema}"),
        detail: Some("A table is converted with the rights of its owner.".into()),
        hint: Some(format!("GRANT {privilege} ON SCHEMA {schema} TO {owner};")),
    }
    .raise()
}

/// The expressions of one owner would be evaluated with the rights of another.
pub fn other_owner(column: &str, other: &OtherOwner) -> ! {
    let OtherOwner { table, owner, converting } = other;
    Report {
        code: PgSqlErrorCode::ERRCODE_INSUFFICIENT_PRIVILEGE,
        message: format!("cannot convert {column}: its tables have different owners"),
        detail: Some(format!(
            "Constraints are evaluated with the rights of role {converting}. Table {table} belongs to {owner}."
        )),
        hint: Some(format!("ALTER TABLE {table} OWNER TO {converting};")),
    }
    .raise()
}

fn of_them(count: usize) -> String {
    if count == 1 { "1 object is".into() } else { format!("{count} objects are") }
}

/// The sequence is not the column's alone.
pub fn shared_sequence(sequence: &str, column: &str, users: &[String]) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} does not serve {column} alone"),
        detail: Some(format!("It also serves: {}. Its values would no longer be what they expect.", users.join("; "))),
        hint: Some(format!(
            "Drop the column's default, and where the column owns the sequence ALTER SEQUENCE {sequence} OWNED BY NONE; \
             snowflake_convert_column() then makes one for it."
        )),
    }
    .raise()
}

/// The sequence cannot be owned by the column.
pub fn foreign_sequence(sequence: &str, table: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} cannot belong to a column of {table}"),
        detail: Some("A column's sequence has the schema and the owner of its table.".into()),
        hint: Some(format!(
            "ALTER SEQUENCE {sequence} SET SCHEMA or OWNER TO those of the table; or drop the column's default, and \
             snowflake_convert_column() makes a sequence for it."
        )),
    }
    .raise()
}

/// Somebody took the identity from the column in the catalog, and left its sequence as it was.
pub fn half_an_identity(sequence: &str, column: &str) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("sequence {sequence} is that of an identity column, and {column} is none"),
        detail: Some(
            "The column's pg_attribute.attidentity was changed by hand, as pgEdge's extension does; neither can be \
             altered or dumped like this."
                .into(),
        ),
        hint: Some("docs/migrate.md, under pgEdge, has the statement that takes the change back.".into()),
    }
    .raise()
}

/// Some value is above the ids that are due.
pub fn too_high(column: &str, highest: i64, next: i64, layout: Layout) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("{column} has a value above the next id"),
        detail: Some(format!("The highest value is {highest}; the next id in layout {layout} would be about {next}.")),
        hint: Some(
            "If the values are ids of another layout, pass that one. If they are ids from the future, set \
             pg_snowflake.max_lead to how far they are ahead. Else give those rows lower values."
                .into(),
        ),
    }
    .raise()
}

/// A CHECK would refuse what is generated.
pub fn constraint_in_the_way(constraint: &str, table: &str, id: i64) -> ! {
    Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("constraint {constraint} of table {table} would refuse new ids"),
        detail: Some(format!("The next id would be about {id}.")),
        hint: Some(format!("ALTER TABLE {table} DROP CONSTRAINT {constraint};")),
    }
    .raise()
}
