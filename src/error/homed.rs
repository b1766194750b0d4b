//! The errors for arguments of the functions that generate homed IDs.

use crate::postgres::report::{Report, quoted};
use pg_snowflake_ids::Layout;
use pg_snowflake_policies::homed::Invalid;
use pgrx::PgSqlErrorCode;

/// The error for arguments with which there are no homed IDs.
pub fn invalid_arguments(invalid: Invalid, layout: Layout) -> Report {
    let of_layout =
        || format!("Layout {} has {} shards.", quoted(&layout.to_string()), layout.shards());
    let (message, detail, hint) = match invalid {
        Invalid::Modulus { modulus, highest } => (
            format!("modulus {modulus} is out of range"),
            format!("{} The modulus is from 1 to {highest}.", of_layout()),
            "Pass the number of partitions or servers that the IDs are hashed to.",
        ),
        Invalid::Generators { generators, highest } => (
            format!("number of generators {generators} is out of range"),
            format!(
                "{} With this modulus, the number of generators is from 1 to {highest}.",
                of_layout()
            ),
            "Pass the number of servers that generate IDs for the same partition.",
        ),
        Invalid::Shard { shard, highest } => (
            format!("shard ID {shard} is out of range for this modulus"),
            format!("The shard ID is from 0 to {highest}, below modulus times generators."),
            "Pass a different shard ID in that range on each server.",
        ),
        Invalid::NoRange => (
            "hash ranges must not be empty".into(),
            "The multirange contains no hash.".into(),
            "Pass the hash ranges whose rows are on this server.",
        ),
        Invalid::RangeBeyondHashes => (
            "hash range is out of range".into(),
            "A hash is from -2147483648 to 2147483647.".into(),
            "Pass ranges of signed 32-bit hashes, as hashint8() returns them.",
        ),
        Invalid::TooFewHashes { hashes, needed } => (
            "hash ranges are too small".into(),
            format!("They contain {hashes} of 4294967296 hashes; at least {needed} are needed."),
            "Pass all hash ranges whose rows are on this server.",
        ),
    };
    Report {
        code: PgSqlErrorCode::ERRCODE_INVALID_PARAMETER_VALUE,
        message,
        detail: Some(detail),
        hint: Some(hint.into()),
    }
}
