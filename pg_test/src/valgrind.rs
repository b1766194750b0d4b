//! A server under valgrind: memcheck's findings, or the instructions that callgrind counts.
//!
//! Memcheck sees every read of memory that is not allocated or was never written, by the server as well as by the extension.
//! Debian's server is not built for valgrind (`USE_VALGRIND`), so `malloc` is what counts as allocation, and not each
//! `palloc` within the blocks that come from it.

use crate::installation;
use roxmltree::{Document, Node};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The extension's library, as named in the frames of a stack.
const LIBRARY: &str = "/pg_snowflake.so";

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

/// What valgrind found in all processes of a server.
#[derive(Debug, Default)]
pub struct Findings {
    /// How many processes it watched.
    pub processes: usize,
    /// The errors with a frame of the extension's library in one of their stacks.
    pub of_the_extension: Vec<MemoryError>,
    /// The other errors that are not suppressed.
    pub of_the_server: Vec<MemoryError>,
    /// How many errors of the server were suppressed, by the name of the suppression.
    pub suppressed: BTreeMap<String, usize>,
}

/// A place in the code that misused memory, at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryError {
    what: String,
    frames: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    function: String,
    object: String,
    line: String,
}

impl Findings {
    /// Reads what the processes of the server in `dir` wrote. All of them must have ended.
    ///
    /// # Panics
    /// If a file is incomplete: its process was killed, and may have found more.
    pub fn read(dir: &Path) -> Self {
        let mut findings = Findings::default();
        for file in files_in(dir) {
            let text = std::fs::read_to_string(&file).expect("valgrind's file can be read");
            let document = Document::parse(&text).unwrap_or_else(|error| panic!("{}: {error}\n{text}", file.display()));
            findings.processes += 1;
            findings.add(document.root_element());
        }
        findings
    }

    fn add(&mut self, process: Node) {
        for error in process.children().filter(|node| node.has_tag_name("error")) {
            // The server leaves it to the kernel to free what a process still has at its end.
            let is_leak = text_of(error, "kind").starts_with("Leak_");
            let error = MemoryError::read(error);
            if error.is_of_the_extension() {
                self.of_the_extension.push(error);
            } else if !is_leak {
                self.of_the_server.push(error);
            }
        }
        let counts = process.children().filter(|node| node.has_tag_name("suppcounts"));
        for pair in counts.flat_map(|counts| counts.children()).filter(Node::is_element) {
            let count: usize = text_of(pair, "count").parse().expect("a count is a number");
            *self.suppressed.entry(text_of(pair, "name")).or_default() += count;
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Findings { processes, of_the_extension, of_the_server, suppressed } = self;
        writeln!(f, "{processes} processes: {} errors of the extension, {} of the server", of_the_extension.len(), of_the_server.len())?;
        for (name, count) in suppressed {
            writeln!(f, "{count} times: {name}")?;
        }
        of_the_extension.iter().chain(of_the_server).try_for_each(|error| write!(f, "\n{error}"))
    }
}

impl MemoryError {
    fn read(error: Node) -> Self {
        let what = error.children().find(|node| node.has_tag_name("xwhat"));
        MemoryError {
            what: match what {
                Some(what) => text_of(what, "text"),
                None => text_of(error, "what"),
            },
            // The stack of the misuse and, if there is one, that of the allocation.
            frames: error.descendants().filter(|node| node.has_tag_name("frame")).map(Frame::read).collect(),
        }
    }

    fn is_of_the_extension(&self) -> bool {
        self.frames.iter().any(|frame| frame.object.ends_with(LIBRARY))
    }
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.what)?;
        self.frames.iter().try_for_each(|frame| writeln!(f, "    {frame}"))
    }
}

impl Frame {
    fn read(frame: Node) -> Self {
        let (file, line) = (text_of(frame, "file"), text_of(frame, "line"));
        Frame { function: text_of(frame, "fn"), object: text_of(frame, "obj"), line: format!("{file}:{line}") }
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = self.object.rsplit('/').next().unwrap_or_default();
        write!(f, "{} ({object}, {})", self.function, self.line)
    }
}

/// The text of the node's child of that name; empty if there is none.
fn text_of(node: Node, name: &str) -> String {
    let child = node.children().find(|child| child.has_tag_name(name));
    child.and_then(|child| child.text()).unwrap_or_default().to_owned()
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the server's folder can be listed");
    entries
        .map(|entry| entry.expect("the server's folder can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "xml"))
        .collect()
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

#[cfg(test)]
mod tests {
    use super::instructions_in;

    #[test]
    fn callgrinds_total_is_parsed() {
        let log = "==7== Events    : Ir\n==7== Collected : 58205712\n==7== \n==7== I   refs:      58,205,712\n";
        assert_eq!(instructions_in(log), Some(58_205_712));
        assert_eq!(instructions_in("==7== Command: postgres\n"), None);
    }
}
