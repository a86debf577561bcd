//! The rules at work.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, AnyPrefix, Prefix};
use fibula_rib::Pod;

use crate::entry::{Entry, Held, Key, Memory, Seen};
use crate::index::RuleIndex;
use crate::{Alarm, AlarmEvent, AlarmKind, AlarmRule, Occasion, RouteChange};

/// The bounds of [`Alarms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlarmLimits {
    /// Routes that are wrong, and listed routes whose withdrawal is watched, over all rules and tables. Further ones
    /// raise no alarm.
    pub routes: usize,
    /// Routes whose changes are counted for flapping. A further one takes the place of the one that changed longest
    /// ago and does not flap.
    pub counters: usize,
    /// The longest time for which a change waits until its session has sent its table.
    pub quiet: Duration,
}

impl Default for AlarmLimits {
    /// 65,536 routes, 65,536 counters, five minutes.
    fn default() -> Self {
        Self { routes: 65_536, counters: 65_536, quiet: Duration::from_secs(300) }
    }
}

/// The figures of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AlarmCounts {
    /// Alarms that began.
    pub raised: u64,
    /// Alarms that have not ended.
    pub active: usize,
}

/// Judges changes by rules; see the [crate's page](crate).
///
/// Its owner passes in all changes of the tables, in order ([`Alarms::change`]), and calls [`Alarms::settle`] after
/// some of them and when time has passed.
pub struct Alarms {
    rules: Vec<AlarmRule>,
    index: RuleIndex,
    limits: AlarmLimits,
    /// The latest time that was passed in.
    now: u64,
    next_id: u64,
    scan: u64,
    entries: HashMap<Key, Entry>,
    /// The entries to which something happens by itself, by the time.
    due: BTreeSet<(u64, Key)>,
    /// Counters of routes that do not flap, by the time at which they are over.
    calm: BTreeSet<(u64, Key)>,
    /// Entries that are not judged yet.
    held: BTreeSet<Key>,
    counters: usize,
    active: BTreeMap<u64, Arc<Alarm>>,
    counts: Vec<AlarmCounts>,
    forgotten: u64,
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Alarms {
    /// No route is known. Alarms are numbered from `first_id`; an owner whose receivers outlive it passes a number that
    /// grows over its restarts, such as the time in microseconds.
    pub fn new(rules: Vec<AlarmRule>, limits: AlarmLimits, first_id: u64) -> Self {
        Self {
            index: RuleIndex::new(&rules),
            counts: vec![AlarmCounts::default(); rules.len()],
            rules,
            limits,
            now: 0,
            next_id: first_id,
            scan: 0,
            entries: HashMap::new(),
            due: BTreeSet::new(),
            calm: BTreeSet::new(),
            held: BTreeSet::new(),
            counters: 0,
            active: BTreeMap::new(),
            forgotten: 0,
        }
    }

    /// The rules.
    pub fn rules(&self) -> &[AlarmRule] {
        &self.rules
    }

    /// The figures of each rule, in the order of the rules.
    pub fn counts(&self) -> &[AlarmCounts] {
        &self.counts
    }

    /// Alarms that have begun and not ended, the oldest first.
    pub fn active(&self) -> impl Iterator<Item = &Arc<Alarm>> {
        self.active.values()
    }

    /// Routes and counters that were not kept because of [`AlarmLimits`].
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// The prefixes that hold all routes which rules judge, in order, none inside another one.
    pub fn roots<A: Addr + Pod>(&self) -> Vec<Prefix<A>> {
        self.index.roots()
    }

    /// Whether a rule judges routes of this prefix, of some table: changes of others need not be passed in.
    pub fn watches(&self, prefix: AnyPrefix) -> bool {
        self.index.is_listed(prefix)
    }

    /// The next time at which [`Alarms::settle`] has something to do by itself, in microseconds since 1970. While
    /// [`Alarms::is_waiting`], it has so at any time.
    pub fn next_due(&self) -> Option<u64> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Whether something waits for a session.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty()
    }

    /// Judges a change, and adds the alarms that begin and end with it to `events`.
    pub fn change(&mut self, change: &RouteChange<'_>, events: &mut Vec<AlarmEvent>) {
        self.expire(change.time, events);
        let mut found = Vec::new();
        self.index.rules_of(change.prefix, |rule, listed| found.push((rule, listed)));
        for (number, listed) in found {
            let rule = &self.rules[number as usize];
            let is_listed = listed == change.prefix.unmapped();
            if (rule.kind.is_exact() && !is_listed) || !rule.is_of(change.table) {
                continue;
            }
            let key = Key { rule: number, prefix: change.prefix, table: Arc::from(change.table) };
            match rule.kind {
                AlarmKind::Withdrawn { after, .. } => self.withdrawn(key, after, change, events),
                AlarmKind::Flapping { changes, within } => {
                    self.flapping(key, (changes.max(1), micros(within)), change, events);
                }
                _ => self.route(key, listed, change, events),
            }
        }
    }

    /// Lets time pass, and judges what waits for sessions that have sent their tables: `is_resending` says whether one
    /// has not.
    pub fn settle(
        &mut self,
        now: u64,
        is_resending: impl Fn(&str) -> bool,
        events: &mut Vec<AlarmEvent>,
    ) {
        self.expire(now, events);
        let is_over = |held: &Held| {
            held.until <= self.now || held.session.as_deref().is_none_or(|of| !is_resending(of))
        };
        let of = |key: &&Key| self.entries.get(*key).and_then(|entry| entry.held.as_ref());
        let over: Vec<Key> =
            self.held.iter().filter(|key| of(key).is_none_or(is_over)).cloned().collect();
        for key in over {
            self.judge(&key, events);
        }
    }

    /// Begins to read all routes anew: each is passed to [`Alarms::change`] until [`Alarms::end_scan`], as
    /// [`Occasion::First`] or, after changes were lost, as [`Occasion::Resent`].
    pub fn begin_scan(&mut self) {
        self.scan += 1;
    }

    /// All routes were read: those that were known and are not among them are gone.
    pub fn end_scan(&mut self, now: u64, events: &mut Vec<AlarmEvent>) {
        let is_missing = |entry: &Entry| entry.scan != self.scan && entry.has_route();
        let missing = self.entries.iter().filter(|(_, entry)| is_missing(entry));
        let mut gone: Vec<(AnyPrefix, Arc<str>)> =
            missing.map(|(key, _)| (key.prefix, Arc::clone(&key.table))).collect();
        gone.sort_unstable();
        gone.dedup();
        for (prefix, table) in gone {
            let change = RouteChange {
                time: now,
                table: &table,
                prefix,
                session: None,
                route: None,
                occasion: Occasion::Resent,
            };
            self.change(&change, events);
        }
    }

    /// Kinds that judge a route by itself.
    fn route(
        &mut self,
        key: Key,
        listed: AnyPrefix,
        change: &RouteChange<'_>,
        events: &mut Vec<AlarmEvent>,
    ) {
        let kind = &self.rules[key.rule as usize].kind;
        let route = change.route.as_ref();
        let wrong = route.and_then(|route| kind.judge(listed, key.prefix.unmapped(), route));
        let wrong =
            wrong.map(|wrong| Arc::new(Seen::new(self.now, change, wrong.expected, wrong.seen)));
        let is_known = *kind == AlarmKind::NewlyInvalid && change.occasion == Occasion::First;
        let scan = self.scan;
        match self.entries.get_mut(&key) {
            Some(entry) => {
                // An alarm is about the route with which it began; the end names none.
                entry.wrong = wrong;
                entry.scan = scan;
            }
            None => {
                let Some(wrong) = wrong else { return };
                if !self.has_room() {
                    return;
                }
                let mut entry = Entry::new(Memory::Route);
                (entry.wrong, entry.is_silent, entry.scan) = (Some(wrong), is_known, scan);
                self.entries.insert(key.clone(), entry);
            }
        }
        match change.occasion {
            Occasion::Live => self.judge(&key, events),
            Occasion::Resent | Occasion::First => {
                self.hold(key, change.session.map(Arc::from));
            }
        }
    }

    fn withdrawn(
        &mut self,
        key: Key,
        after: Duration,
        change: &RouteChange<'_>,
        events: &mut Vec<AlarmEvent>,
    ) {
        let due = self.now.saturating_add(micros(after));
        let scan = self.scan;
        let Some(entry) = self.entries.get_mut(&key) else {
            if self.has_room() {
                let last = Arc::new(Seen::new(self.now, change, String::new(), String::new()));
                // A prefix that loses its route had one, even if that was not seen.
                let due = change.route.is_none().then_some(due);
                self.due.extend(due.map(|due| (due, key.clone())));
                let mut entry = Entry::new(Memory::Withdrawn { last, due });
                entry.scan = scan;
                self.entries.insert(key, entry);
            }
            return;
        };
        entry.scan = scan;
        let had_route = entry.has_route();
        let Memory::Withdrawn { last, due: is_due } = &mut entry.memory else { return };
        if change.route.is_some() {
            *last = Arc::new(Seen::new(self.now, change, String::new(), String::new()));
            if let Some(was_due) = is_due.take() {
                self.due.remove(&(was_due, key.clone()));
            }
            entry.wrong = None;
            self.judge(&key, events);
        } else if had_route {
            *is_due = Some(due);
            self.due.insert((due, key));
        }
    }

    fn flapping(
        &mut self,
        key: Key,
        (changes, within): (usize, u64),
        change: &RouteChange<'_>,
        events: &mut Vec<AlarmEvent>,
    ) {
        if change.occasion != Occasion::Live {
            return;
        }
        if !self.entries.contains_key(&key) {
            if !self.has_counter() {
                return;
            }
            let memory = Memory::Flapping { times: VecDeque::new(), calm: self.now };
            self.entries.insert(key.clone(), Entry::new(memory));
            self.counters += 1;
        }
        let now = self.now;
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Memory::Flapping { times, calm } = &mut entry.memory else { return };
        let place = (std::mem::replace(calm, now.saturating_add(within)), key.clone());
        times.push_back(now);
        while times.len() > changes || times.front().is_some_and(|first| now - first >= within) {
            times.pop_front();
        }
        if times.len() == changes && entry.wrong.is_none() {
            let within = Duration::from_micros(within);
            let expected = format!("fewer than {changes} changes in {within:?}");
            let first = times.front().copied().unwrap_or(now);
            let took = Duration::from_millis((now - first) / 1000);
            let seen = format!("{changes} changes in {took:?}");
            entry.wrong = Some(Arc::new(Seen::new(now, change, expected, seen)));
        }
        let (is_calm, calm) = (entry.wrong.is_none(), *calm);
        self.due.remove(&place);
        self.calm.remove(&place);
        self.due.insert((calm, key.clone()));
        if is_calm {
            self.calm.insert((calm, key));
        } else {
            self.judge(&key, events);
        }
    }

    /// Whether there is room for one more route.
    fn has_room(&mut self) -> bool {
        let has_room = self.entries.len() - self.counters < self.limits.routes;
        self.forgotten += u64::from(!has_room);
        has_room
    }

    /// Makes room for one more counter; false if all of them flap.
    fn has_counter(&mut self) -> bool {
        if self.counters < self.limits.counters {
            return true;
        }
        self.forgotten += 1;
        let Some(oldest) = self.calm.pop_first() else { return false };
        self.due.remove(&oldest);
        self.entries.remove(&oldest.1);
        self.counters -= 1;
        true
    }

    /// Has the entry wait until its session has sent its table.
    fn hold(&mut self, key: Key, session: Option<Arc<str>>) {
        let until = self.now.saturating_add(micros(self.limits.quiet));
        let Some(entry) = self.entries.get_mut(&key) else { return };
        // The bound is that of the first change that waits: it is no longer for more of them.
        let until = entry.held.as_ref().map_or(until, |held| held.until);
        let session = session.or_else(|| entry.held.as_ref().and_then(|held| held.session.clone()));
        entry.held = Some(Held { session, until });
        self.held.insert(key);
    }

    /// Begins or ends the alarm of an entry as its route is now, and removes the entry if it is over.
    fn judge(&mut self, key: &Key, events: &mut Vec<AlarmEvent>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.held.take().is_some() {
            self.held.remove(key);
        }
        let rule = &self.rules[key.rule as usize];
        match (&entry.wrong, entry.alarm.take()) {
            (Some(wrong), None) if !entry.is_silent => {
                let alarm = Arc::new(Alarm {
                    id: self.next_id,
                    rule: Arc::clone(&rule.name),
                    kind: rule.kind.name(),
                    table: Arc::clone(&key.table),
                    prefix: key.prefix,
                    expected: wrong.expected.clone(),
                    seen: wrong.seen.clone(),
                    peer: wrong.peer.clone(),
                    as_path: wrong.as_path.clone(),
                    begin: wrong.time,
                    end: None,
                });
                self.next_id += 1;
                self.active.insert(alarm.id, Arc::clone(&alarm));
                let counts = &mut self.counts[key.rule as usize];
                (counts.raised, counts.active) = (counts.raised + 1, counts.active + 1);
                entry.alarm = Some(Arc::clone(&alarm));
                events.push(AlarmEvent { alarm });
            }
            (None, Some(alarm)) => {
                self.active.remove(&alarm.id);
                self.counts[key.rule as usize].active -= 1;
                let end = Some(self.now.max(alarm.begin));
                events.push(AlarmEvent { alarm: Arc::new(Alarm { end, ..(*alarm).clone() }) });
            }
            (_, alarm) => entry.alarm = alarm,
        }
        if entry.is_over() {
            if matches!(entry.memory, Memory::Flapping { .. }) {
                self.counters -= 1;
            }
            self.entries.remove(key);
        }
    }

    /// Lets what is due by this time happen, in order.
    fn expire(&mut self, now: u64, events: &mut Vec<AlarmEvent>) {
        let now = now.max(self.now);
        while let Some((time, key)) = self.due.pop_first() {
            if time > now {
                self.due.insert((time, key));
                break;
            }
            self.now = self.now.max(time);
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            debug_assert_eq!(entry.due(), Some(time));
            match &mut entry.memory {
                Memory::Route => {}
                Memory::Withdrawn { last, due } => {
                    *due = None;
                    let kind = &self.rules[key.rule as usize].kind;
                    let after = match kind {
                        AlarmKind::Withdrawn { after } => *after,
                        _ => Duration::ZERO,
                    };
                    let expected = "a route".to_owned();
                    let seen = format!("withdrawn, and not back after {after:?}");
                    let wrong = Seen { time, expected, seen, ..(**last).clone() };
                    let session = wrong.session.clone();
                    entry.wrong = Some(Arc::new(wrong));
                    self.hold(key, session);
                }
                Memory::Flapping { times, .. } => {
                    times.clear();
                    entry.wrong = None;
                    self.calm.remove(&(time, key.clone()));
                    self.judge(&key, events);
                }
            }
        }
        self.now = now;
    }
}
