//! The free slots of a pool.
//!
//! ```text
//!   thread ──► a cache: up to 512 numbers ──magazines of 64──► queue of full magazines ──► other threads' caches
//! ```
//!
//! A thread takes numbers from a cache and returns them to it. It nearly always has the cache for itself, so a burst
//! costs one uncontended lock. Threads that only take numbers (they receive) and threads that only return them (they
//! send) exchange whole magazines through a lock-free queue. No thread waits for another: a thread skips a cache that
//! is in use.

use std::array;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;

use crossbeam_queue::ArrayQueue;

/// Numbers that are exchanged at once.
const MAGAZINE: usize = 64;

/// Numbers that a cache keeps: a thread that takes a burst of 256 and then gives it back exchanges nothing.
const KEEP: usize = 512;

pub(crate) struct Free {
    full: ArrayQueue<[u32; MAGAZINE]>,
    caches: Box<[Cache]>,
}

/// On separate cache lines, because the neighbours belong to other threads. Two lines, because the processor fetches
/// pairs.
#[repr(align(128))]
#[derive(Default)]
struct Cache(Mutex<Vec<u32>>);

impl Free {
    /// All numbers below `slots`.
    pub(crate) fn new(slots: u32) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        // More than threads that run at once, so that two of them seldom begin at the same one.
        let caches: Box<[Cache]> =
            (0..(4 * threads).next_power_of_two().min(128)).map(|_| Cache::default()).collect();
        let magazines = slots as usize / MAGAZINE;
        let full = ArrayQueue::new(magazines.max(1));
        for magazine in 0..magazines {
            let first = (magazine * MAGAZINE) as u32;
            full.push(array::from_fn(|at| first + at as u32)).expect("the queue has room for all");
        }
        let free = Self { full, caches };
        free.give((magazines * MAGAZINE) as u32..slots);
        free
    }

    /// Takes at most `most` numbers and returns how many. It takes fewer only if no more are free, or if another thread
    /// is busy with those that are.
    pub(crate) fn take(&self, most: usize, mut each: impl FnMut(u32)) -> usize {
        let mut cache = self.cache();
        let mut taken = 0;
        while taken < most && (!cache.is_empty() || self.refill(&mut cache)) {
            let from = cache.len() - cache.len().min(most - taken);
            taken += cache.len() - from;
            cache.drain(from..).for_each(&mut each);
        }
        taken
    }

    /// Takes numbers back.
    pub(crate) fn give(&self, numbers: impl Iterator<Item = u32>) {
        let mut cache = self.cache();
        cache.extend(numbers);
        while cache.len() > KEEP {
            let from = cache.len() - MAGAZINE;
            let magazine = array::from_fn(|at| cache[from + at]);
            // There are never more magazines than slots make.
            self.full.push(magazine).expect("the queue has room for all");
            cache.truncate(from);
        }
    }

    /// How many numbers are free.
    pub(crate) fn len(&self) -> usize {
        let cached = self
            .caches
            .iter()
            .map(|cache| cache.0.lock().unwrap_or_else(PoisonError::into_inner).len());
        cached.sum::<usize>() + self.full.len() * MAGAZINE
    }

    /// A full magazine, or else half of what another cache has: no slot is out of reach.
    fn refill(&self, cache: &mut Vec<u32>) -> bool {
        if let Some(magazine) = self.full.pop() {
            cache.extend(magazine);
            return true;
        }
        for other in &self.caches {
            // The caller's own is locked, which passes it over.
            let Ok(mut other) = other.0.try_lock() else { continue };
            if !other.is_empty() {
                let from = other.len() / 2;
                cache.extend(other.drain(from..));
                return true;
            }
        }
        false
    }

    /// This thread's cache, or the next one that nobody uses.
    fn cache(&self) -> MutexGuard<'_, Vec<u32>> {
        let own = number();
        let of = |at: usize| &self.caches[at % self.caches.len()].0;
        for at in own..own + self.caches.len() {
            match of(at).try_lock() {
                Ok(cache) => return cache,
                // An iterator of a caller's panicked between two numbers: the list is whole.
                Err(TryLockError::Poisoned(cache)) => return cache.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        of(own).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of this thread.
fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! { static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed); }
    NUMBER.with(|number| *number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn take(free: &Free, most: usize) -> Vec<u32> {
        let mut numbers = Vec::new();
        assert_eq!(free.take(most, |number| numbers.push(number)), numbers.len());
        numbers
    }

    #[test]
    fn each_number_is_there_once() {
        for slots in [1, 63, 64, 65, 1000, 4096] {
            let free = Free::new(slots);
            assert_eq!(free.len(), slots as usize);
            let numbers = take(&free, usize::MAX);
            assert_eq!(numbers.iter().copied().collect::<HashSet<_>>(), (0..slots).collect());
            assert_eq!((numbers.len(), free.len()), (slots as usize, 0));
            assert!(take(&free, 1).is_empty());
            free.give(numbers.into_iter());
            assert_eq!(free.len(), slots as usize);
        }
    }

    /// One thread only takes, one only gives, and a third does both: nothing is lost, doubled, or out of reach.
    #[test]
    fn threads_exchange_magazines() {
        const SLOTS: u32 = 300;
        let rounds: u32 = if cfg!(miri) { 300 } else { 30_000 };
        let free = Free::new(SLOTS);
        let owned: Vec<Mutex<bool>> = (0..SLOTS).map(|_| Mutex::new(false)).collect();
        let turn = |number: u32, to: bool| {
            let mut is_owned = owned[number as usize].lock().unwrap();
            assert_ne!(*is_owned, to, "slot {number} has two owners");
            *is_owned = to;
        };
        thread::scope(|scope| {
            let (queue, taken) = std::sync::mpsc::sync_channel::<Vec<u32>>(4);
            let (free, turn) = (&free, &turn);
            scope.spawn(move || {
                let mut left = rounds;
                while left > 0 {
                    let numbers = take(free, (left as usize).min(37));
                    numbers.iter().for_each(|&number| turn(number, true));
                    left -= numbers.len() as u32;
                    queue.send(numbers).unwrap();
                }
            });
            scope.spawn(move || {
                for numbers in taken {
                    numbers.iter().for_each(|&number| turn(number, false));
                    free.give(numbers.into_iter());
                }
            });
            scope.spawn(move || {
                for _ in 0..rounds / 50 {
                    let numbers = take(free, 50);
                    numbers.iter().for_each(|&number| turn(number, true));
                    numbers.iter().for_each(|&number| turn(number, false));
                    free.give(numbers.into_iter());
                }
            });
        });
        assert_eq!(free.len(), SLOTS as usize);
    }
}
