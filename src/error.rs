//! The errors of generating IDs and of reading sequences: which message each has. The texts are in `pg_snowflake_policies::messages`.

mod denied;
mod no_counter;

pub use denied::report as denied;

use crate::denied::Denied;
use crate::distributed;
use crate::postgres::report::{Raise, Report, current_database_name, session_user_name};
use crate::sequence::Failure;
use crate::settings::Setting;
use pg_snowflake_policies::messages::server::set_on_this_server;
use pgrx::pg_sys::{self, GucSource};

/// Why an ID cannot be generated, or a sequence cannot be read.
pub type Error = Failure<Denied>;

impl From<Denied> for Error {
    fn from(denied: Denied) -> Self {
        Failure::Denied(denied)
    }
}

impl Error {
    /// Raises the error. `function` is the SQL function called, and `relid` the sequence passed to it.
    #[track_caller]
    pub fn raise(self, function: &str, relid: pg_sys::Oid) -> ! {
        self.report(function, relid).raise()
    }

    /// The error in one line, as `snowflake_nextval()` raises it, for a row that shows it.
    pub fn summary(self, relid: pg_sys::Oid) -> String {
        self.report("snowflake_nextval", relid).summary()
    }

    fn report(self, function: &str, relid: pg_sys::Oid) -> Report {
        match self {
            Failure::NoCounter(reason) => no_counter::report(reason, function, relid),
            Failure::Denied(reason) => denied::report(reason, function),
        }
    }
}

/// The command that sets a parameter for this database, or for a role whose own value overrides that of the database; for
/// this node if tables are distributed, since what is set for a database or a role is copied to every node.
fn set_for_this_database(setting: Setting, value: &str) -> String {
    let (name, database) = (setting.text(), current_database_name());
    // A value that the session has set does not matter to new sessions.
    let role = matches!(setting.reset_source(), GucSource::PGC_S_USER | GucSource::PGC_S_DATABASE_USER).then(session_user_name);
    match (distributed::is_installed(), role) {
        (false, None) => format!("ALTER DATABASE {database} SET {name} = {value};"),
        (false, Some(role)) => format!("ALTER ROLE {role} IN DATABASE {database} SET {name} = {value};"),
        (true, None) => set_on_this_server(name, value),
        (true, Some(role)) => format!(
            "{} On the coordinator, also run: ALTER ROLE {role} RESET {name}; ALTER ROLE {role} IN DATABASE {database} RESET {name};",
            set_on_this_server(name, value)
        ),
    }
}
