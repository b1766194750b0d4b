//! Other servers with the same data: standbys, base backups, copies of the disk, the next major version.

use super::builder::SETTINGS;
use super::{Cluster, Options, Shutdown};
use crate::installation;
use crate::wait::wait_for;
use std::fs;
use std::path::{Path, PathBuf};

impl Cluster {
    /// A hot standby that streams from this server, with its own fake clock if this server has one.
    pub fn standby(&self) -> Self {
        let mut standby = self.base_backup_with(&["--write-recovery-conf"]);
        standby.start();
        standby
    }

    pub fn standby_on_host(&self, name: &str) -> Self {
        let mut standby = self.base_backup_with(&["--write-recovery-conf"]);
        standby.start_on_host(name);
        standby
    }

    /// A base backup of this server, which keeps running. The copy is not started.
    pub fn base_backup(&self) -> Self {
        self.base_backup_with(&[])
    }

    /// A copy of this server's disk at one instant, as a snapshot of its volume is. The server may be stopped. The copy is not started.
    pub fn snapshot(&self) -> Self {
        let copy = self.stopped_copy();
        let mut cp = installation::as_server_user("cp", copy.dir.path());
        cp.arg("--archive").arg(self.dir.path().join("data")).arg("data");
        let [pid_file, of_copy] = [self, &copy].map(|cluster| cluster.dir.path().join("data/postmaster.pid"));
        let frozen = pid_file.exists().then(|| self.freeze());
        installation::run(&mut cp, b"");
        if frozen.is_some() {
            // On another machine there is no process of that number.
            fs::remove_file(of_copy).expect("the file was copied");
        }
        copy
    }

    fn base_backup_with(&self, options: &[&str]) -> Self {
        let copy = self.stopped_copy();
        let mut command = copy.command("pg_basebackup");
        command
            .arg("--host")
            .arg(self.dir.path())
            .args(["--username=postgres", "--pgdata=data", "--checkpoint=fast", "--no-sync"])
            .args(options);
        installation::run(&mut command, b"");
        copy
    }

    /// Starts a base backup, replays the WAL in `archive` up to that restore point, and opens the server there.
    pub fn start_at_restore_point(&mut self, archive: &Path, restore_point: &str) {
        let restore_command = format!("cp {}/%f %p", archive.display());
        self.configure([
            ("archive_mode", "off"),
            ("restore_command", &restore_command),
            ("recovery_target_name", restore_point),
            ("recovery_target_action", "promote"),
        ]);
        let mut touch = installation::as_server_user("touch", self.dir.path());
        installation::run(touch.arg("data/recovery.signal"), b"");
        self.start();
        self.wait_until_it_writes();
    }

    /// Promotes this standby, and waits until it is a primary.
    pub fn promote(&self) {
        self.connect().execute("SELECT pg_promote(wait => false)", &[]).expect("a standby");
        self.wait_until_it_writes();
    }

    /// Stops the server, moves its data to the installation with that `bindir` by `pg_upgrade`, and starts it.
    pub fn upgrade(mut self, bindir: &Path) -> Self {
        self.stop(Shutdown::Fast);
        let mut new = Cluster::stopped(Options::default());
        bindir.clone_into(&mut new.bindir);
        installation::run(&mut installation::initdb(bindir, new.dir.path()), b"");
        new.configure(SETTINGS);
        let mut upgrade = new.command("pg_upgrade");
        upgrade.arg("--old-bindir").arg(&self.bindir).arg("--new-bindir").arg(bindir);
        upgrade.arg("--old-datadir").arg(self.dir.path().join("data"));
        upgrade.args(["--new-datadir=data", "--username=postgres", "--socketdir"]);
        upgrade.arg(new.dir.path());
        let output = upgrade.output().expect("pg_upgrade can be run");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{upgrade:?}: {}\n{said}{}", output.status, logs_of_pg_upgrade(&new.dir.path().join("data")));
        new.start();
        new
    }

    fn wait_until_it_writes(&self) {
        wait_for(&mut self.connect(), "SELECT NOT pg_is_in_recovery()", "recovery has ended");
    }
}

/// The last error of each program that a failed pg_upgrade has run, or else its last lines: pg_upgrade itself only names the files.
fn logs_of_pg_upgrade(data: &Path) -> String {
    let entries = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path());
    let logs = entries(data.join("pg_upgrade_output.d")).flat_map(|run| entries(run.join("log")));
    let tail = |log: PathBuf| {
        let text = fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let error = lines.iter().rposition(|line| line.contains("error:"));
        let start = error.unwrap_or(lines.len().saturating_sub(3));
        format!("{}:\n{}\n", log.display(), lines[start..].join("\n"))
    };
    logs.map(tail).collect()
}
