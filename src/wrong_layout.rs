//! The refusal of IDs that are probably not of the layout that a function would use.

use crate::postgres::report::Report;
use pg_snowflake_ids::likely::Mismatch;
use pgrx::prelude::*;

/// Refuses IDs that are probably not of the layout that a function would use. If the caller has passed the layout, returns a warning
/// instead. `ids` names the newest, and `hint` says how to use the likely layout.
#[track_caller]
pub fn other_layout(
    ids: String,
    mismatch: &Mismatch,
    is_explicit: bool,
    hint: impl FnOnce(&str) -> String,
) -> Report {
    let Mismatch { layout, likely, .. } = mismatch;
    let hint = hint(likely.name);
    let report = Report {
        code: PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        message: format!("{ids} is probably an ID of layout \"{}\"", likely.name),
        detail: Some(format!("{mismatch}.")),
        hint: Some(if is_explicit {
            format!("If so, undo this call. {hint}")
        } else {
            format!("{hint} If the IDs are of layout \"{layout}\", pass layout => '{layout}'.")
        }),
    };
    if is_explicit { report } else { report.raise() }
}

/// The warning that the highest ID is unlike the others. `id` names it, and `query` selects its row.
pub fn odd_id(id: String, mismatch: &Mismatch, query: String) -> Report {
    Report {
        code: PgSqlErrorCode::ERRCODE_WARNING,
        message: format!("{id} does not match the other IDs"),
        detail: Some(format!("{mismatch}.")),
        hint: Some(format!(
            "If the ID is wrong, change it or delete the row. To see the row, run: {query}"
        )),
    }
}
