//! Random changes, gaps, restarts and crashes: each answer is compared with the list of all changes.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::sync::Arc;

use fibula_core::AnyPrefix;
use fibula_history::{
    FoundRoute, HistoryBreak, HistoryError, HistoryFolder, HistoryGap, HistoryQuestion,
    HistoryReader, RouteKey, RouteRecord,
};
use fibula_rib::{AttributeSet, Peer};
use tempfile::TempDir;

use crate::{Dice, copy, files, key, peer, set, small};

type Route = (Option<Arc<Peer>>, AttributeSet);

/// A table whose changes are recorded, and all that ever happened.
struct World {
    dice: Dice,
    folder: TempDir,
    history: Option<HistoryFolder>,
    now: u64,
    table: BTreeMap<RouteKey, Route>,
    all: Vec<(u64, RouteKey, Option<Route>)>,
    is_recorded: bool,
    /// What was checked: routes, absences, refusals, and answers over gaps.
    checked: [u64; 4],
    listed: u64,
}

fn keys() -> Vec<RouteKey> {
    let prefixes = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/16",
        "10.0.0.0/24",
        "10.0.0.0/25",
        "10.0.0.1/32",
        "10.0.1.0/24",
        "192.0.2.0/24",
        "::/0",
        "2001:db8::/32",
        "2001:db8::/64",
        "2001:db8::1/128",
    ];
    let mut all = Vec::new();
    for table in ["bgp", "bmp/pre-policy", "fpm"] {
        all.extend(prefixes.map(|prefix| key(table, prefix)));
    }
    all.sort();
    all
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed),
            folder: tempfile::tempdir().unwrap(),
            history: None,
            now: 1_000,
            table: BTreeMap::new(),
            all: Vec::new(),
            is_recorded: false,
            checked: [0; 4],
            listed: 0,
        };
        // Routes that are there before the history begins.
        (0..seed % 20).for_each(|_| drop(world.change()));
        world.open();
        world.resync(HistoryBreak::Begin);
        world
    }

    fn open(&mut self) {
        let mut options = small();
        options.log_records = 5 + self.dice.below(20) as usize;
        self.history = Some(HistoryFolder::open(self.folder.path(), options).unwrap());
        self.is_recorded = false;
    }

    /// A change of a route, which is recorded or not.
    fn change(&mut self) -> (RouteKey, RouteRecord) {
        self.now += 1 + self.dice.below(3);
        let keys = keys();
        let key = keys[self.dice.below(keys.len() as u64) as usize].clone();
        let new = match self.dice.below(3) {
            0 if self.table.contains_key(&key) => None,
            _ => loop {
                let number = self.dice.below(5) as u32;
                let new = (peer(number % 2), set(number));
                if self.table.get(&key) != Some(&new) {
                    break Some(new);
                }
            },
        };
        let old = match &new {
            Some(new) => self.table.insert(key.clone(), new.clone()),
            None => self.table.remove(&key),
        };
        self.all.push((self.now, key.clone(), new.clone()));
        let (peer, best) = match new {
            Some((peer, best)) => (peer, Some(best)),
            None => (old.and_then(|(peer, _)| peer), None),
        };
        (key, RouteRecord::new(self.now, peer, best))
    }

    fn history(&mut self) -> &mut HistoryFolder {
        self.history.as_mut().unwrap()
    }

    fn write(&mut self) {
        let count = 1 + self.dice.below(4);
        let records: Vec<_> = (0..count).map(|_| self.change()).collect();
        if self.is_recorded {
            self.history().write(&records).unwrap();
            let now = self.now;
            if self.dice.below(3) > 0 {
                self.history().cover(now);
            }
        }
    }

    /// Compares the tables with the history, in parts, while they change.
    fn resync(&mut self, why: HistoryBreak) {
        let mut resync = self.history().resync().unwrap();
        let mut changed = HashSet::new();
        let all = keys();
        let mut begin = 0;
        while begin <= all.len() {
            let end = begin + 1 + self.dice.below(8) as usize;
            let upto = all.get(end - 1);
            let part = all[begin..end.min(all.len())].iter();
            let found = part.filter_map(|key| {
                let (peer, best) = self.table.get(key)?.clone();
                Some(FoundRoute { key: key.clone(), peer, best })
            });
            let (found, time) = (found.collect(), self.now);
            // Before what was found is compared, and after.
            for _ in 0..self.dice.below(3) {
                let (key, record) = self.change();
                changed.insert(key.clone());
                self.history().write(&[(key, record)]).unwrap();
            }
            let differences =
                resync.compare(upto, found, time, |key| changed.contains(key)).unwrap();
            self.history().write(&differences).unwrap();
            begin = end;
        }
        self.now += self.dice.below(2);
        let now = self.now;
        self.history().begin(now, why).unwrap();
        self.is_recorded = true;
    }

    /// Changes of which nothing is recorded.
    fn gap(&mut self) {
        self.history().end();
        (0..self.dice.below(6)).for_each(|_| drop(self.change()));
        self.resync(HistoryBreak::Behind);
    }

    /// The program ends, in order or not, and is started again.
    fn restart(&mut self) {
        if self.dice.below(2) == 0 {
            self.history.take().unwrap().close().unwrap();
        } else {
            let other = tempfile::tempdir().unwrap();
            copy(self.folder.path(), other.path());
            self.history = None;
            self.folder = other;
            if self.dice.below(2) == 0 {
                // The end of the log did not come onto the disk.
                let log = files(self.folder.path(), &["log"]).pop().unwrap();
                let length = log.metadata().unwrap().len();
                let cut = self.dice.below(80).min(length - 40);
                fs::File::options().write(true).open(log).unwrap().set_len(length - cut).unwrap();
            }
        }
        self.is_recorded = false;
        (0..self.dice.below(4)).for_each(|_| drop(self.change()));
        self.open();
        self.resync(HistoryBreak::Stopped);
    }

    /// The last change of a key up to a time, and the time of the next one.
    fn truth(&self, key: &RouteKey, time: u64) -> (Option<(u64, Option<Route>)>, Option<u64>) {
        let of_key = || self.all.iter().filter(|(_, other, _)| other == key);
        let last = of_key().rev().find(|(at, ..)| *at <= time);
        let next = of_key().find(|(at, ..)| *at > time);
        (last.map(|(at, _, route)| (*at, route.clone())), next.map(|(at, ..)| *at))
    }

    fn check(&mut self) {
        let reader = self.history().reader();
        let (recorded, gaps) = reader.recorded();
        let (oldest, newest) = recorded.unwrap();
        for _ in 0..40 {
            let time = oldest - 10 + self.dice.below(self.now + 30 - oldest);
            let keys = keys();
            let key = &keys[self.dice.below(keys.len() as u64) as usize];
            let inside = |gap: &HistoryGap| gap.from < time && time < gap.until;
            let found = reader.at(HistoryQuestion::Prefix(key.prefix), time, Some(&key.table));
            let table = match found {
                Ok(answer) => {
                    assert!(oldest <= time && time <= newest && !gaps.iter().any(inside), "{time}");
                    self.checked[3] += u64::from(!answer.gaps.is_empty());
                    let then = answer.tables.into_iter().next().unwrap();
                    Some((then, answer.gaps))
                }
                Err(HistoryError::NoTable { .. }) => None,
                Err(HistoryError::Before { oldest: from }) => {
                    assert!(time < oldest && from == oldest);
                    self.checked[2] += 1;
                    continue;
                }
                Err(HistoryError::After { newest: until }) => {
                    assert!(time > newest && until == newest);
                    self.checked[2] += 1;
                    continue;
                }
                Err(HistoryError::Missing(gap)) => {
                    assert!(inside(&gap) && gaps.contains(&gap));
                    self.checked[2] += 1;
                    continue;
                }
                Err(other) => panic!("{other}"),
            };
            let (last, next) = self.truth(key, time);
            let Some((then, gaps)) = table else {
                let of_table = self.all.iter().filter(|(at, other, route)| {
                    other.table == key.table && *at <= time && *at >= oldest && route.is_some()
                });
                assert_eq!(of_table.count(), 0, "{} at {time}", key.table);
                continue;
            };
            let (since, until, is_found) = match &then.routes[..] {
                [route] => {
                    let (at, best) = last.clone().unwrap();
                    let (of, best) =
                        best.unwrap_or_else(|| panic!("{key:?} had no route at {time}"));
                    assert_eq!(route.record.best.as_ref(), Some(&best), "{key:?} at {time}");
                    assert_eq!(route.record.peer, of);
                    assert!(then.absent.is_none());
                    self.checked[0] += 1;
                    assert!(!route.record.is_found || route.record.time >= at);
                    (Some(route.record.time), route.until, route.record.is_found)
                }
                _ => {
                    let route = last.clone().and_then(|(_, route)| route);
                    assert_eq!((route, then.routes.len()), (None, 0), "{key:?} at {time}");
                    self.checked[1] += 1;
                    let (since, until) = then.absent.unwrap();
                    (since, until, false)
                }
            };
            // Where changes are missing, the answer says so; elsewhere the times are exact.
            let gap_before = gaps.iter().any(|gap| gap.from <= time && Some(gap.until) >= since);
            if let Some((at, _)) = last
                && !gap_before
                && !is_found
                && let Some(since) = since
            {
                assert_eq!(since, at, "{key:?} at {time}");
            }
            let gap_after = gaps.iter().any(|gap| gap.until >= time);
            if !gap_after {
                // A change that is written may be known before the time is that it belongs to.
                let is_late = until.is_none() && next.is_some_and(|next| next > newest);
                assert!(until == next || is_late, "{key:?} at {time}: {until:?} {next:?} {gaps:?}");
            }
        }
        self.check_addresses(&reader, oldest, newest);
        self.check_lists(&reader, oldest, newest);
    }

    /// Pages of changes have all changes that are recorded, once, and in order.
    fn check_lists(&mut self, reader: &HistoryReader, oldest: u64, newest: u64) {
        let keys = keys();
        let prefix = keys[self.dice.below(keys.len() as u64) as usize].prefix;
        let from = oldest + self.dice.below(newest - oldest + 1);
        let until = from + self.dice.below(newest - from + 1);
        let (mut found, mut last, mut gaps) = (Vec::new(), (until, 0), Vec::new());
        loop {
            let limit = 1 + self.dice.below(4) as usize;
            let times = from..=last.0;
            let page = match reader.changes(prefix, None, &times, last.1, limit) {
                Ok(page) => page,
                Err(HistoryError::NoTable { .. }) => return,
                Err(other) => panic!("{other}"),
            };
            if last == (until, 0) {
                gaps = page.gaps;
            }
            assert!(page.changes.len() <= limit);
            found.extend(page.changes);
            match page.next {
                Some(next) => last = next,
                None => break,
            }
        }
        // Each is a change that was, or was found in a gap.
        for (table, record) in &found {
            let key = RouteKey { table: Arc::clone(table), prefix };
            let (truth, _) = self.truth(&key, record.time);
            let route = truth.clone().and_then(|(_, route)| route);
            let best = route.map(|(_, best)| best);
            let in_gap = gaps.iter().any(|gap| gap.from <= record.time && record.time <= gap.until);
            assert!(in_gap || record.best == best, "{key:?} {record:?} {truth:?}");
            assert!(record.is_found || in_gap || truth.unwrap().0 == record.time);
        }
        assert!(found.is_sorted_by_key(|(_, record)| std::cmp::Reverse(record.time)));
        let recorded = |time: u64| {
            (from..=until).contains(&time)
                && !gaps.iter().any(|gap| gap.from <= time && time <= gap.until)
        };
        let wanted = self
            .all
            .iter()
            .filter(|(time, key, _)| key.prefix == prefix && recorded(*time))
            .count();
        let seen =
            found.iter().filter(|(_, record)| recorded(record.time) && !record.is_found).count();
        assert_eq!(seen, wanted, "{prefix} from {from} to {until}");
        self.listed += wanted as u64;
    }

    fn check_addresses(&mut self, reader: &HistoryReader, oldest: u64, newest: u64) {
        let time = oldest + self.dice.below(newest - oldest + 1);
        for address in ["10.0.0.1", "10.0.0.200", "192.0.2.9", "8.8.8.8", "2001:db8::1", "::1"] {
            let question = HistoryQuestion::Address(address.parse().unwrap());
            let answer = match reader.at(question, time, None) {
                Ok(answer) => answer,
                Err(HistoryError::Missing(_)) => return,
                Err(other) => panic!("{other}"),
            };
            let host = AnyPrefix::host(address.parse().unwrap());
            let covers = |prefix: AnyPrefix| match (prefix, host) {
                (AnyPrefix::V4(prefix), AnyPrefix::V4(host)) => prefix.covers(host),
                (AnyPrefix::V6(prefix), AnyPrefix::V6(host)) => prefix.covers(host),
                _ => false,
            };
            for then in answer.tables {
                let found: Vec<_> = then.routes.iter().map(|route| route.prefix).collect();
                let mut wanted: Vec<_> = keys();
                wanted.retain(|key| key.table == then.table && covers(key.prefix));
                wanted.retain(|key| {
                    self.truth(key, time).0.is_some_and(|(_, route)| route.is_some())
                });
                let wanted: Vec<_> = wanted.iter().rev().map(|key| key.prefix).collect();
                assert_eq!(found, wanted, "{address} in {} at {time}", then.table);
            }
        }
    }

    fn tend(&mut self) {
        let now = self.now;
        self.history().tend(now).unwrap();
        for note in self.history().notes() {
            let note = note.to_string();
            assert!(note.contains("cut off"), "{note}");
        }
    }
}

#[test]
fn answers_are_those_of_the_list_of_all_changes() {
    let mut checked = [0; 4];
    let (mut merged, mut listed) = (0, 0);
    for seed in 0..30 {
        let mut world = World::new(seed);
        for _ in 0..60 {
            match world.dice.below(12) {
                0 => world.gap(),
                1 => world.restart(),
                2 => world.check(),
                _ => world.write(),
            }
            world.tend();
        }
        // What is merged comes a moment later.
        for _ in 0..4 {
            world.tend();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        world.check();
        listed += world.listed;
        merged += files(world.folder.path(), &["merged"]).len();
        checked.iter_mut().zip(world.checked).for_each(|(all, one)| *all += one);
    }
    assert!(checked.iter().all(|&count| count > 300) && merged > 15, "{checked:?}, {merged}");
    assert!(listed > 100, "{listed}");
}
