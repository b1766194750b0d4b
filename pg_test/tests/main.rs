//! What pg_snowflake promises, tried on real servers.

mod as_core;
mod ask;
mod batch;
mod cache;
mod clients;
mod core_nextval;
mod crash;
mod decoders;
mod decoding;
mod docs;
mod dump;
mod fences;
mod formula;
mod install;
mod layouts;
mod load;
mod locks;
mod planner;
mod privileges;
mod refusals;
mod regress;
mod routing;
mod settings;
mod snowflake_type;
mod storage;
mod wal;
