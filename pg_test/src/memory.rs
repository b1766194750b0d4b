//! Sessions that run out of memory: at a limit of the kernel, or because `malloc()` fails from a chosen call on.

use crate::installation;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const FILE: &str = "malloc";
const LIBRARY: &str = "malloc.so";

/// `malloc()` and its kin, which fail in one process from a chosen call on. The names of glibc's own are in its manual,
/// under "Replacing malloc".
const SOURCE: &str = r#"
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/mman.h>
    #include <unistd.h>

    struct control { volatile long pid, left, failed; };
    static struct control *control;

    __attribute__((constructor)) static void start(void) {
        int file = open(getenv("MALLOC_CONTROL"), O_RDWR);
        void *map = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (map != MAP_FAILED) control = map;
        close(file);
    }

    static int fails(void) {
        if (!control || control->pid != getpid()) return 0;
        if (control->left > 0) { control->left--; return 0; }
        control->failed++;
        return 1;
    }

    extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
                *__libc_memalign(size_t, size_t);
    void *malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }
    void *calloc(size_t count, size_t size) { return fails() ? NULL : __libc_calloc(count, size); }
    void *realloc(void *block, size_t size) { return fails() ? NULL : __libc_realloc(block, size); }
    void *memalign(size_t alignment, size_t size) { return fails() ? NULL : __libc_memalign(alignment, size); }
    void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
    int posix_memalign(void **block, size_t alignment, size_t size) {
        return (*block = memalign(alignment, size)) ? 0 : 12;
    }
"#;

/// Whether the machine has a C compiler, which the failing `malloc()` takes.
pub fn can_fail() -> bool {
    Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Makes a server that is about to start use the `malloc()` that can fail.
pub(crate) fn preload(postgres: &mut Command, dir: &Path) {
    let (file, library) = (dir.join(FILE), dir.join(LIBRARY));
    if !library.exists() {
        std::fs::write(&file, [0; 24]).expect("a file can be written");
        installation::chown_to_server_user(&file);
        let mut compiler = installation::as_server_user("cc", dir);
        compiler.args(["-O1", "-shared", "-fPIC", "-x", "c", "-", "-o", LIBRARY]);
        installation::run(&mut compiler, SOURCE.as_bytes());
    }
    postgres.env("LD_PRELOAD", library).env("MALLOC_CONTROL", file);
}

/// The control of `malloc()` in the processes of a server with [`crate::cluster::Builder::failing_malloc`].
pub struct Malloc(File);

impl Malloc {
    pub fn of(dir: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(dir.join(FILE));
        Malloc(file.expect("the server has a malloc() that can fail"))
    }

    /// Lets the next `left` calls of the process succeed, and all later ones fail, while `run` runs. Returns what it
    /// returns, and how many calls have failed.
    pub fn fail_after<T>(&self, pid: i32, left: i64, run: impl FnOnce() -> T) -> (T, i64) {
        self.write([0, left, 0]);
        self.write_pid(pid.into());
        let returned = run();
        self.write_pid(0);
        let mut failed = [0; 8];
        self.0.read_exact_at(&mut failed, 16).expect("the file has three numbers");
        (returned, i64::from_ne_bytes(failed))
    }

    fn write_pid(&self, pid: i64) {
        self.0.write_all_at(&pid.to_ne_bytes(), 0).expect("a file can be written");
    }

    fn write(&self, numbers: [i64; 3]) {
        let bytes = numbers.map(i64::to_ne_bytes);
        self.0.write_all_at(bytes.as_flattened(), 0).expect("a file can be written");
    }
}

/// Which memory of a process is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// All of its address space, as `ulimit -v` limits it.
    AddressSpace,
    /// Its private writable memory, as `ulimit -d` limits it. The kernel counts the same with
    /// `vm.overcommit_memory = 2`, for all processes together.
    Data,
}

/// Lets a process allocate that many bytes more than it has now, and no others, while `run` runs.
pub fn limited<T>(pid: i32, limit: Limit, more: u64, run: impl FnOnce() -> T) -> T {
    let (option, field) = match limit {
        Limit::AddressSpace => ("--as", "VmSize:"),
        Limit::Data => ("--data", "VmData:"),
    };
    let command = |bytes: &str| {
        // The owner of a process may limit it, and root may not everywhere. The limit that root sets remains.
        let mut prlimit = installation::as_server_user("prlimit", &std::env::temp_dir());
        prlimit.arg(format!("--pid={pid}")).arg(format!("{option}={bytes}:"));
        prlimit
    };
    let used = crate::process::status(pid, field) << 10;
    installation::run(&mut command(&(used + more).to_string()), b"");
    let returned = run();
    // The session may have ended.
    let _ = command("unlimited").output();
    returned
}
