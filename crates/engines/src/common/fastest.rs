//! Which of several ways to do the same work is the fastest on this machine.

use std::time::Duration;

use fibula_simd::Stopwatch;

/// The best time of each of `N` ways, which run in turns: another program's interruption hits one round of one of them.
pub(crate) fn best_times<const N: usize>(
    rounds: usize,
    mut run: impl FnMut(usize),
) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..rounds {
        for (way, best) in best.iter_mut().enumerate() {
            let start = Stopwatch::start();
            run(way);
            *best = start.elapsed().min(*best);
        }
    }
    best
}

/// The first way whose time is at most a `1 / margin` above the best one's, so that ways that are equally fast do not
/// alternate from process to process.
pub(crate) fn first_of_the_best<const N: usize>(times: [Duration; N], margin: u32) -> usize {
    let best = times.iter().min().copied().unwrap_or_default();
    times.iter().position(|time| *time <= best + best / margin).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_run_in_turns() {
        let mut order = Vec::new();
        let times: [Duration; 3] = best_times(2, |way| order.push(way));
        assert_eq!(order, [0, 1, 2, 0, 1, 2]);
        assert!(times.iter().all(|time| *time < Duration::MAX));
    }

    #[test]
    fn a_later_way_has_to_be_faster() {
        let first = |times: [u64; 3]| first_of_the_best(times.map(Duration::from_nanos), 32);
        assert_eq!(first([1000, 1000, 1000]), 0);
        assert_eq!(first([1031, 1200, 1000]), 0, "within a 32nd");
        assert_eq!(first([1032, 1031, 1000]), 1, "the first of those that are");
        assert_eq!(first([1032, 1040, 1000]), 2);
        assert_eq!(first([900, 1000, 1000]), 0);
        assert_eq!(first([0, 0, 0]), 0, "a clock that stands still");
    }
}
