//! What pg_snowflake promises, tried on real servers.

mod core_nextval;
mod crash;
mod docs;
mod dump;
mod formula;
mod install;
mod load;
mod locks;
mod privileges;
mod refusals;
mod settings;
mod wal;
