//! The guard against clock steps.
//!
//! A wall clock can step: NTP, a resumed virtual machine, an operator. [`Guard`] remembers the highest reading with which this backend has
//! issued an ID, so that a sequence that is reset just as the clock steps back still starts above every ID that this backend can have
//! issued. It also detects forward jumps, because a clock that jumps forward and is corrected later leaves sequences ahead of it. The guard
//! works on readings that the caller passes; only [`Clock`] reads the machine's monotonic clock.

use std::time::{Duration, Instant};

/// The wall clock has jumped forward if it gains more than this on the monotonic clock between two checks. One second is far above what
/// slewing does (NTP slews at most 500 ppm), and far below what matters to an operator.
const FORWARD_JUMP_US: i64 = 1_000_000;

/// A clock reading, and the floor below which no ID may be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock, in microseconds since 1970.
    pub reading_us: i64,
    /// The highest reading with which this backend has issued an ID; at least `reading_us`.
    pub high_water_us: i64,
}

/// A step of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The clock reads this many microseconds less than before.
    Backward(i64),
    /// The clock gained this many microseconds on the monotonic clock.
    Forward(i64),
}

/// The steps of one backend's clock, and its highest reading with which an ID was issued.
///
/// ```
/// use pg_snowflake_policies::clock::{Guard, Now, Step};
///
/// let start = 1_800_000_000_000_000;
/// let mut guard = Guard::default();
/// let (now, _) = guard.observe(start, || 0);
/// guard.note_issued(now);
///
/// let (now, step) = guard.observe(start - 300, || 10);
/// assert_eq!(step, Some(Step::Backward(300)));
/// assert_eq!(now, Now { reading_us: start - 300, high_water_us: start });
/// assert_eq!(guard.backward.count, 1);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// `None` until the first reading.
    last: Option<LastReading>,
    /// Not of every reading: a call that is refused, while the clock is an hour ahead, must not stop the session for an hour.
    high_water_us: i64,
    /// The steps back.
    pub backward: Steps,
    /// The jumps forward.
    pub forward: Steps,
}

/// The number of clock steps in one direction, and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The number of steps.
    pub count: i64,
    /// The size of the largest step, in microseconds.
    pub largest_us: i64,
    /// The wall clock after the last step, in microseconds since 1970.
    pub last_at_us: Option<i64>,
}

impl Steps {
    fn add(&mut self, us: i64, wall_us: i64) {
        self.count += 1;
        self.largest_us = self.largest_us.max(us);
        self.last_at_us = Some(wall_us);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastReading {
    wall_us: i64,
    /// The wall and monotonic readings that forward jumps are measured from.
    anchor_wall_us: i64,
    anchor_monotonic_us: i64,
}

impl Guard {
    /// Records a reading of the wall clock, in microseconds since 1970, and returns the step if the clock
    /// stepped. `monotonic_us` reads a monotonic clock, in microseconds.
    ///
    /// `monotonic_us` is called for the first reading, after a step back, and when the wall clock has moved by
    /// more than a second since the last call: a smaller movement cannot hide a jump of more than a second.
    #[inline(always)]
    pub fn observe(&mut self, wall_us: i64, monotonic_us: impl FnOnce() -> i64) -> (Now, Option<Step>) {
        let Some(last) = &mut self.last else {
            self.last = Some(LastReading::new(wall_us, monotonic_us()));
            return (self.now(wall_us), None);
        };

        let step = if wall_us < last.wall_us {
            let size = last.wall_us - wall_us;
            *last = LastReading::new(wall_us, monotonic_us());
            Some(Step::Backward(size))
        } else if wall_us - last.anchor_wall_us > FORWARD_JUMP_US {
            let monotonic_us = monotonic_us();
            let gained = (wall_us - last.anchor_wall_us) - (monotonic_us - last.anchor_monotonic_us);
            *last = LastReading::new(wall_us, monotonic_us);
            (gained > FORWARD_JUMP_US).then_some(Step::Forward(gained))
        } else {
            last.wall_us = wall_us;
            None
        };

        match step {
            None => {}
            Some(Step::Backward(us)) => self.backward.add(us, wall_us),
            Some(Step::Forward(us)) => self.forward.add(us, wall_us),
        }
        (self.now(wall_us), step)
    }

    /// Records that an ID was issued with a reading.
    #[inline]
    pub fn note_issued(&mut self, now: Now) {
        self.high_water_us = self.high_water_us.max(now.high_water_us);
    }

    #[inline]
    fn now(&self, reading_us: i64) -> Now {
        Now { reading_us, high_water_us: self.high_water_us.max(reading_us) }
    }
}

impl LastReading {
    #[inline]
    fn new(wall_us: i64, monotonic_us: i64) -> Self {
        LastReading { wall_us, anchor_wall_us: wall_us, anchor_monotonic_us: monotonic_us }
    }
}

/// The machine's clocks, seen through a [`Guard`]. The caller reads the wall clock.
#[derive(Debug)]
pub struct Clock {
    guard: Guard,
    monotonic_origin: Option<Instant>,
}

impl Clock {
    /// A clock that has not been read.
    pub const fn unread() -> Self {
        let none = Steps { count: 0, largest_us: 0, last_at_us: None };
        let guard = Guard { last: None, high_water_us: 0, backward: none, forward: none };
        Clock { guard, monotonic_origin: None }
    }

    /// Records a reading of the wall clock, in microseconds since 1970.
    #[inline(always)]
    pub fn read(&mut self, wall_us: i64) -> (Now, Option<Step>) {
        let monotonic_origin = &mut self.monotonic_origin;
        self.guard.observe(wall_us, || micros(monotonic_origin.get_or_insert_with(Instant::now).elapsed()))
    }

    /// Records that an ID was issued with a reading.
    #[inline]
    pub fn note_issued(&mut self, now: Now) {
        self.guard.note_issued(now);
    }

    /// The guard, with the steps so far.
    #[inline]
    pub fn guard(&self) -> &Guard {
        &self.guard
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const START: i64 = 1_700_000_000 * SECOND;

    #[test]
    fn a_step_is_a_lower_reading_or_a_gain_of_more_than_a_second() {
        const HOUR: i64 = 3600 * SECOND;
        let (backward, forward) = (|us| Some(Step::Backward(us)), |us| Some(Step::Forward(us)));
        /// Of the wall clock after `START`, and of the monotonic clock.
        type Reading = (i64, i64, Option<Step>);
        let cases: [(&str, &[Reading]); 7] = [
            ("a steady clock", &[(0, 0, None), (1, 1, None), (1, 1, None), (5 * SECOND, 5 * SECOND, None)]),
            ("a step back", &[(500, 500, None), (200, 501, backward(300)), (201, 502, None), (600, 901, None)]),
            ("a jump", &[(0, 0, None), (HOUR + 10, 10, forward(HOUR)), (HOUR + 20, 20, None)]),
            // The second reading is less than a second after the first; the jump itself makes it more.
            ("a jump between close readings", &[(0, 0, None), (900_000, 900_000, None), (1_900_002, 900_001, forward(SECOND + 1))]),
            ("a gain of a second", &[(0, 0, None), (2 * SECOND, SECOND, None)]),
            ("a long pause", &[(0, 0, None), (24 * HOUR, 24 * HOUR, None)]),
            ("a jump after a step back", &[(0, 0, None), (-HOUR, 1, backward(HOUR)), (0, 2, forward(HOUR - 1))]),
        ];
        for (case, readings) in cases {
            let mut guard = Guard::default();
            for &(wall, monotonic, step) in readings {
                assert_eq!(guard.observe(START + wall, || monotonic).1, step, "{case}: {wall}");
            }
        }
    }

    #[test]
    fn steps_are_counted_by_direction_with_the_largest() {
        let mut guard = Guard::default();
        for wall in [0, -300, -200, -900, 5 * SECOND, 8 * SECOND, 7 * SECOND] {
            guard.observe(START + wall, || 0);
        }
        let steps = |count, largest_us, last| Steps { count, largest_us, last_at_us: Some(START + last) };
        assert_eq!(guard.backward, steps(3, SECOND, 7 * SECOND));
        assert_eq!(guard.forward, steps(2, 5 * SECOND + 900, 8 * SECOND));
    }

    #[test]
    fn the_monotonic_clock_is_not_read_while_the_wall_clock_moves_little() {
        let mut guard = Guard::default();
        guard.observe(START, || 0);
        guard.observe(START + SECOND, || panic!("not needed"));
    }
}
