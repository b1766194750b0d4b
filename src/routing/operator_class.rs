//! The hash support functions of the operator classes that partition a table by the shard in its IDs.
//!
//! `PARTITION BY HASH (id snowflake_shard_ops)` puts a row into the partition whose remainder is its shard modulo the partition's modulus.
//! Core computes `hash_combine64(0, f(id, seed)) % modulus` with support function 2 as `f` (`compute_partition_hash_value`,
//! partitioning/partbounds.c). For a single key, `hash_combine64` adds a constant, which `f` subtracts beforehand.
//!
//! Support function 1 of every class is core's own integer hash. The `=` of two bigints is a member of several operator families, and core
//! uses the first one that it finds for a hash join, a hash aggregate or a Memoize node (`get_op_hash_functions`, utils/cache/lsyscache.c).
//! Core's own comes first, since it has the lowest OID. If one of ours did, a hash of 12 bits would ruin every such plan of the database;
//! core's hash changes none. A hash index of such a class uses it too.
//!
//! Only partitioning calls support function 2 with the seed of partitioning. With any other seed it is core's
//! too, as the contract of the access method requires: with seed 0, its low half is support function 1.

use pg_snowflake_ids::{
    Layout,
    presets::{INSTAGRAM, JS53, POSTGRES, SONYFLAKE, TWITTER},
};
use pg_snowflake_policies::hashfn::{HASH_COMBINE_ADDEND, HASH_PARTITION_SEED};
use pgrx::prelude::*;

/// An operator class, defined by where it reads the shard of an ID.
pub struct OperatorClass {
    /// The name in SQL.
    pub name: &'static str,
    /// A layout with the shard in that place.
    pub layout: &'static Layout,
    /// Support function 2 for a bigint.
    hash: unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum,
}

impl OperatorClass {
    /// The class that has this support function 2.
    pub fn of(support_function: &pg_sys::FmgrInfo) -> Option<&'static OperatorClass> {
        let hash = support_function.fn_addr?;
        OPERATOR_CLASSES.iter().find(|class| std::ptr::fn_addr_eq(class.hash, hash))
    }

    /// Whether it reads the shard where this layout has it.
    pub const fn reads(&self, layout: &Layout) -> bool {
        self.layout.shard_shift() == layout.shard_shift()
            && self.layout.shard_bits == layout.shard_bits
            && self.layout.shard_place.is_xored() == layout.shard_place.is_xored()
    }
}

/// `f(id, seed)` such that core's hash of a partition key is the ID's shard.
fn shard_hash(layout: &Layout, id: i64, seed: i64) -> i64 {
    if seed as u64 == HASH_PARTITION_SEED {
        return u64::from(layout.split(id).shard).wrapping_sub(HASH_COMBINE_ADDEND) as i64;
    }
    // SAFETY: two bigints in, one out, as hashint8extended() has it; it returns no null.
    unsafe { pgrx::direct_function_call(pg_sys::hashint8extended, &[id.into_datum(), seed.into_datum()]).expect("a hash is not null") }
}

/// The classes, with support functions for a bigint and for an integer, the type of a small literal.
macro_rules! classes {
    ($($name:literal, $layout:expr, $hash:ident, $wrapper:ident, $hash_of_integer:ident;)*) => {
        static OPERATOR_CLASSES: [OperatorClass; [$($name),*].len()] =
            [$(OperatorClass { name: $name, layout: $layout, hash: $wrapper }),*];

        $(
            #[pg_extern(sql = false)]
            fn $hash(id: i64, seed: i64) -> i64 {
                shard_hash($layout, id, seed)
            }

            #[pg_extern(sql = false)]
            fn $hash_of_integer(id: i32, seed: i64) -> i64 {
                shard_hash($layout, id.into(), seed)
            }
        )*
    };
}

classes! {
    "snowflake_shard_ops", &POSTGRES,
        snowflake_shard_hash, snowflake_shard_hash_wrapper, snowflake_shard_hash_of_integer;
    "snowflake_shard_ops_instagram", &INSTAGRAM,
        snowflake_shard_hash_instagram, snowflake_shard_hash_instagram_wrapper,
        snowflake_shard_hash_instagram_of_integer;
    "snowflake_shard_ops_twitter", &TWITTER,
        snowflake_shard_hash_twitter, snowflake_shard_hash_twitter_wrapper,
        snowflake_shard_hash_twitter_of_integer;
    "snowflake_shard_ops_sonyflake", &SONYFLAKE,
        snowflake_shard_hash_sonyflake, snowflake_shard_hash_sonyflake_wrapper,
        snowflake_shard_hash_sonyflake_of_integer;
    "snowflake_shard_ops_js53", &JS53,
        snowflake_shard_hash_js53, snowflake_shard_hash_js53_wrapper,
        snowflake_shard_hash_js53_of_integer;
}
