//! Threads that put work somewhere and ring, and one that works and sleeps, tried in many schedules by shuttle.

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::sync::{Arc, Condvar, Mutex};
use shuttle::thread;

use super::bell::{Bell, Signal};

/// A signal that counts. A wait for it never times out.
#[derive(Default)]
struct Counted {
    raised: Mutex<usize>,
    changed: Condvar,
}

impl Counted {
    fn wait(&self) {
        let raised = self.raised.lock().unwrap();
        drop(self.changed.wait_while(raised, |raised| *raised == 0).unwrap());
    }
}

impl Signal for Counted {
    fn raise(&self) {
        *self.raised.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    fn clear(&self) {
        self.wait();
        *self.raised.lock().unwrap() -= 1;
    }
}

/// The sleeper misses no work (it would sleep for ever, which shuttle reports), and no signal is left over.
#[test]
fn nobody_sleeps_through_work() {
    shuttle::check_random(
        || {
            const EACH: usize = 3;
            let bell = Arc::new(Bell::with(Counted::default()));
            let work = Arc::new(AtomicUsize::new(0));
            let producers: Vec<_> = (0..2)
                .map(|_| {
                    let (bell, work) = (Arc::clone(&bell), Arc::clone(&work));
                    thread::spawn(move || {
                        for _ in 0..EACH {
                            work.fetch_add(1, Ordering::SeqCst);
                            bell.ring();
                        }
                    })
                })
                .collect();
            let mut done = 0;
            while done < 2 * EACH {
                let there = work.swap(0, Ordering::SeqCst);
                done += there;
                if there == 0 {
                    bell.sleep();
                    if work.load(Ordering::SeqCst) == 0 {
                        bell.signal().wait();
                    }
                    bell.wake();
                }
            }
            producers.into_iter().for_each(|producer| producer.join().unwrap());
            assert_eq!(*bell.signal().raised.lock().unwrap(), 0, "signals that nobody took");
        },
        2_000,
    );
}
