//! Snowflake IDs for PostgreSQL: unique, time-ordered 64-bit keys that embed a timestamp and a shard number,
//! backed by an ordinary sequence.

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]
#![warn(clippy::mod_module_files)]
#![allow(clashing_extern_declarations, reason = "`call!` takes the types of a function from pgrx")]

#[cfg(not(panic = "unwind"))]
compile_error!("a Rust panic becomes a PostgreSQL ERROR by unwinding; build with panic = \"unwind\"");

/// Calls a function of the server as pgrx declares it, under the guard of [`postgres::call`]: `call!(get_rel_name(relid))`.
macro_rules! call {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        unsafe extern "C-unwind" {
            fn $name();
        }
        let declared: unsafe fn($(call!(@type $argument)),*) -> _ = ::pgrx::pg_sys::$name;
        $crate::postgres::call::Declared::call(declared, $name, ($($argument,)*))
    }};
    (@type $argument:expr) => { _ };
}

// Floors, from the top. A module uses those of its own floor, without a circle, and those of the floors below; `./dev lint` checks
// it. What a floor has to ask of one above is passed to it.

// What SQL calls, and the registry of leases, which is another extension.
mod convert;
mod decode;
mod error;
mod find_layout;
mod generate;
mod layout_type;
mod monitor;
mod newest_id;
mod partitions;
mod registry;
mod routing;

// Who may generate what.
mod authority;
mod denied;
mod distributed;
mod fence;
mod lease;
mod settings;

// The sequence: the port of core's sequence.c.
mod sequence;

// What PostgreSQL gives.
mod postgres;

use pgrx::prelude::*;
use postgres::memory;

::pgrx::pg_module_magic!(name, version);

// The install script, in this order, which the Makefile reads here.
extension_sql_file!("../sql/layout.sql", name = "layout");
extension_sql_file!("../sql/nextval.sql", name = "nextval", requires = ["layout"]);
extension_sql_file!("../sql/convert.sql", name = "convert", requires = ["nextval"]);
extension_sql_file!("../sql/decode.sql", name = "decode", requires = ["convert"]);
extension_sql_file!("../sql/find_layout.sql", name = "find_layout", requires = ["decode"]);
extension_sql_file!("../sql/snowflake.sql", name = "snowflake", requires = ["find_layout"]);
extension_sql_file!("../sql/status.sql", name = "status", requires = ["snowflake"]);
extension_sql_file!("../sql/routing.sql", name = "routing", requires = ["status"]);
extension_sql_file!("../sql/citus.sql", name = "citus", requires = ["routing"]);
extension_sql_file!("../sql/partitions.sql", name = "partitions", requires = ["citus"]);
extension_sql_file!("../sql/lease_status.sql", name = "lease_status", requires = ["partitions"]);

/// Called by the server when it loads the library.
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    memory::prepare();
    settings::define(|| {
        fence::define_settings();
        lease::define_settings();
    });
    sequence::register_hooks(distributed::forget);
    // It would hold leases that it does not use.
    if settings::unknown_at_start().is_none() {
        lease::start();
    }
}

/// The interface that pgrx's test framework expects.
#[cfg(feature = "pg_test")]
pub mod pg_test {
    /// Called once before the test server starts.
    pub fn setup(_options: Vec<&str>) {}

    /// Settings of the test server.
    pub fn postgresql_conf_options() -> Vec<&'static str> {
        Vec::new()
    }
}
