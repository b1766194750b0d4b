//! What nearly every test uses: servers and databases, queries and their errors, IDs, sequences, and waiting.

pub use crate::ask::*;
pub use crate::id::*;
pub use crate::process::backend_pid;
pub use crate::sequence::*;
pub use crate::wait::*;
pub use crate::{Builder, Cluster, Database, SUPERUSER, Shutdown, top};
pub use postgres::Client;
