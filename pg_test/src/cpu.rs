//! What processes have used of the processors, and how often they slept.

use std::time::Duration;

/// User and system time of a process so far, to 10 ms.
///
/// # Panics
/// Where there is no such process.
pub fn cpu_time(pid: i32) -> Duration {
    usage(pid).expect("the process lives").own
}

/// How often a process has gone to sleep so far, waiting for something.
///
/// # Panics
/// Where there is no such process.
pub fn sleeps(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.expect("proc(5) has it").trim().parse().expect("a number")
}

/// What a process has used so far, to 10 ms each.
pub(crate) struct Usage {
    pub own: Duration,
    /// What those of its children have used that have ended and been waited for.
    pub of_ended_children: Duration,
}

/// Nothing where there is no such process.
pub(crate) fn usage(pid: i32) -> Option<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc(5): fields 14 to 17, in ticks of 10 ms; the name in field 2 may hold spaces.
    let after_name = stat.rsplit(')').next()?;
    let ticks: Vec<u64> = after_name
        .split_whitespace()
        .skip(11)
        .take(4)
        .map(|field| field.parse().expect("a number"))
        .collect();
    let time = |ticks: &[u64]| Duration::from_millis(ticks.iter().sum::<u64>() * 10);
    Some(Usage { own: time(&ticks[..2]), of_ended_children: time(&ticks[2..]) })
}
