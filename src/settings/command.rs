//! The commands that change a setting, for hints.

use super::Setting;
use crate::citus;
use crate::postgres::report::{current_database_name, session_user_name};
use pgrx::pg_sys::GucSource;

/// The command that sets a parameter for this database, or for a role whose own value overrides that of the database; under Citus
/// for this node, since Citus copies what is set for a database to every node.
pub fn set_for_this_database(setting: Setting, value: &str) -> String {
    let name = setting.text();
    if citus::is_installed() {
        return set_for_this_server(name, value);
    }
    let database = current_database_name();
    let whom = match setting.source() {
        GucSource::PGC_S_USER | GucSource::PGC_S_DATABASE_USER => {
            format!("ROLE {} IN DATABASE {database}", session_user_name())
        }
        _ => format!("DATABASE {database}"),
    };
    format!("ALTER {whom} SET {name} = {value};")
}

/// The command that sets a parameter for this server, and puts it into effect.
pub fn set_for_this_server(parameter: &str, value: &str) -> String {
    // A session that has not loaded the library does not know the setting.
    format!("LOAD 'pg_snowflake'; ALTER SYSTEM SET {parameter} = {value}; SELECT pg_reload_conf();")
}
