//! `snowflake_convert_column`: converts columns of live tables to generated IDs.

mod cases;
mod columns;
mod postgres_18;
mod writers;

/// An output of `pg_dump` without the random key that newer versions write.
fn without_key(dump: &str) -> String {
    let is_of_the_database = |line: &&str| !line.contains("restrict ");
    dump.lines().filter(is_of_the_database).collect::<Vec<_>>().join("\n")
}
