//! Monitoring: a backend's clock, the state of a sequence, and the columns whose defaults generate IDs.

mod columns;
mod status;
mod stored_expression;

pub use stored_expression::StoredExpression;
