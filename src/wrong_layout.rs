//! The refusal of IDs that are probably not of the layout that a function would use.

use crate::postgres::report::{Raise, Report};
use pg_snowflake_ids::likely::Mismatch;
use pg_snowflake_policies::messages::arguments as messages;

/// Refuses IDs that are probably not of the layout that a function would use. If the caller has passed the layout, returns a warning
/// instead. `ids` names the newest, `undo` says how to undo the call, and `hint` how to use the likely layout.
#[track_caller]
pub fn other_layout(ids: String, mismatch: &Mismatch, is_explicit: bool, undo: &str, hint: impl FnOnce(&str) -> String) -> Report {
    let Mismatch { layout, likely, .. } = mismatch;
    let hint = hint(likely.name);
    let hint = match is_explicit {
        true => messages::undo(undo, hint),
        false => messages::confirm_layout(hint, layout),
    };
    let report = messages::likely_other_layout(ids, likely.name, mismatch, hint);
    if is_explicit { report } else { report.raise() }
}

/// The warning that the highest ID is unlike the others. `id` names it, and `query` selects its row.
pub fn odd_id(id: String, mismatch: &Mismatch, query: String) -> Report {
    messages::odd_id(id, mismatch, query)
}
