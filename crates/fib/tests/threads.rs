//! One table, many threads.

use std::thread;

use crate::common::dense;
use fibula_core::{Addr, Hop, Lookup};
use fibula_fib::{Fib, FibOptions, Pod};
use fibula_testkit::{Oracle, probes};

fn is_shared<T: Send + Sync + Clone>() {}

/// Threads look up until engines for routes and lengths were compiled meanwhile; every answer is right.
fn ask<A: Addr + Pod>(fib: Fib, addrs: &[A], expected: &[Hop]) -> usize {
    let mut answers = vec![Hop::NONE; addrs.len()];
    let mut batches = 0;
    for _ in 0..40 {
        for (addrs, expected) in addrs.chunks(301).zip(expected.chunks(301)) {
            let answers = &mut answers[..addrs.len()];
            fib.lookup_batch(addrs, answers);
            assert_eq!(answers, expected);
            let family = fib.family::<A>();
            family.numbers(addrs, answers);
            for (number, expected) in answers.iter().zip(expected) {
                let hop = number.index().map(|index| family.routes().get(index as usize).hop);
                assert_eq!(hop.unwrap_or(Hop::NONE), *expected);
            }
            family.lengths(addrs, answers);
            assert!(answers.iter().zip(expected).all(|(a, e)| a.is_none() == e.is_none()));
            batches += 1;
        }
    }
    batches
}

#[test]
fn a_table_is_shared() {
    is_shared::<Fib>();
    let table = dense(30);
    let fib = Fib::of_table(table.clone(), &FibOptions::default()).unwrap();
    let addrs: Vec<u32> = probes::boundary(&table.v4).collect();
    let mut expected = vec![Hop::NONE; addrs.len()];
    Oracle::new(&table.v4).lookup_batch(&addrs, &mut expected);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let fib = fib.clone();
                scope.spawn(|| ask(fib, &addrs, &expected))
            })
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 40 * addrs.len().div_ceil(301));
        }
    });
    let made: Vec<_> =
        fib.family::<u32>().memory().tables().iter().map(|(name, _)| *name).collect();
    assert!(made.contains(&"numbers") && made.contains(&"lengths"), "{made:?}");
}
