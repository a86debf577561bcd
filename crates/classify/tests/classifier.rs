//! The classifier: cache, slow path and rules that change.

use std::collections::HashSet;

use fibula_classify::{Batch, Classifier, ClassifierOptions, Flow, Match, Rule, RuleId, Rules};
use fibula_testkit::Rng;
use fibula_testkit::classbench::{Filter, RuleSetKind, filters, probes, traffic};

use crate::common::{flow, rule, table, under};

fn classify(classifier: &mut Classifier, now: u64, flows: &[Flow]) -> Vec<Option<RuleId>> {
    let mut all = Vec::new();
    for flows in flows.chunks(Batch::MAX) {
        let mut batch = Batch::new();
        flows.iter().for_each(|flow| batch.push(flow));
        let mut found = vec![None; flows.len()];
        classifier.classify(now, &batch, &mut found);
        all.extend(found);
    }
    all
}

fn expected(rules: &Rules, flow: &Flow) -> Option<RuleId> {
    rules.first_match(flow).map(|(id, _)| id)
}

fn flows(set: &[Filter], count: usize, seed: u64) -> Vec<Flow> {
    traffic(set, count, seed).iter().map(flow).collect()
}

#[test]
fn answers_are_those_of_the_rules() {
    let set = filters(RuleSetKind::Fw, 300, 1);
    let mut packets = flows(&set, 500, 2);
    packets.extend(set.iter().step_by(5).flat_map(probes).map(|packet| flow(&packet)));
    let rules = table(&set);
    let right: Vec<_> = packets.iter().map(|flow| expected(&rules, flow)).collect();
    for exact in [false, true] {
        let mut options = ClassifierOptions::default();
        options.exact = exact;
        let mut classifier = Classifier::new(rules.clone(), &options);
        for pass in 0..3 {
            assert_eq!(classify(&mut classifier, pass, &packets), right, "{exact}");
        }
        let counts = classifier.counts();
        assert_eq!(counts.packets, 3 * packets.len() as u64);
        assert!(counts.misses <= packets.len() as u64, "later passes hit: {counts:?}");
        let hits: u64 = rules.iter().map(|(id, _)| classifier.packets(Some(id))).sum();
        assert_eq!(hits + classifier.packets(None), counts.packets);
        let of_megaflows: u64 = classifier.megaflows().map(|flow| flow.packets).sum();
        assert_eq!(of_megaflows, counts.packets);
    }
}

/// Rules come and go between batches: no answer is outdated, and of the megaflows those that stay are right, while
/// those that went had a packet whose answer changed.
#[test]
fn megaflows_that_are_wrong_go_and_only_those() {
    for kind in RuleSetKind::ALL {
        let set = filters(kind, 300, 4);
        let mut rng = Rng::new(5);
        let mut classifier = Classifier::new(table(&set[..200]), &ClassifierOptions::default());
        let packets = flows(&set, 600, 6);
        let (mut went, mut came) = (0, set[200..].iter().cycle());
        for step in 0..60 {
            for (flow, found) in packets.iter().zip(classify(&mut classifier, step, &packets)) {
                assert_eq!(found, expected(classifier.rules(), flow), "{kind:?} {step} {flow:?}");
            }
            let before: Vec<_> = classifier.megaflows().map(|m| (m.matched, m.rule)).collect();
            let old = classifier.rules().clone();
            let changed = if step % 2 == 0 {
                let mut rule = rule(came.next().unwrap());
                rule.priority = rng.below(2) as u32;
                classifier.insert(rule.clone()).unwrap();
                rule
            } else {
                let ids: Vec<RuleId> = old.iter().map(|(id, _)| id).collect();
                // Often one that packets hit.
                let hit: Vec<RuleId> = before.iter().filter_map(|(_, rule)| *rule).collect();
                let often = rng.chance(0.7);
                let id = rng.choose(if often { &hit } else { &ids }).unwrap();
                classifier.remove(id).unwrap()
            };
            let after: HashSet<Match> = classifier.megaflows().map(|m| m.matched).collect();
            for (matched, _) in before {
                let anywhere = under(matched.flow(), matched.mask(), &mut rng);
                if after.contains(&matched) {
                    let now = expected(classifier.rules(), &anywhere);
                    assert_eq!(expected(&old, &anywhere), now, "{kind:?} {step}: it should go");
                } else {
                    let packet = in_both(&changed, &matched);
                    let now = expected(classifier.rules(), &packet);
                    assert_ne!(expected(&old, &packet), now, "{kind:?} {step}: it should stay");
                    went += 1;
                }
            }
        }
        assert!(went > 20, "{kind:?}: only {went} megaflows went");
    }
}

/// A packet of both: the bits of both, and of ranges the first value that fits.
fn in_both(rule: &Rule, matched: &Match) -> Flow {
    let words =
        std::array::from_fn(|at| matched.flow().words()[at] | rule.mask_match().flow().words()[at]);
    let mut flow = Flow::from_words(words);
    for range in rule.ranges() {
        let field = range.field;
        let mask = matched.mask().get(field) | rule.mask_match().mask().get(field);
        let value = flow.get(field) & mask;
        let fits = (range.first..=range.last).find(|at| at & mask == value);
        flow.set(field, fits.expect("they meet"));
    }
    assert!(rule.matches(&flow) && matched.matches(&flow));
    flow
}

#[test]
fn megaflows_are_bounded_and_expire() {
    let set = filters(RuleSetKind::Ipc, 500, 7);
    let mut options = ClassifierOptions::default();
    options.megaflows = 100;
    let mut classifier = Classifier::new(table(&set), &options);
    let packets = flows(&set, 2000, 8);
    for (flow, found) in packets.iter().zip(classify(&mut classifier, 1, &packets)) {
        assert_eq!(found, expected(classifier.rules(), flow));
    }
    assert_eq!(classifier.megaflows().count(), 100);
    assert!(classifier.counts().evicted > 100);
    // One flow keeps coming while others press in: it stays.
    let mut misses = 0;
    for (now, flow) in packets.iter().enumerate().take(600) {
        classify(&mut classifier, 2 + now as u64, &[packets[0]]);
        let before = classifier.counts().misses;
        classify(&mut classifier, 2 + now as u64, &[packets[0]]);
        misses += classifier.counts().misses - before;
        classify(&mut classifier, 2 + now as u64, &[*flow]);
    }
    assert_eq!(misses, 0);
    let there = classifier.megaflows().count();
    let idle = classifier.megaflows().filter(|megaflow| megaflow.used < 590).count();
    assert!(idle > 0 && idle < there);
    assert_eq!(classifier.expire(590), idle);
    assert_eq!(
        (classifier.megaflows().count(), classifier.counts().expired),
        (there - idle, idle as u64)
    );
    classifier.clear();
    assert_eq!(classifier.megaflows().count(), 0);
    assert_eq!(classify(&mut classifier, 700, &packets[..9]).len(), 9);
}
