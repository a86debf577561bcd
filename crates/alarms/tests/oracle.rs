//! All kinds against an oracle that keeps every change and judges every rule on every route after each step.

use std::collections::BTreeSet;
use std::time::Duration;

use fibula_alarms::{
    AlarmEvent, AlarmKind, AlarmLimits, AlarmRule, Alarms, Occasion, RouteChange, WatchedRoute,
};
use fibula_core::AnyPrefix;
use fibula_rpki::{PathValidity, Validity};
use proptest::prelude::*;

use crate::SECOND;

const PREFIXES: [&str; 7] = [
    "10.0.0.0/8",
    "10.0.0.0/16",
    "10.1.0.0/16",
    "10.1.2.0/24",
    "11.0.0.0/8",
    "2001:db8::/32",
    "2001:db8:1::/48",
];
const TABLES: [&str; 3] = ["a", "a/x", "b"];
const SESSIONS: [&str; 2] = ["s", "t"];
const PATHS: [(&str, Option<u32>); 5] =
    [("1 2", Some(2)), ("2", Some(2)), ("3 1 4", Some(4)), ("5 {2,4}", None), ("", None)];
const AFTER: u64 = 20;
const WITHIN: u64 = 15;
const CHANGES: usize = 3;
const QUIET: u64 = 40;

fn rules() -> Vec<AlarmRule> {
    let on = |kind, list: &[&str]| {
        AlarmRule::new("r", kind).on(list.iter().map(|prefix| prefix.parse().unwrap()))
    };
    let (after, within) = (Duration::from_secs(AFTER), Duration::from_secs(WITHIN));
    vec![
        on(AlarmKind::UnexpectedOrigin { origins: vec![2] }, &["10.0.0.0/8", "2001:db8::/32"]),
        on(AlarmKind::MoreSpecific { max_len: None, origins: vec![] }, &["10.0.0.0/8"]),
        on(
            AlarmKind::MoreSpecific { max_len: Some(16), origins: vec![2] },
            &["10.0.0.0/8", "10.1.0.0/16"],
        )
        .of_tables(["a".to_owned()]),
        AlarmRule::new("r", AlarmKind::NewlyInvalid),
        on(AlarmKind::Withdrawn { after }, &["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32"]),
        on(AlarmKind::Flapping { changes: CHANGES, within }, &["10.0.0.0/8", "2001:db8::/32"]),
        AlarmRule::new("r", AlarmKind::Leak { origins: vec![] }),
        on(AlarmKind::Leak { origins: vec![2] }, &["10.0.0.0/8"]).of_tables(["a".to_owned()]),
        AlarmRule::new("r", AlarmKind::PathThrough { ases: vec![4, 5], origins: vec![] }),
        on(
            AlarmKind::PathWithout { ases: vec![1], origins: vec![2] },
            &["10.0.0.0/8", "11.0.0.0/8"],
        )
        .of_tables(["b".to_owned()]),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    /// The best route of a prefix changes.
    Change { table: usize, prefix: usize, session: usize, route: Option<(usize, usize)> },
    /// A session begins to send its table, or is done.
    Session { session: usize, is_resending: bool, is_first: bool },
    /// Time passes.
    Wait(u64),
    /// What waits is judged.
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let route = prop::option::weighted(0.8, (0..PATHS.len(), 0..3usize));
    let change = (0..TABLES.len(), 0..PREFIXES.len(), 0..SESSIONS.len(), route)
        .prop_map(|(table, prefix, session, route)| Step::Change { table, prefix, session, route });
    let session = (0..SESSIONS.len(), any::<bool>(), any::<bool>()).prop_map(
        |(session, is_resending, is_first)| Step::Session { session, is_resending, is_first },
    );
    prop_oneof![
        8 => change,
        1 => session,
        3 => (0..12u64).prop_map(Step::Wait),
        3 => Just(Step::Settle),
    ]
}

/// A change as it was.
#[derive(Clone, Copy)]
struct Past {
    time: u64,
    table: usize,
    prefix: usize,
    session: usize,
    route: Option<WatchedRoute<'static>>,
    occasion: Occasion,
}

type Key = (usize, usize, usize);

/// What is true, from all changes.
#[derive(Default)]
struct Oracle {
    past: Vec<Past>,
    /// Whether each route of each rule counts as wrong, as it was judged last.
    active: BTreeSet<Key>,
    silent: BTreeSet<Key>,
    /// The first change that was not judged yet, and the last one's session.
    waits: std::collections::BTreeMap<Key, (u64, usize)>,
    /// Withdrawn routes that were judged as not back.
    missed: BTreeSet<Key>,
}

fn prefix(at: usize) -> AnyPrefix {
    PREFIXES[at].parse().unwrap()
}

fn covers(wide: AnyPrefix, prefix: AnyPrefix) -> bool {
    match (wide, prefix) {
        (AnyPrefix::V4(wide), AnyPrefix::V4(prefix)) => wide.covers(prefix),
        (AnyPrefix::V6(wide), AnyPrefix::V6(prefix)) => wide.covers(prefix),
        _ => false,
    }
}

fn len(prefix: AnyPrefix) -> u8 {
    match prefix {
        AnyPrefix::V4(prefix) => prefix.len(),
        AnyPrefix::V6(prefix) => prefix.len(),
    }
}

fn is_of(rule: &AlarmRule, table: usize, at: usize) -> bool {
    let table = TABLES[table];
    let is_named = rule.tables.is_empty()
        || rule.tables.iter().any(|name| table == name || table.starts_with(&format!("{name}/")));
    let exact =
        matches!(rule.kind, AlarmKind::UnexpectedOrigin { .. } | AlarmKind::Withdrawn { .. });
    let this = prefix(at);
    is_named
        && rule
            .prefixes
            .iter()
            .any(|&listed| if exact { listed == this } else { covers(listed, this) })
}

/// Whether a route is wrong by itself.
fn is_wrong(rule: &AlarmRule, at: usize, route: &WatchedRoute<'_>) -> bool {
    let path: Vec<u32> = route
        .as_path
        .replace(['{', '}', ','], " ")
        .split_whitespace()
        .map(|asn| asn.parse().unwrap())
        .collect();
    let from = |origins: &[u32]| route.origin_as.is_some_and(|asn| origins.contains(&asn));
    match &rule.kind {
        AlarmKind::UnexpectedOrigin { origins } => !from(origins),
        AlarmKind::MoreSpecific { max_len, origins } => {
            let is_allowed = max_len.is_some_and(|max| len(prefix(at)) <= max)
                && (origins.is_empty() || from(origins));
            !rule.prefixes.contains(&prefix(at)) && !is_allowed
        }
        AlarmKind::NewlyInvalid => {
            matches!(route.validity, Some(Validity::InvalidOrigin | Validity::InvalidLength))
        }
        AlarmKind::Leak { origins } => {
            route.path_validity == Some(PathValidity::Invalid)
                && (origins.is_empty() || from(origins))
        }
        AlarmKind::PathThrough { ases, .. } => path.iter().any(|asn| ases.contains(asn)),
        AlarmKind::PathWithout { ases, origins } => {
            from(origins) && !path.iter().any(|asn| ases.contains(asn))
        }
        _ => false,
    }
}

impl Oracle {
    fn of_key(&self, (_, table, prefix): Key) -> impl Iterator<Item = &Past> {
        self.past.iter().filter(move |past| past.table == table && past.prefix == prefix)
    }

    /// Whether it flaps, counted from all changes.
    fn flaps(&self, key: Key, now: u64) -> bool {
        let live = self.of_key(key).filter(|past| past.occasion == Occasion::Live);
        let times: Vec<u64> = live.map(|past| past.time).collect();
        let mut flaps = false;
        for (at, &time) in times.iter().enumerate() {
            let is_calm = at > 0 && time - times[at - 1] >= WITHIN * SECOND;
            let near = times[..=at].iter().filter(|before| time - **before < WITHIN * SECOND);
            flaps = (flaps && !is_calm) || near.count() >= CHANGES;
        }
        flaps && times.last().is_some_and(|last| now - last < WITHIN * SECOND)
    }

    /// Since when a route that was there is gone, and its session.
    fn gone(&self, key: Key) -> Option<(u64, usize)> {
        let mut found = None;
        let mut last = None;
        for past in self.of_key(key) {
            match past.route {
                Some(_) => (found, last) = (None, Some(past.session)),
                None if found.is_none() => {
                    found = Some((past.time, last.unwrap_or(past.session)));
                }
                None => {}
            }
        }
        found
    }

    /// Judges everything; `changed` is the route that just changed, `settles` says which session resends if what waits
    /// is judged.
    fn judge(
        &mut self,
        rules: &[AlarmRule],
        now: u64,
        changed: Option<Past>,
        settles: Option<[bool; 2]>,
    ) -> BTreeSet<Key> {
        for (number, rule) in rules.iter().enumerate() {
            for table in 0..TABLES.len() {
                for at in 0..PREFIXES.len() {
                    if is_of(rule, table, at) {
                        self.one((number, table, at), rule, now, changed, settles);
                    }
                }
            }
        }
        self.active.clone()
    }

    fn one(
        &mut self,
        key: Key,
        rule: &AlarmRule,
        now: u64,
        changed: Option<Past>,
        settles: Option<[bool; 2]>,
    ) {
        let set = |all: &mut BTreeSet<Key>, is: bool| {
            if is {
                all.insert(key)
            } else {
                all.remove(&key)
            };
        };
        match rule.kind {
            AlarmKind::Flapping { .. } => {
                let flaps = self.flaps(key, now);
                set(&mut self.active, flaps);
            }
            AlarmKind::Withdrawn { .. } => {
                let Some((time, session)) = self.gone(key) else {
                    self.missed.remove(&key);
                    set(&mut self.active, false);
                    return;
                };
                let due = time + AFTER * SECOND;
                let resends = settles.map(|resends| resends[session]);
                if now >= due
                    && resends.is_some_and(|resends| !resends || now >= due + QUIET * SECOND)
                {
                    self.missed.insert(key);
                }
                let is_missed = self.missed.contains(&key);
                set(&mut self.active, is_missed);
            }
            _ => {
                let last = self.of_key(key).last().copied();
                let route = last.and_then(|past| past.route);
                let wrong = route.is_some_and(|route| is_wrong(rule, key.2, &route));
                let mine = changed.filter(|past| (past.table, past.prefix) == (key.1, key.2));
                let mut is_judged = false;
                if let Some(past) = mine {
                    let is_known = self.active.contains(&key)
                        || self.silent.contains(&key)
                        || self.waits.contains_key(&key);
                    if wrong && !is_known && rule.kind == AlarmKind::NewlyInvalid {
                        set(&mut self.silent, past.occasion == Occasion::First);
                    }
                    if past.occasion == Occasion::Live {
                        is_judged = true;
                    } else if wrong || is_known {
                        let wait = self.waits.entry(key).or_insert((now, past.session));
                        wait.1 = past.session;
                    }
                }
                if let (Some(resends), Some(&(since, session))) = (settles, self.waits.get(&key)) {
                    is_judged |= !resends[session] || now >= since + QUIET * SECOND;
                }
                if is_judged {
                    self.waits.remove(&key);
                    let is_silent = self.silent.contains(&key);
                    set(&mut self.active, wrong && !is_silent);
                    set(&mut self.silent, wrong && is_silent);
                }
            }
        }
    }
}

/// The events, as an oracle sees them.
fn shown(events: &mut Vec<AlarmEvent>, numbers: &[usize]) -> (BTreeSet<Key>, BTreeSet<Key>) {
    let (mut begun, mut ended) = (BTreeSet::new(), BTreeSet::new());
    for event in events.drain(..) {
        let alarm = &event.alarm;
        let number = numbers[alarm.rule.parse::<usize>().unwrap()];
        let table = TABLES.iter().position(|table| **table == *alarm.table).unwrap();
        let at = PREFIXES.iter().position(|text| prefix_is(text, alarm.prefix)).unwrap();
        let to = if event.is_begin() { &mut begun } else { &mut ended };
        assert!(to.insert((number, table, at)), "reported twice: {alarm}");
    }
    (begun, ended)
}

fn prefix_is(text: &str, prefix: AnyPrefix) -> bool {
    text.parse::<AnyPrefix>().unwrap() == prefix
}

/// Runs the steps; returns the numbers of the rules whose alarms began, and ended.
fn run(steps: &[Step]) -> [BTreeSet<usize>; 2] {
    let mut reached = <[BTreeSet<usize>; 2]>::default();
    let named = rules().into_iter().enumerate();
    let rules: Vec<AlarmRule> =
        named.map(|(at, rule)| AlarmRule { name: at.to_string().into(), ..rule }).collect();
    let numbers: Vec<usize> = (0..rules.len()).collect();
    let limits = AlarmLimits { quiet: Duration::from_secs(QUIET), ..AlarmLimits::default() };
    let mut alarms = Alarms::new(rules.clone(), limits, 1);
    let (mut oracle, mut events, mut now) = (Oracle::default(), Vec::new(), SECOND);
    let mut resends = [(false, false); 2];
    for (at, step) in steps.iter().enumerate() {
        match *step {
            Step::Wait(seconds) => {
                now += seconds * SECOND;
                continue;
            }
            Step::Session { session, is_resending, is_first } => {
                resends[session] = (is_resending, is_first);
                continue;
            }
            Step::Change { .. } | Step::Settle => {}
        }
        // What ends by itself before the step.
        let before = oracle.active.clone();
        let between = oracle.judge(&rules, now, None, None);
        let after = match *step {
            Step::Wait(_) | Step::Session { .. } => between.clone(),
            Step::Change { table, prefix, session, route } => {
                let occasion = match resends[session] {
                    (false, _) => Occasion::Live,
                    (true, false) => Occasion::Resent,
                    (true, true) => Occasion::First,
                };
                let route = route.map(|(path, validity)| {
                    let (text, origin) = PATHS[path];
                    let route = WatchedRoute::bgp("p", origin, text);
                    let all = [None, Some(Validity::Valid), Some(Validity::InvalidOrigin)];
                    // The path's validity follows the origin's in another order, so that each occurs with each.
                    let path_validity = PathValidity::ALL.get((validity + path) % 4).copied();
                    WatchedRoute { validity: all[validity], path_validity, ..route }
                });
                let past = Past { time: now, table, prefix, session, route, occasion };
                let change = RouteChange {
                    time: now,
                    table: TABLES[table],
                    prefix: self::prefix(prefix),
                    session: Some(SESSIONS[session]),
                    route,
                    occasion,
                };
                alarms.change(&change, &mut events);
                oracle.past.push(past);
                oracle.judge(&rules, now, Some(past), None)
            }
            Step::Settle => {
                let is =
                    |name: &str| resends[SESSIONS.iter().position(|of| *of == name).unwrap()].0;
                alarms.settle(now, is, &mut events);
                oracle.judge(&rules, now, None, Some(resends.map(|(is, _)| is)))
            }
        };
        let (begun, ended) = shown(&mut events, &numbers);
        reached[0].extend(begun.iter().map(|key| key.0));
        reached[1].extend(ended.iter().map(|key| key.0));
        let mut wanted_begun: BTreeSet<Key> = after.difference(&between).copied().collect();
        let mut wanted_ended: BTreeSet<Key> = before.difference(&between).copied().collect();
        wanted_ended.extend(between.difference(&after));
        wanted_begun.extend(between.difference(&before));
        assert_eq!((begun, ended), (wanted_begun, wanted_ended), "step {at}: {step:?}");
        let active: usize = alarms.counts().iter().map(|counts| counts.active).sum();
        assert_eq!((active, alarms.active().count()), (after.len(), after.len()));
        assert_eq!(alarms.forgotten(), 0);
    }
    reached
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn alarms_are_those_of_the_oracle(steps in prop::collection::vec(step(), 1..120)) {
        run(&steps);
    }
}

/// The steps of the property reach what they are to test: each kind begins and ends alarms.
#[test]
fn every_kind_is_reached() {
    let route = |path, validity| Some((path, validity));
    let mut steps = Vec::new();
    for round in 0..6 {
        for table in 0..TABLES.len() {
            for prefix in 0..PREFIXES.len() {
                for change in [route(round % 5, round % 3), None, route((round + 1) % 5, 0)] {
                    steps.push(Step::Change { table, prefix, session: 0, route: change });
                }
            }
        }
        steps.push(Step::Wait(30));
        steps.push(Step::Settle);
    }
    for table in 0..TABLES.len() {
        for prefix in 0..PREFIXES.len() {
            steps.push(Step::Change { table, prefix, session: 0, route: None });
        }
    }
    steps.extend([Step::Wait(30), Step::Settle]);
    let all: BTreeSet<usize> = (0..rules().len()).collect();
    let [begun, mut ended] = run(&steps);
    assert_eq!(begun, all);
    // All routes are gone at the end: only a withdrawal can last.
    ended.insert(4);
    assert_eq!(ended, all);
}
