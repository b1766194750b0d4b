//! Monitoring: a backend's clock, the state of a sequence, the columns whose defaults generate IDs, and leases.

mod columns;
mod leases;
mod status;
mod stored_expression;

pub use columns::last_id_us;
pub use stored_expression::{GeneratorCall, StoredExpression};
