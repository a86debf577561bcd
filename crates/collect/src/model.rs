//! The queue under many thread schedules, with shuttle. A failure prints its schedule, which `shuttle::replay` can run
//! again.
//!
//! `FIBULA_MODEL_SCHEDULES` is the number of schedules; `./dev model` tries many.

use std::env;
use std::time::Duration;

use shuttle::sync::Arc;
use shuttle::thread;

use crate::queue::{Burst, Queue, Taken};

/// Few enough for every run of the tests.
const SCHEDULES: usize = 1_000;

fn schedules() -> usize {
    match env::var("FIBULA_MODEL_SCHEDULES") {
        Ok(number) => number.parse().expect("FIBULA_MODEL_SCHEDULES is a number"),
        Err(_) => SCHEDULES,
    }
}

/// A burst of two datagrams that say their numbers, long enough that two of them fill a queue.
fn burst(number: u64) -> Burst {
    let mut burst = Burst::default();
    for part in [0, 1] {
        let mut datagram = vec![0; 40_000];
        datagram[..8].copy_from_slice(&(2 * number + part).to_be_bytes());
        burst.push("192.0.2.1:9".parse().unwrap(), number, &datagram);
    }
    burst
}

/// Datagrams come out in order, each once; those that the queue refuses do not; the end comes after all of them.
#[test]
fn datagrams_come_in_order_or_are_refused() {
    shuttle::check_random(
        || {
            let queue = Arc::new(Queue::new(0));
            let writer = {
                let queue = Arc::clone(&queue);
                thread::spawn(move || {
                    let refused = (0..4).filter(|&number| !queue.put(&mut burst(number))).count();
                    queue.close();
                    refused
                })
            };
            let mut numbers = Vec::new();
            loop {
                match queue.take(Duration::from_secs(1)) {
                    Taken::Burst(burst) => {
                        for (head, datagram) in burst.datagrams() {
                            let number = u64::from_be_bytes(*datagram.first_chunk().unwrap());
                            assert_eq!(head.time, number / 2);
                            numbers.push(number);
                        }
                        queue.recycle(burst);
                    }
                    Taken::Nothing => {}
                    Taken::Closed => break,
                }
            }
            let refused = writer.join().unwrap();
            assert_eq!(numbers.len() + 2 * refused, 8);
            assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
        },
        schedules(),
    );
}
