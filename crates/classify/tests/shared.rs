//! Rules that come and go while threads classify.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use fibula_classify::{Batch, ClassifierOptions, Flow, Rule, RuleId, Rules, SharedClassifier};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{RuleSetKind, filters, probes, traffic};

use crate::common::{flow, rule};

enum Step {
    Insert(Box<Rule>),
    Remove(RuleId),
}

/// Steps that fill and empty a table, and the rules before the first and behind each.
fn steps(kind: RuleSetKind, count: usize) -> (Vec<Step>, Vec<Rules>) {
    let (set, mut rng) = (filters(kind, count, 1), Rng::new(2));
    let mut rules = Rules::new();
    let mut new = set.iter().cycle();
    let (mut steps, mut all) = (Vec::new(), vec![Rules::new()]);
    for step in 0..count {
        let fills = step / 40 % 2 == 0;
        if rng.chance(if fills { 0.8 } else { 0.3 }) || rules.is_empty() {
            let mut rule = rule(new.next().unwrap());
            rule.priority = rng.below(3) as u32;
            rules.insert(rule.clone()).unwrap();
            steps.push(Step::Insert(Box::new(rule)));
        } else {
            let ids: Vec<RuleId> = rules.iter().map(|(id, _)| id).collect();
            let id = rng.choose(&ids).unwrap();
            rules.remove(id);
            steps.push(Step::Remove(id));
        }
        all.push(rules.clone());
    }
    (steps, all)
}

/// The linear scan over the rules of each step is the oracle: an answer is right if it was so at some time between the
/// beginning and the end of its batch.
#[test]
fn answers_were_right_at_some_time() {
    for (kind, megaflows, exact) in [
        (RuleSetKind::Fw, 65_536, false),
        (RuleSetKind::Ipc, 50, false),
        (RuleSetKind::Acl, 20, true),
    ] {
        let (steps, rules) = steps(kind, 240);
        let set = filters(kind, 240, 1);
        let mut packets: Vec<Flow> = traffic(&set, 150, 3).iter().map(flow).collect();
        packets.extend(set.iter().step_by(60).flat_map(probes).map(|packet| flow(&packet)));
        let of = |rules: &Rules, flow| rules.first_match(flow).map(|(id, _)| id);
        let answers = |rules| packets.iter().map(|flow| of(rules, flow)).collect::<Vec<_>>();
        let right: Arc<Vec<Vec<Option<RuleId>>>> = Arc::new(rules.iter().map(answers).collect());

        let mut options = ClassifierOptions::default();
        (options.megaflows, options.exact) = (megaflows, exact);
        let shared = SharedClassifier::new(Rules::new(), &options);
        let (begun, over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let last_step = steps.len();
        let readers: Vec<_> = (0..2)
            .map(|number| {
                let (mut reader, packets) = (shared.reader(), packets.clone());
                let (right, begun, over) =
                    (Arc::clone(&right), Arc::clone(&begun), Arc::clone(&over));
                thread::spawn(move || {
                    let (mut rng, mut rounds, mut first) = (Rng::new(number), 0u64, 0);
                    let mut batch = Batch::new();
                    let mut seen = 0;
                    while first < last_step {
                        let size = 1 + rng.below(Batch::MAX as u64) as usize;
                        let from = rng.below(packets.len() as u64) as usize;
                        let places: Vec<usize> =
                            (from..from + size).map(|at| at % packets.len()).collect();
                        batch.clear();
                        places.iter().for_each(|at| batch.push(&packets[*at]));
                        let mut found = vec![None; size];
                        first = over.load(Ordering::SeqCst);
                        reader.classify(rounds, &batch, &mut found);
                        let last = begun.load(Ordering::SeqCst);
                        for (place, found) in places.iter().zip(found) {
                            let is_right = (first..=last).any(|at| right[at][*place] == found);
                            assert!(is_right, "{place}: {found:?} in steps {first} to {last}");
                        }
                        seen += size as u64;
                        rounds += 1;
                        if rounds % 50 == 0 {
                            reader.release();
                        }
                    }
                    seen
                })
            })
            .collect();
        for (number, step) in steps.into_iter().enumerate() {
            begun.store(number + 1, Ordering::SeqCst);
            match step {
                Step::Insert(rule) => assert!(shared.insert(*rule).is_ok()),
                Step::Remove(id) => assert!(shared.remove(id).is_some()),
            }
            over.store(number + 1, Ordering::SeqCst);
            if number % 16 == 0 {
                // Readers see many of the steps.
                thread::yield_now();
            }
        }
        let seen: u64 = readers.into_iter().map(|reader| reader.join().expect("a reader")).sum();
        assert!(shared.megaflows().len() <= megaflows);
        let counts = shared.counts();
        assert_eq!(counts.packets, seen);
        let ids = (0..last_step as u32).map(|id| shared.packets(Some(RuleId(id))));
        assert_eq!(ids.sum::<u64>() + shared.packets(None), seen);
        assert_eq!(shared.with_rules(Rules::len), rules[last_step].len());
    }
}

/// What one reader learns another one knows, and a reader that rests holds nobody back.
#[test]
fn readers_share_what_they_learn() {
    let set = filters(RuleSetKind::Ipc, 300, 5);
    let mut rules = Rules::new();
    for filter in &set {
        rules.insert(rule(filter)).unwrap();
    }
    let packets: Vec<Flow> = traffic(&set, 200, 6).iter().map(flow).collect();
    let shared = SharedClassifier::new(rules.clone(), &ClassifierOptions::default());
    let (mut first, mut second) = (shared.reader(), shared.reader());
    let mut batch = Batch::new();
    packets.iter().for_each(|flow| batch.push(flow));
    let right: Vec<_> =
        packets.iter().map(|flow| rules.first_match(flow).map(|(id, _)| id)).collect();
    let mut found = vec![None; packets.len()];
    // It keeps the generation before the first megaflow from here on.
    second.classify(1, &Batch::new(), &mut []);
    first.classify(1, &batch, &mut found);
    assert_eq!(found, right);
    assert_eq!(shared.counts().misses, packets.len() as u64);
    for now in 2..4 {
        found.fill(None);
        first.classify(now, &batch, &mut found);
        assert_eq!(found, right);
    }
    assert_eq!(shared.counts().misses, packets.len() as u64, "published beside one that rests");
    second.classify(4, &batch, &mut found);
    assert_eq!(found, right);
    assert_eq!(shared.counts().misses, packets.len() as u64, "known to the other one");
    let of_megaflows: u64 = shared.megaflows().iter().map(|megaflow| megaflow.packets).sum();
    assert_eq!(of_megaflows, shared.counts().packets);

    let there = shared.megaflows().len();
    assert_eq!(shared.expire(4), 0);
    assert_eq!(shared.expire(5), there);
    assert_eq!((shared.megaflows().len(), shared.counts().expired), (0, there as u64));
    first.classify(6, &batch, &mut found);
    assert_eq!((found, shared.megaflows().len()), (right, there));
    // Readers that went keep their counts.
    let packets = shared.counts().packets;
    drop((first, second));
    drop(shared.reader());
    assert_eq!(shared.counts().packets, packets);
    shared.clear();
    assert!(shared.megaflows().is_empty());
}
