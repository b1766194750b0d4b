//! When a server renews its leases, and when it asks again after a failure. A registry has thousands of servers, and they start
//! together, or come back together: random numbers keep their requests apart from then on.
//!
//! A random number is an argument. It is a fraction of 2³².

use std::time::Duration;

/// How much sooner than due a renewal may be, as a fraction of the third of a lease.
const EARLIER: u32 = 10;

/// The longest time to connect, unless a third of the lease is longer: that of `authentication_timeout` in PostgreSQL.
const MAX_CONNECT: Duration = Duration::from_secs(60);

/// The time between two renewals, and the longest time that a request may take.
#[must_use]
pub fn third(lease: Duration) -> Duration {
    lease / 3
}

/// The time until the next renewal, of a lease of which `left` is left: until two thirds are left, and up to a tenth less. It is short
/// after a claim that was repeated, since the registry gives the answer of the first time.
///
/// ```
/// use pg_snowflake_policies::pacing::until_renewal;
/// use std::time::Duration;
///
/// let lease = Duration::from_secs(30);
/// assert_eq!(until_renewal(lease, lease, 0), Duration::from_secs(10));
/// assert!(until_renewal(lease, lease, u32::MAX) >= Duration::from_secs(9));
/// ```
#[must_use]
pub fn until_renewal(left: Duration, lease: Duration, random: u32) -> Duration {
    let third = third(lease);
    let due = left.saturating_sub(2 * third).clamp(third / 10, third);
    due - part(due / EARLIER, random)
}

/// How long a server tries to connect. `failing_for` is the time since the first of its requests without an answer in a row.
///
/// A registry that is back may have more servers than it can connect in a third of a lease. A server that gives up loses its
/// place, and leaves the registry the work. So the time grows once the lease has ended.
///
/// ```
/// use pg_snowflake_policies::pacing::time_to_connect;
/// use std::time::Duration;
///
/// let seconds = Duration::from_secs;
/// let times = [0, 11, 20, 600].map(|failing_for| time_to_connect(seconds(failing_for), seconds(12)));
/// assert_eq!(times, [4, 4, 20, 60].map(seconds));
/// ```
#[must_use]
pub fn time_to_connect(failing_for: Duration, lease: Duration) -> Duration {
    if failing_for < lease { third(lease) } else { failing_for.min(MAX_CONNECT).max(third(lease)) }
}

/// How long to wait after a request without an answer: less, the sooner the leases end. Once they have ended, the pause grows with the
/// outage, up to a third of a lease.
///
/// ```
/// use pg_snowflake_policies::pacing::pause_after_failure;
/// use std::time::Duration;
///
/// let seconds = Duration::from_secs;
/// let longest = |failing_for| pause_after_failure(seconds(failing_for), seconds(12), u32::MAX);
/// assert_eq!(longest(11), Duration::from_millis(400));
/// assert!(longest(600) > Duration::from_millis(3_900));
/// ```
#[must_use]
pub fn pause_after_failure(failing_for: Duration, lease: Duration, random: u32) -> Duration {
    let short = (lease / 30).clamp(Duration::from_millis(50), Duration::from_millis(500));
    let longest = if failing_for < lease { short } else { third(lease).min(failing_for / 4).max(short) };
    let shortest = short / 2;
    shortest + part(longest - shortest, random)
}

/// How long after a refusal the shards are claimed again, and the pause that counts for the next one. `last` is that of the refusal before,
/// of the same shards, `refused_for` the time since the first of their refusals in a row, and `retry_in` the time until the registry can
/// grant one of them, if it knows.
///
/// The pause grows once they have been refused for a lease: that of a holder that crashed has ended then, and the present holder is alive.
///
/// ```
/// use pg_snowflake_policies::pacing::pause_after_refusal;
/// use std::time::Duration;
///
/// let (lease, half) = (Duration::from_secs(12), Duration::from_millis(500));
/// let pause = |last, refused_for, retry_in| pause_after_refusal(last, Duration::from_secs(refused_for), retry_in, lease);
/// assert_eq!(pause(None, 0, None), (half, half));
/// assert_eq!(pause(Some(half), 12, Some(lease)), (half, half));
/// assert_eq!(pause(Some(half), 13, None), (2 * half, 2 * half));
/// assert_eq!(pause(Some(6 * half), 60, Some(half)), (half, Duration::from_secs(4))); // a third of the lease
/// ```
#[must_use]
pub fn pause_after_refusal(
    last: Option<Duration>,
    refused_for: Duration,
    retry_in: Option<Duration>,
    lease: Duration,
) -> (Duration, Duration) {
    const SHORTEST: Duration = Duration::from_millis(500);
    let pause = last.filter(|_| refused_for > lease).map_or(SHORTEST, |last| (2 * last).min(third(lease).max(SHORTEST)));
    (retry_in.map_or(pause, |retry_in| retry_in.min(pause)), pause)
}

/// That fraction of a time.
fn part(whole: Duration, random: u32) -> Duration {
    whole.mul_f64(f64::from(random) / 2_f64.powi(32))
}
