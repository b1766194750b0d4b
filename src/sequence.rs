//! IDs from sequences: the safe interface of `src/sequence/`, the only code that touches pages and WAL.

// Mirrored and ported items keep their C names.
#[allow(nonstandard_style)]
mod sys;

mod backend_clock;
mod fast;
mod interface;
mod invalidation;
mod nextval;
mod page;
mod seq_table;
mod sequence_data;
pub mod shared_text;

pub use backend_clock::{read as read_clock, read_with_steps as read_clock_with_steps, statement_start};
pub use fast::{next_fast, next_homed_fast};
pub use interface::{Authority, Failure, NoCounter, Permit};
pub use invalidation::changes;
pub use nextval::{currval, next, next_homed, next_run};
pub use seq_table::{Basis, set_last};
pub use sequence_data::{SequenceData, read_data, start_of};

/// Registers the hooks that reset a session's sequence state. Called once, at library load. `at_abort` is called at the abort of each
/// transaction and savepoint: an error can interrupt the processing of messages. It must raise no error.
pub fn register_hooks(at_abort: fn()) {
    invalidation::register_callbacks(at_abort);
    seq_table::install_hook();
}
