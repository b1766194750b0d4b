//! Monitoring: a backend's clock, the state of a sequence, and the columns whose defaults generate ids.

mod columns;
mod status;
mod stored_expression;
