//! Tests of the writer and its readers under many thread schedules, with shuttle. A failure prints its schedule,
//! which `shuttle::replay` can run again.
//!
//! `FIBULA_MODEL_SCHEDULES` is the number of schedules of each check; `./dev model` tries many.

use std::env;

use fibula_simd::Isa;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use crate::{
    Action, Batch, Cache, ClassifierOptions, Condition, Field, Flow, MISS, Mask, Match, Reader,
    Rule, RuleId, Rules, SharedClassifier, Writer,
};

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
    let mut batch = Batch::new();
    batch.push(&Flow::default());
    let mut numbers = [0];
    reader.search(&batch, &mut numbers);
    numbers[0]
}

/// The writer replaces one megaflow by the next, with a generation for each step, and frees a number when no reader can
/// have it. Readers see steps in order, each as a whole, and no number that is free.
#[test]
fn readers_see_generations_in_order_and_no_free_number() {
    shuttle::check_random(
        || {
            let mut cache = Cache::with(Isa::Scalar, 1);
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

/// A change of the rules.
#[derive(Clone)]
enum Step {
    Insert(Box<Rule>),
    Remove(u32),
}

const PACKETS: u32 = 3;

/// The rule that each packet hits.
type Answers = Vec<Option<RuleId>>;

fn packet(dst: u32) -> Flow {
    let mut flow = Flow::default();
    flow.set(Field::IpVersion, 4);
    flow.set(Field::Ipv4Dst, dst.into());
    flow
}

/// Rules that are added and removed, and the rule that each packet hits before the first step and after each.
fn steps() -> (Vec<Step>, Vec<Answers>) {
    let any = |priority| {
        let mut rule = Rule::new(Action::Drop);
        rule.priority = priority;
        rule
    };
    let to = |dst: u32, priority| {
        any(priority).when(Field::Ipv4Dst, Condition::Is(dst.into())).expect("a condition")
    };
    let steps = vec![
        Step::Insert(Box::new(any(1))),
        Step::Insert(Box::new(to(1, 2))),
        Step::Remove(0),
        Step::Insert(Box::new(to(2, 3))),
        Step::Remove(1),
        Step::Insert(Box::new(any(9))),
    ];
    let mut rules = Rules::new();
    let answers =
        |rules: &Rules| (0..PACKETS).map(|dst| Some(rules.first_match(&packet(dst))?.0)).collect();
    let mut all = vec![answers(&rules)];
    for step in &steps {
        match step {
            Step::Insert(rule) => assert!(rules.insert((**rule).clone()).is_ok()),
            Step::Remove(id) => assert!(rules.remove(RuleId(*id)).is_some()),
        }
        all.push(answers(&rules));
    }
    (steps, all)
}

/// Each answer of a batch was right at some time between its beginning and its end, with a cache that has room for all
/// megaflows, and with one whose numbers are used again and again.
#[test]
fn answers_were_right_while_rules_changed() {
    let (steps, answers) = steps();
    let right = Arc::new(answers);
    for megaflows in [1, 2, 16] {
        let (steps, right) = (steps.clone(), Arc::clone(&right));
        let run = move || {
            let cache = Cache::with(Isa::Scalar, 1);
            let options = ClassifierOptions { megaflows, exact: megaflows == 2 };
            let shared = SharedClassifier::with(Rules::new(), cache, &options);
            // How many steps have begun, and how many are over.
            let (begun, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
            let reader = |number: usize| {
                let (mut reader, right) = (shared.reader(), Arc::clone(&right));
                let (begun, over) = (Arc::clone(&begun), Arc::clone(&over));
                thread::spawn(move || {
                    let mut batch = Batch::new();
                    (0..PACKETS).for_each(|dst| batch.push(&packet(dst)));
                    for round in 0..4 {
                        let mut found = vec![None; PACKETS as usize];
                        let first = over.load(Ordering::SeqCst);
                        reader.classify(round, &batch, &mut found);
                        let last = begun.load(Ordering::SeqCst);
                        for (packet, found) in found.iter().enumerate() {
                            let is_right = (first..=last).any(|at| right[at][packet] == *found);
                            assert!(is_right, "{packet}: {found:?} in steps {first} to {last}");
                        }
                        if round as usize == number {
                            reader.release();
                        }
                    }
                })
            };
            let readers = [reader(1), reader(2)];
            for (number, step) in steps.iter().enumerate() {
                begun.store(number + 1, Ordering::SeqCst);
                match step {
                    Step::Insert(rule) => assert!(shared.insert((**rule).clone()).is_ok()),
                    Step::Remove(id) => assert!(shared.remove(RuleId(*id)).is_some()),
                }
                over.store(number + 1, Ordering::SeqCst);
            }
            readers.into_iter().for_each(|reader| reader.join().expect("a reader"));
            assert!(shared.megaflows().len() <= megaflows);
            assert_eq!(shared.counts().packets, 2 * 4 * u64::from(PACKETS));
        };
        shuttle::check_random(run, schedules() / 2);
    }
}
