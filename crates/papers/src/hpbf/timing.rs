//! Times of things that take turns.

use fibula_papers::clock::timed;

/// The seconds of this thread that each of so many takes, in so many runs; before them one that does not count.
pub fn take_turns(runs: u32, n: usize, mut each: impl FnMut(usize)) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); n];
    for round in 0..=runs {
        for (i, times) in times.iter_mut().enumerate() {
            let ((), time) = timed(|| each(i));
            if round > 0 {
                times.push(time.as_secs_f64());
            }
        }
    }
    times
}
