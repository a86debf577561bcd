//! Work on batches by several threads, whose results are taken in the order of the batches.
//!
//! The calling thread reads batches, gives them to the threads in turn, and takes the results in the same turn. Each
//! thread has a few batches at most, which bounds memory.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::scope;

use crate::AnnotateError;

/// The batches that a thread has at most, one of them in work.
const AHEAD: usize = 2;

/// Gives batches to threads.
pub(crate) struct Ordered<'o, T, R> {
    to: Vec<SyncSender<T>>,
    from: Vec<Receiver<R>>,
    /// Works on a batch at once, if there is only this thread.
    alone: Option<Box<dyn FnMut(T) -> R + 'o>>,
    take: Box<dyn FnMut(R) -> Result<(), AnnotateError> + 'o>,
    sent: usize,
    taken: usize,
    failed: bool,
}

impl<'o, T, R> Ordered<'o, T, R> {
    fn new(take: impl FnMut(R) -> Result<(), AnnotateError> + 'o) -> Self {
        let (to, from, take) = (Vec::new(), Vec::new(), Box::new(take));
        Self { to, from, alone: None, take, sent: 0, taken: 0, failed: false }
    }

    /// Gives a batch away. Results of earlier ones may be taken before.
    pub(crate) fn push(&mut self, batch: T) -> Result<(), AnnotateError> {
        if let Some(alone) = &mut self.alone {
            let result = alone(batch);
            return self.take(result);
        }
        if self.sent - self.taken == AHEAD * self.to.len() {
            self.next()?;
        }
        let thread = self.sent % self.to.len();
        self.sent += 1;
        self.to[thread].send(batch).map_err(|_| ended())
    }

    /// Takes the result of the oldest batch.
    fn next(&mut self) -> Result<(), AnnotateError> {
        let result = self.from[self.taken % self.from.len()].recv().map_err(|_| ended());
        self.taken += 1;
        self.failed |= result.is_err();
        self.take(result?)
    }

    fn take(&mut self, result: R) -> Result<(), AnnotateError> {
        let taken = (self.take)(result);
        self.failed |= taken.is_err();
        taken
    }

    /// Takes the remaining results, up to the first error.
    fn finish(&mut self) -> Result<(), AnnotateError> {
        while self.taken < self.sent && !self.failed {
            self.next()?;
        }
        Ok(())
    }
}

/// Works on the batches that `give` pushes, with a thread for each of the states, and calls `take` with each result in
/// order. Returns the states. The error is that of the first batch with one.
pub(crate) fn in_order<T: Send, R: Send, S: Send>(
    mut states: Vec<S>,
    work: impl Fn(&mut S, T) -> R + Sync,
    take: impl FnMut(R) -> Result<(), AnnotateError>,
    give: impl FnOnce(&mut Ordered<'_, T, R>) -> Result<(), AnnotateError>,
) -> Result<Vec<S>, AnnotateError> {
    if let [state] = &mut states[..] {
        let mut ordered = Ordered::new(take);
        ordered.alone = Some(Box::new(|batch| work(state, batch)));
        give(&mut ordered)?;
        drop(ordered);
        return Ok(states);
    }
    scope(|scope| {
        let (mut ordered, mut threads) = (Ordered::new(take), Vec::new());
        for mut state in states {
            let (give_batch, batches) = sync_channel::<T>(AHEAD);
            let (give_result, results) = sync_channel(AHEAD);
            let work = &work;
            threads.push(scope.spawn(move || {
                for batch in batches {
                    if give_result.send(work(&mut state, batch)).is_err() {
                        break;
                    }
                }
                state
            }));
            ordered.to.push(give_batch);
            ordered.from.push(results);
        }
        let given = give(&mut ordered);
        // Faults of earlier batches come before the one that ended reading.
        let done = ordered.finish().and(given);
        drop(ordered);
        let states: Result<_, _> =
            threads.into_iter().map(|thread| thread.join().map_err(|_| ended())).collect();
        done.and(states)
    })
}

/// A thread that panicked has reported it.
fn ended() -> AnnotateError {
    AnnotateError::File { what: "a thread ended early".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Doubles 0 to 99 on some threads, and fails at some of them.
    fn doubled(threads: usize, fails: &[u32], reads: u32) -> (Vec<u32>, Result<u32, String>) {
        let error = |at: u32| AnnotateError::File { what: at.to_string() };
        let mut taken = Vec::new();
        let done = in_order(
            vec![0u32; threads],
            |count, at: u32| {
                *count += 1;
                std::thread::sleep(std::time::Duration::from_micros(u64::from(at * 7 % 50)));
                if fails.contains(&at) { Err(error(at)) } else { Ok(2 * at) }
            },
            |result| {
                taken.push(result?);
                Ok(())
            },
            |ordered| {
                (0..reads).try_for_each(|at| ordered.push(at))?;
                if reads < 100 { Err(error(reads)) } else { Ok(()) }
            },
        );
        let done = done.map(|counts| counts.iter().sum()).map_err(|error| error.to_string());
        (taken, done)
    }

    #[test]
    fn results_are_in_order() {
        for threads in [1, 2, 3, 8] {
            let all: Vec<u32> = (0..100).map(|at| 2 * at).collect();
            assert_eq!(doubled(threads, &[], 100), (all.clone(), Ok(100)));
            for (fails, reads, first) in
                [(&[70, 60, 99][..], 100, 60), (&[0], 100, 0), (&[], 50, 50), (&[49, 3], 50, 3)]
            {
                let (taken, done) = doubled(threads, fails, reads);
                assert_eq!((&taken[..], done), (&all[..first], Err(first.to_string())));
            }
        }
    }
}
