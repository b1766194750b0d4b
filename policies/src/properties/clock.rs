//! A backend never trusts a clock that stepped back, and counts every step back.

use crate::clock::{Guard, Step};
use arbitrary::Arbitrary;

/// The input of the target: how the clocks advance from reading to reading.
#[derive(Debug, Arbitrary)]
pub struct Input {
    first_s: u32,
    moves: Vec<Move>,
}

#[derive(Debug, Arbitrary)]
enum Move {
    /// Both clocks by this many microseconds.
    Pass(u32),
    /// The wall clock alone.
    Step(i32),
    /// The wall clock alone, by seconds.
    Leap(i32),
}

/// Panics if a property does not hold.
pub fn check(Input { first_s, moves }: Input) {
    let (mut wall_us, mut monotonic_us) = (i64::from(first_s) * 1_000_000, 0_i64);
    let mut guard = Guard::default();
    let (mut highest, mut backward, mut forward) = (wall_us, 0, 0);
    let (first, _) = guard.observe(wall_us, || monotonic_us);
    guard.note_issued(first);
    for step in moves {
        let before = wall_us;
        match step {
            Move::Pass(us) => {
                wall_us += i64::from(us);
                monotonic_us += i64::from(us);
            }
            Move::Step(us) => wall_us += i64::from(us),
            Move::Leap(s) => wall_us += i64::from(s) * 1_000_000,
        }

        let (now, seen) = guard.observe(wall_us, || monotonic_us);

        assert_eq!((now.reading_us, now.high_water_us), (wall_us, highest.max(wall_us)));
        // Any half of the readings issues an ID.
        if wall_us % 2 == 0 {
            guard.note_issued(now);
            highest = highest.max(wall_us);
        }
        match seen {
            Some(Step::Backward(us)) => {
                backward += 1;
                assert_eq!(us, before - wall_us);
            }
            _ => assert!(wall_us >= before, "a step back that was not seen"),
        }
        // A jump is measured from the last reading of the monotonic clock, so small steps may add up to one.
        if let Some(Step::Forward(us)) = seen {
            forward += 1;
            assert!(us > 1_000_000);
        }
        let jumped = matches!(step, Move::Step(us) if us > 2_000_000);
        assert!(!jumped || seen.is_some(), "a jump forward that was not seen");
        assert_eq!((guard.backward.count, guard.forward.count), (backward, forward));
    }
}
