//! A server under valgrind: memcheck's findings, or the instructions that callgrind counts.
//!
//! Memcheck sees every read of memory that is not allocated or was never written, by the server as well as by the extension.
//! Debian's server is not built for valgrind (`USE_VALGRIND`), so `malloc` is what counts as allocation, and not each
//! `palloc` within the blocks that come from it.

use crate::installation::{self, option};
use std::path::Path;
use std::process::Command;

/// The end of a frame's object if it is the extension's library.
const LIBRARY: &str = "/pg_snowflake.so</obj>";

/// The known errors of the server itself, with a reason for each.
const SUPPRESSIONS: &str = include_str!("../valgrind.supp");

/// What valgrind does with each process of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// Finds misuses of memory.
    Memcheck,
    /// Counts instructions.
    Callgrind,
}

impl Tool {
    /// The command that runs `postgres` under valgrind, each of its processes writing a file into `dir`.
    pub fn postgres(self, dir: &Path) -> Command {
        match self {
            Tool::Memcheck => watched_postgres(dir),
            Tool::Callgrind => counted_postgres(dir, "callgrind.%p.log"),
        }
    }
}

/// The command that runs `postgres` under callgrind, each of its processes writing how many instructions it has executed into that file
/// in `dir`, once it has ended; see [`instructions_in`].
pub fn counted_postgres(dir: &Path, log: &str) -> Command {
    let mut valgrind = installation::as_server_user("valgrind", dir);
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--vgdb=no"]);
    valgrind.arg(option("--log-file", &dir.join(log)));
    valgrind.arg(installation::bindir().join("postgres"));
    valgrind
}

/// The instructions in callgrind's log; `None` if its process has not ended.
pub fn instructions_in(log: &str) -> Option<u64> {
    let (_, rest) = log.split_once("Collected : ")?;
    rest.split_whitespace().next()?.parse().ok()
}

fn watched_postgres(dir: &Path) -> Command {
    let suppressions = dir.join("valgrind.supp");
    std::fs::write(&suppressions, SUPPRESSIONS).expect("the suppressions can be written");
    let mut valgrind = installation::as_server_user("valgrind", dir);
    valgrind
        .args(["--vgdb=no", "--error-limit=no", "--num-callers=50"])
        // Not what is "possibly" lost: Rust refers to a hash table by a pointer to its middle, and the table of what a
        // session knows about its sequences lives as long as the process.
        .arg("--show-leak-kinds=definite")
        .args(["--xml=yes", &option("--xml-file", &dir.join("memcheck.%p.xml"))])
        .arg(option("--suppressions", &suppressions))
        .arg(installation::bindir().join("postgres"));
    valgrind
}

/// What valgrind found in all processes of a server, each error as a part of valgrind's XML.
#[derive(Debug, Default)]
pub struct Findings {
    pub processes: usize,
    /// The errors with a frame of the extension's library in one of their stacks.
    pub of_the_extension: Vec<String>,
    pub of_the_server: Vec<String>,
}

impl Findings {
    /// Reads what the processes of the server in `dir` wrote. All of them must have ended: one that was killed may have found more.
    pub fn read(dir: &Path) -> Self {
        let mut findings = Findings::default();
        let files = std::fs::read_dir(dir).expect("the server's folder can be listed").map(|file| file.expect("a file").path());
        for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "xml")) {
            let xml = std::fs::read_to_string(&file).expect("valgrind's file can be read");
            assert!(xml.trim_end().ends_with("</valgrindoutput>"), "{} is incomplete:\n{xml}", file.display());
            findings.processes += 1;
            findings.add(&xml);
        }
        findings
    }

    fn add(&mut self, xml: &str) {
        for rest in xml.split("<error>").skip(1) {
            let error = rest.split("</error>").next().unwrap_or(rest).to_owned();
            if error.contains(LIBRARY) {
                self.of_the_extension.push(error);
            } else if !error.contains("<kind>Leak_") {
                // The server leaves it to the kernel to free what a process still has at its end.
                self.of_the_server.push(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Findings, instructions_in};

    #[test]
    fn callgrinds_total_is_parsed() {
        let log = "==7== Events    : Ir\n==7== Collected : 58205712\n==7== \n==7== I   refs:      58,205,712\n";
        assert_eq!(instructions_in(log), Some(58_205_712));
        assert_eq!(instructions_in("==7== Command: postgres\n"), None);
    }

    #[test]
    fn errors_are_of_the_extension_or_of_the_server_and_leaks_of_the_server_are_none() {
        let frame = |library: &str| format!("<stack><frame><obj>/usr/lib/{library}</obj></frame></stack>");
        let error = |kind: &str, library: &str| format!("<error><kind>{kind}</kind>{}</error>\n", frame(library));
        let mut findings = Findings::default();
        for (kind, library) in
            [("UninitCondition", "postgres"), ("Leak_DefinitelyLost", "postgres"), ("Leak_DefinitelyLost", "pg_snowflake.so")]
        {
            findings.add(&error(kind, library));
        }
        assert_eq!((findings.of_the_extension.len(), findings.of_the_server.len()), (1, 1), "{findings:?}");
    }
}
