//! What writer and readers do to each other, tried in many schedules by shuttle. A failure prints its schedule,
//! which `shuttle::replay` runs again.
//!
//! `FIBULA_MODEL_SCHEDULES` is the number of schedules of each check; `./dev model` tries many.

use std::env;

use fibula_simd::Isa;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::{Batch, Cache, Field, Flow, Form, MISS, Mask, Match, Reader, Writer};

/// Schedules of each check: few enough for every run of the tests.
const SCHEDULES: usize = 1_000;
/// Megaflows, one after the other.
const STEPS: u32 = 5;

fn schedules() -> usize {
    match env::var("FIBULA_MODEL_SCHEDULES") {
        Ok(number) => number.parse().expect("FIBULA_MODEL_SCHEDULES is a number"),
        Err(_) => SCHEDULES,
    }
}

/// The megaflow of a step: another mask each, so that subtables come and go as well.
fn megaflow(step: u32) -> Match {
    Match::new(Flow::default(), Mask::prefix(Field::Ipv4Dst, step))
}

fn search(reader: &mut Reader) -> u32 {
    let mut batch = Batch::new(Form::Crc);
    batch.push(&Flow::default());
    let mut numbers = [0];
    reader.search(&batch, &mut numbers);
    numbers[0]
}

/// The writer replaces one megaflow by the next, each step a generation, and says of a number that it is free
/// when no reader can have it. Readers see steps in order, each as a whole, and no number that is free.
#[test]
fn readers_see_generations_in_order_and_no_free_number() {
    shuttle::check_random(
        || {
            let mut cache = Cache::with(Form::Crc, Isa::Scalar, 1);
            cache.insert(megaflow(0), 0);
            let mut writer = Writer::new(cache);
            let free: Arc<Vec<AtomicBool>> =
                Arc::new((0..=STEPS).map(|_| AtomicBool::new(false)).collect());
            let readers: Vec<_> = [false, true]
                .into_iter()
                .map(|exact| {
                    let mut reader =
                        if exact { writer.reader_with_exact() } else { writer.reader() };
                    let free = Arc::clone(&free);
                    thread::spawn(move || {
                        let mut last = 0;
                        for round in 0..6 {
                            let number = search(&mut reader);
                            assert_ne!(number, MISS, "a step is there as a whole");
                            assert!(number >= last, "{number} after {last}");
                            assert_eq!(u64::from(number) + 1, reader.generation());
                            let is_free = free[number as usize].load(Ordering::SeqCst);
                            assert!(!is_free, "{number} is free and was found");
                            last = number;
                            if round == 3 {
                                reader.release();
                            }
                        }
                    })
                })
                .collect();
            let mut freed = 0;
            for step in 1..=STEPS {
                writer.remove(&megaflow(step - 1));
                writer.insert(megaflow(step), step);
                assert_eq!(writer.publish(), u64::from(step) + 1);
                // Number n is that of generation n + 1.
                while freed + 1 < writer.oldest() {
                    free[freed as usize].store(true, Ordering::SeqCst);
                    freed += 1;
                }
            }
            readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
            assert_eq!(writer.oldest(), u64::from(STEPS) + 1);
            assert_eq!(writer.len(), 1);
        },
        schedules(),
    );
}
