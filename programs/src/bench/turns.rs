//! The order in which contenders take turns.

/// Runs each contender once in each round, in the order of [`turns`].
pub fn interleaved<T>(rounds: usize, contenders: &mut [T], mut turn: impl FnMut(usize, &mut T)) {
    for round in 0..rounds {
        for place in turns(round, contenders.len()) {
            turn(round, &mut contenders[place]);
        }
    }
}

/// The order of a round. The first one changes from round to round, and every other round runs backwards, so that each
/// of two neighbours follows the other equally often.
fn turns(round: usize, contenders: usize) -> impl Iterator<Item = usize> {
    let is_backwards = round % 2 == 1;
    (0..contenders).map(move |turn| {
        let place = (round + turn) % contenders;
        if is_backwards { contenders - 1 - place } else { place }
    })
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn each_runs_once_a_round_and_before_its_neighbour_in_about_half() {
        const CONTENDERS: usize = 9;
        let rounds: Vec<Vec<usize>> =
            (0..9).map(|round| turns(round, CONTENDERS).collect()).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..CONTENDERS).collect::<Vec<_>>());
        }
        for one in 0..CONTENDERS - 1 {
            let place =
                |round: &[usize], contender| round.iter().position(|&other| other == contender);
            let is_first = |round: &&Vec<usize>| place(round, one) < place(round, one + 1);
            let times = rounds.iter().filter(is_first).count();
            assert!(
                (4..=6).contains(&times),
                "{one} comes first in {times} of 9 rounds: {rounds:?}"
            );
        }
    }
}
