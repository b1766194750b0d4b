//! What pg_snowflake promises, tried on real servers.

mod as_core;
mod batch;
mod cache;
mod clients;
mod core_nextval;
mod crash;
mod decoding;
mod docs;
mod dump;
mod formula;
mod install;
mod load;
mod locks;
mod privileges;
mod refusals;
mod regress;
mod settings;
mod storage;
mod wal;
