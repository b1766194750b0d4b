//! Routing by shard: operator classes that partition a table by the shard in its IDs, and `snowflake_locate`.

mod locate;
mod operator_class;
mod partition_key;
