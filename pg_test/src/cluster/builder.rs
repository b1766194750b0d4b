//! Building a cluster.

use super::{Cluster, Options, Shutdown};
use crate::installation::{self, System};
use crate::valgrind::Tool;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(super) const SETTINGS: [(&str, &str); 8] = [
    ("listen_addresses", ""),
    ("shared_buffers", "32MB"),
    // In the data directory, so that a server that is killed leaves nothing elsewhere.
    ("dynamic_shared_memory_type", "mmap"),
    // The tests kill processes, never the machine, and the kernel keeps what a process has written.
    ("fsync", "off"),
    // On a slow machine these would happen in the middle of a test that is long over on a fast one.
    ("autovacuum", "off"),
    ("checkpoint_timeout", "1d"),
    ("log_line_prefix", "%m [%p] "),
    // The time zone of the times in the documentation.
    ("timezone", "UTC"),
];

/// How the extension gets into the database `postgres`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Extension {
    /// The data directory has it. It was created once, on another server.
    #[default]
    Copied,
    Created,
    /// It is not there.
    Absent,
}

impl Cluster {
    /// A running server with the extension in its database `postgres`.
    #[allow(clippy::new_without_default, reason = "a server is not a default value")]
    pub fn new() -> Self {
        Self::builder().start()
    }

    pub fn builder() -> Builder {
        Builder::default()
    }
}

#[derive(Default)]
pub struct Builder {
    bindir: Option<PathBuf>,
    settings: Vec<(String, String)>,
    options: Options,
    system: System,
    extension: Extension,
}

impl Builder {
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the programs of another installation of the same major version.
    pub fn bindir(mut self, bindir: &Path) -> Self {
        self.bindir = Some(bindir.to_owned());
        self.extension = Extension::Created;
        self
    }

    /// Gives the server a clock that [`Cluster::set_clock`] sets.
    pub fn fake_clock(mut self) -> Self {
        self.options.has_fake_clock = true;
        self
    }

    /// Gives the server its own host name; see [`super::host_name::can_be_set`].
    pub fn host_name(mut self, name: &str) -> Self {
        self.options.host_name = Some(name.to_owned());
        self
    }

    /// Limits the stack of the server's processes, as `ulimit -s` does, so that even a shallow recursion shows whether
    /// it ends in an error or a crash.
    pub fn stack(mut self, bytes: u64) -> Self {
        self.options.stack_bytes = Some(bytes);
        self
    }

    /// Gives the server a `malloc()` that fails where a test wants it to; see [`crate::memory::Malloc`].
    pub fn failing_malloc(mut self) -> Self {
        self.options.has_failing_malloc = true;
        self
    }

    /// Runs the server under valgrind, such as for [`Cluster::memory_errors`].
    pub fn valgrind(mut self, tool: Tool) -> Self {
        self.options.valgrind = Some(tool);
        self.extension = Extension::Created;
        self
    }

    /// Creates the extension from the install SQL of that older version; the library is the head's.
    pub fn release(mut self, version: &str) -> Self {
        self.options.release = Some(version.to_owned());
        self.extension = Extension::Created;
        self
    }

    pub fn of_system(mut self, system: System) -> Self {
        self.system = system;
        self
    }

    pub fn without_extension(mut self) -> Self {
        self.extension = Extension::Absent;
        self
    }

    pub fn start(self) -> Cluster {
        let mut cluster = Cluster::stopped(self.options);
        if let Some(bindir) = self.bindir {
            cluster.bindir = bindir;
        }
        if cluster.options.has_failing_malloc {
            // It loads a library from there, which memory may forbid.
            cluster.dir = installation::temp_dir();
        }
        let data = match self.extension {
            Extension::Copied => data_directory_with_extension(self.system),
            Extension::Created | Extension::Absent => installation::fresh_data_directory(self.system),
        };
        installation::unpack_data_directory(cluster.dir.path(), data);
        cluster.configure(SETTINGS);
        cluster.configure(self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        cluster.start();
        if self.extension == Extension::Created {
            cluster.create_extension(&mut cluster.connect());
        }
        cluster
    }
}

/// A data directory with the extension in the database `postgres`, packed.
fn data_directory_with_extension(system: System) -> &'static File {
    static ARCHIVES: [OnceLock<File>; 2] = [const { OnceLock::new() }; 2];
    ARCHIVES[system as usize].get_or_init(|| {
        let builder = Builder { extension: Extension::Created, ..Builder::default() };
        let mut cluster = builder.of_system(system).start();
        cluster.stop(Shutdown::Fast);
        installation::pack_data_directory(cluster.dir())
    })
}
