//! The commands that change a setting, for hints.

use crate::citus;
use crate::postgres::report::current_database_name;

/// The command that sets a parameter for this database; under Citus for this node, since Citus copies what is set for a database
/// to every node.
pub fn set_for_this_database(parameter: &str, value: &str) -> String {
    if citus::is_installed() {
        set_for_this_server(parameter, value)
    } else {
        format!("ALTER DATABASE {} SET {parameter} = {value};", current_database_name())
    }
}

/// The command that sets a parameter for this server, and puts it into effect.
pub fn set_for_this_server(parameter: &str, value: &str) -> String {
    // A session that has not loaded the library does not know the setting.
    format!("LOAD 'pg_snowflake'; ALTER SYSTEM SET {parameter} = {value}; SELECT pg_reload_conf();")
}
