//! The texts of all errors, in one table for each subject.
//!
//! A line of a table is a function that returns the [`Report`] for its arguments, and a [`Message`], for whoever needs the texts without
//! a server. A message whose detail or hint depends on the case has a line for each.

pub mod arguments;
pub mod convert;
pub mod leases;
pub mod partitions;
pub mod registry;
pub mod sequence;
pub mod server;
mod table;
pub mod worker;

pub use table::{Message, Report, general, sqlstate};

/// The tables.
pub const TABLES: [&[Message]; 8] =
    [arguments::ALL, convert::ALL, leases::ALL, partitions::ALL, registry::ALL, sequence::ALL, server::ALL, worker::ALL];

#[cfg(test)]
mod tests {
    use super::TABLES;

    #[test]
    fn the_texts_follow_the_style_of_core() {
        for message in TABLES.into_iter().flatten() {
            assert!(!message.message.ends_with('.'), "{message:?}");
            for sentences in [message.detail, message.hint] {
                assert!(sentences.is_empty() || sentences.ends_with(['.', ';', '}']), "{message:?}");
            }
        }
    }
}
