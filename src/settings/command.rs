//! The commands that change a setting, for hints.

use super::Setting;
use crate::distributed;
use crate::postgres::report::{current_database_name, session_user_name};
use pgrx::pg_sys::GucSource;

/// The command that sets a parameter for this database, or for a role whose own value overrides that of the database; for
/// this node if tables are distributed, since what is set for a database or a role is copied to every node.
pub fn set_for_this_database(setting: Setting, value: &str) -> String {
    let (name, database) = (setting.text(), current_database_name());
    // A value that the session has set does not matter to new sessions.
    let role = matches!(setting.reset_source(), GucSource::PGC_S_USER | GucSource::PGC_S_DATABASE_USER).then(session_user_name);
    match (distributed::is_installed(), role) {
        (false, None) => format!("ALTER DATABASE {database} SET {name} = {value};"),
        (false, Some(role)) => {
            format!("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value};")
        }
        (true, None) => set_for_this_server(name, value),
        (true, Some(role)) => format!(
            "{} On the coordinator, also run: ALTER ROLE {role} RESET {name}; ALTER ROLE {role} IN DATABASE {database} RESET {name};",
            set_for_this_server(name, value)
        ),
    }
}

/// The command that sets a parameter for this server, and puts it into effect.
pub fn set_for_this_server(parameter: &str, value: &str) -> String {
    // A session that has not loaded the library does not know the setting.
    format!("LOAD 'pg_snowflake'; ALTER SYSTEM SET {parameter} = {value}; SELECT pg_reload_conf();")
}
