//! The wall clock of a server, by libfaketime.

use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "clock";

/// Makes a server that is about to start read its clock from the file in `dir`.
pub fn preload(postgres: &mut Command, dir: &Path) {
    let file = dir.join(FILE);
    if !file.exists() {
        set(dir, 0.0);
    }
    postgres
        .env("LD_PRELOAD", library())
        .env("FAKETIME_TIMESTAMP_FILE", file)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
}

/// Offsets the clock from the true one by this many seconds, at once for every process of the server.
pub fn set(dir: &Path, seconds_off: f64) {
    // Under another name first: a process that reads a half-written file would use the true time.
    let new = dir.join("clock.new");
    std::fs::write(&new, format!("{seconds_off:+.6}\n")).expect("the clock can be written");
    std::fs::rename(new, dir.join(FILE)).expect("the clock can be set");
}

/// Debian's package libfaketime puts the library in a folder named after the architecture.
fn library() -> PathBuf {
    std::fs::read_dir("/usr/lib")
        .expect("there is a /usr/lib")
        .map(|entry| entry.expect("a folder").path().join("faketime/libfaketime.so.1"))
        .find(|path| path.exists())
        .expect("the tests of the clock need the package libfaketime")
}
