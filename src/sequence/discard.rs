//! DISCARD SEQUENCES and DISCARD ALL reset the session's sequence state, as core's `ResetSequenceCaches()`
//! does, so that a pooled connection starts afresh for its next user.

use super::sys;
use pgrx::pg_sys;
use std::ffi::c_char;
use std::sync::OnceLock;

/// The hook that was installed before ours.
static PREVIOUS: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

/// Installs the hook. Called once, at library load.
pub fn install_hook() {
    // SAFETY: hooks are chained at library load, on the backend's only thread.
    unsafe {
        PREVIOUS.get_or_init(|| pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// Runs the command, then resets if it was one of these DISCARDs.
///
/// The call has no guard: an ERROR passes over this frame, which holds nothing, to the caller's handler.
#[allow(clippy::too_many_arguments, reason = "the hook's signature")]
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    destination: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: the arguments are passed on unchanged.
    unsafe {
        let discards = discards_sequences((*statement).utilityStmt);
        let next = PREVIOUS.get().copied().flatten().unwrap_or(sys::standard_ProcessUtility);
        next(statement, query, read_only_tree, context, params, environment, destination, completion);
        if discards {
            super::seq_table::reset_sequence_caches();
        }
    }
}

unsafe fn discards_sequences(statement: *mut pg_sys::Node) -> bool {
    // SAFETY: a utility statement starts with its node tag.
    unsafe {
        (*statement).type_ == pg_sys::NodeTag::T_DiscardStmt
            && matches!(
                (*statement.cast::<pg_sys::DiscardStmt>()).target,
                pg_sys::DiscardMode::DISCARD_ALL | pg_sys::DiscardMode::DISCARD_SEQUENCES
            )
    }
}
