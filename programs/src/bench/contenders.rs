//! The contenders, one file each.

pub mod copied_plpgsql;
pub mod copied_sql;
mod core_cache_1;
mod core_cache_64;
mod core_identity;
mod managed;
mod managed_batch;
mod ours_batch;
pub mod ours_cache_1;
mod ours_cache_64;
mod pgedge;
mod ready_made;
mod uuid_v4;
mod uuid_v7;

use crate::bench::contender::Contender;

/// All contenders in the order in which they are measured and shown. The two of each ratio that has a close limit are
/// neighbours.
pub const ALL: [&Contender; 15] = [
    &core_identity::CONTENDER,
    &core_cache_1::CONTENDER,
    &ours_cache_1::CONTENDER,
    &pgedge::CONTENDER,
    &managed::CONTENDER,
    &copied_plpgsql::CONTENDER,
    &copied_sql::CONTENDER,
    &ours_cache_64::CONTENDER,
    &core_cache_64::CONTENDER,
    &ours_batch::CONTENDER,
    &managed_batch::CONTENDER,
    &uuid_v4::CONTENDER,
    &uuid_v7::CONTENDER,
    &ready_made::IDS,
    &ready_made::UUIDS,
];
