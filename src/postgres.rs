//! What PostgreSQL gives: arguments, datums, variables of a backend, queries, errors and the log, rows, relations, transactions,
//! memory, time.

pub mod arguments;
pub mod backend_local;
pub mod call;
pub mod encoding;
pub mod memory;
pub mod query;
pub mod relation;
pub mod report;
pub mod result_row;
pub mod timestamp;
pub mod transaction;
pub mod user_table;
