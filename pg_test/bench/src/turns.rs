//! The order in which contenders take turns.

use std::time::Duration;

/// Runs each contender once in each round, in the order of [`turns`].
pub fn interleaved<T>(rounds: usize, contenders: &mut [T], mut turn: impl FnMut(usize, &mut T)) {
    for round in 0..rounds {
        for place in turns(round, contenders.len()) {
            turn(round, &mut contenders[place]);
        }
    }
}

/// Turns of a statement that takes a fraction of a second, for each turn of one that takes seconds. A busy neighbour of the
/// machine changes the cost of an ID by half for a moment, and many short turns show what is left without it. Each third of the
/// rounds has new sessions, since where the memory of one happens to lie changes its times, too.
pub const SHORT_ROUNDS: usize = 3;

const SHORT: Duration = Duration::from_millis(500);

/// Whether a statement that takes this time has a turn in this one of `SHORT_ROUNDS` times as many rounds.
pub fn has_turn(round: usize, time: Duration) -> bool {
    time < SHORT || round.is_multiple_of(SHORT_ROUNDS)
}

/// The order of a round: every other round is the one before it backwards, so that each contender comes before each other one about
/// equally often. Each two rounds begin with another contender.
fn turns(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    let is_backwards = round % 2 == 1;
    (0..contenders).map(move |turn| {
        let turn = if is_backwards { contenders - 1 - turn } else { turn };
        (round / 2 + turn) % contenders
    })
}

#[cfg(test)]
mod tests {
    use super::{has_turn, turns};
    use std::time::Duration;

    #[test]
    fn a_long_turn_is_in_each_third_round() {
        let rounds = |seconds| (0..27).filter(|&round| has_turn(round, Duration::from_secs_f64(seconds))).count();
        assert_eq!((rounds(0.1), rounds(0.6)), (27, 9));
    }

    #[test]
    fn each_runs_once_a_round_and_before_each_other_one_in_about_half() {
        for contenders in [2, 3, 4, 9, 15] {
            let rounds: Vec<Vec<usize>> = (0..9).map(|round| turns(round, contenders).collect()).collect();
            for round in &rounds {
                let mut sorted = round.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..contenders).collect::<Vec<_>>());
            }
            for one in 0..contenders {
                for other in one + 1..contenders {
                    let is_first = |round: &&Vec<usize>| round.iter().find(|&&next| next == one || next == other) == Some(&one);
                    let times = rounds.iter().filter(is_first).count();
                    assert!((4..=5).contains(&times), "{one} comes before {other} in {times} of 9 rounds: {rounds:?}");
                }
            }
        }
    }
}
