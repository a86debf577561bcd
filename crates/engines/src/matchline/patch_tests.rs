//! Patched tables, compared with the oracle.

use std::collections::BTreeMap;

use fibula_core::{Engine, Follow, Hop, Patched, Persist, Prefix, Route, Routes};
use fibula_testkit::conform::{copies, patches};
use fibula_testkit::{Oracle, Rng, StoredTables, probes};

use super::tests::{answers, below, configs, flipped, networks, prefix};
use super::{Config, Form, Matchline};

/// A table that changes, and an engine that follows it.
struct Live {
    routes: Routes<u128>,
    engine: Matchline,
    rng: Rng,
    applied: usize,
    built: usize,
}

fn built(routes: &Routes<u128>) -> Matchline {
    Matchline::build(routes, &Config::default()).expect("it takes the table")
}

impl Live {
    fn new(routes: Vec<Route<u128>>, seed: u64) -> Self {
        let routes = Routes::from_unsorted(routes);
        Self { engine: built(&routes), routes, rng: Rng::new(seed), applied: 0, built: 0 }
    }

    /// Applies changes, the last one of each prefix, and compares the answers around them in each instruction set.
    /// Returns whether the engine was patched.
    fn step(
        &mut self,
        changes: impl IntoIterator<Item = (Prefix<u128>, Hop)>,
        label: &str,
    ) -> bool {
        let changes: BTreeMap<_, _> = changes.into_iter().collect();
        let changes: Vec<Route<u128>> =
            changes.into_iter().map(|(prefix, hop)| Route { prefix, hop }).collect();
        self.routes.apply(&changes);
        let changed: Vec<Prefix<u128>> = changes.iter().map(|change| change.prefix).collect();
        let patched = self.engine.follow(&self.routes, &changed).expect("no limit is near");
        if patched == Patched::Applied {
            self.applied += 1;
        } else {
            self.engine = built(&self.routes);
            self.built += 1;
        }
        let edges = changed.iter().flat_map(|prefix| {
            let (first, last) = (prefix.first(), prefix.last());
            [first, last, first.wrapping_sub(1), last.wrapping_add(1)]
        });
        let mut addrs: Vec<u128> = edges.collect();
        addrs.extend(changed.iter().take(100).flat_map(|prefix| flipped(prefix.first(), 0)));
        for _ in 0..100 {
            let route = self.rng.choose(self.routes.as_slice());
            addrs.push(route.map_or(0, |route| self.rng.addr_in(route.prefix)));
        }
        self.compare(&addrs, &format!("{label}, {changed:?}"));
        patched == Patched::Applied
    }

    fn compare(&self, addrs: &[u128], label: &str) {
        let oracle = Oracle::new(&self.routes);
        for Config { isa, gathers } in configs() {
            let engine = Matchline { level: isa.level(), gathers, ..self.engine.clone() };
            answers(&engine, &oracle, addrs, &format!("{label}, {isa}, {gathers:?}"));
        }
    }

    /// Compares everywhere.
    fn agrees(&self, label: &str) {
        let bits = self.routes.iter().zip(0..).flat_map(|(r, at)| flipped(r.prefix.first(), at));
        let addrs: Vec<u128> = probes::boundary(&self.routes).chain(bits).collect();
        self.compare(&addrs, label);
    }

    /// A prefix near the table's routes: of any length: below one of them, around it, next to it, or elsewhere.
    fn near(&mut self) -> Prefix<u128> {
        let rng = &mut self.rng;
        let route = rng.choose(self.routes.as_slice());
        let at = route.map_or(Prefix::ALL, |route| route.prefix);
        let by = rng.below(8) as u8 + 1;
        let masked = |addr, len: u8| Prefix::masked(addr, len.min(128)).expect("a length");
        match rng.below(12) {
            0 => masked(rng.addr_in(at), at.len() + by),
            1 => masked(at.first(), at.len().saturating_sub(by)),
            2 => masked(at.last().wrapping_add(1), at.len()),
            3 => masked(at.first() ^ 1 << (64 + rng.below(64)), at.len()),
            4 => masked(rng.addr_in(at), 65 + rng.below(64) as u8),
            5 => masked(rng.addr_in(at), 49 + rng.below(16) as u8),
            6 => masked(at.first(), [16, 20, 24, 32, 40, 47, 48][rng.below(7) as usize]),
            7 => masked(at.first() ^ 1 << rng.below(128), at.len()),
            _ => at,
        }
    }

    /// Announcements, withdrawals and other hops near the routes.
    fn churn(&mut self, size: u64, hops: u64) -> Vec<(Prefix<u128>, Hop)> {
        (0..size)
            .map(|_| {
                let prefix = self.near();
                let hop = Hop::new(self.rng.below(hops) as u32);
                (prefix, if self.rng.chance(0.45) { Hop::NONE } else { hop })
            })
            .collect()
    }
}

/// Routes in a few sites, alone and below others, and a route at each end of the space so that the root covers all of
/// it.
fn start(seed: u64, around: &[&str], hops: u32) -> Vec<Route<u128>> {
    let mut sites = networks(6 + seed, 48);
    sites.extend(["2001:db8:7::/48", "2001:db8:9::/48", "2001:db8::/32"].map(prefix));
    let mut routes = below(&sites, 400 + seed as usize, 49..=64, hops);
    routes.extend(below(&sites, 40, 48..=48, hops));
    routes.extend(below(&networks(3, 56), 40, 60..=70, hops));
    for (text, hop) in around.iter().chain(&["::/64", "ffff:ffff:ffff:ffff::/64"]).zip(0..) {
        routes.push(Route { prefix: prefix(text), hop: Hop::new(hop % hops) });
    }
    routes
}

#[test]
fn patched_tables_answer_as_built_ones() {
    for config in configs() {
        patches::<u128, Matchline>(&format!("matchline {config:?}"), &config);
        copies::<u128, Matchline>(&format!("matchline {config:?}"), &config);
    }
}

/// Any changes, in bursts of any size.
#[test]
fn tables_follow_any_change() {
    let arounds: [&[&str]; 4] = [
        &[],
        &["2000::/3", "2001::/16", "2001:db8::/32"],
        &["::/0", "2001:d00::/24"],
        &["::/1", "2000::/6", "2001:db0::/28", "2001:db8::/33", "2001:db8::/47"],
    ];
    for (seed, around) in (1..).zip(arounds) {
        for hops in [3, 200, 60_000, 70_000] {
            let mut live = Live::new(start(seed, around, hops), seed);
            for step in 0..150 {
                let size = if step % 25 == 24 { 150 } else { 1 + live.rng.below(3) };
                let changes = live.churn(size, hops.into());
                live.step(changes, &format!("{around:?}, {hops} hops, step {step}"));
                if step % 50 == 49 {
                    live.agrees(&format!("{around:?}, {hops} hops, after {step}"));
                }
            }
            assert!(live.applied > 120, "{around:?}, {hops}: {} builds", live.built);
        }
    }
}

/// Single routes come and go, so that tables become lines and lines tables, and skipped bits differ from one change to
/// the next.
#[test]
fn a_table_is_emptied_and_filled() {
    let mut live = Live::new(start(5, &["2001:db8::/32"], 100), 5);
    let mut all: Vec<Route<u128>> =
        live.routes.iter().filter(|route| (33..127).contains(&route.prefix.len())).collect();
    let rng = &mut Rng::new(7);
    for round in 0..2 {
        for i in (1..all.len()).rev() {
            all.swap(i, rng.below(i as u64 + 1) as usize);
        }
        for gone in [true, false] {
            for (i, routes) in all.chunks(3).enumerate() {
                let hop = |route: &Route<u128>| if gone { Hop::NONE } else { route.hop };
                let changes = routes.iter().map(|route| (route.prefix, hop(route)));
                live.step(changes, &format!("round {round}, {i}"));
            }
            live.agrees("after all");
        }
    }
    assert_eq!(live.built, 0);
}

/// A route that is withdrawn remains in no line that its addresses are led to, wherever it came from.
#[test]
fn lines_that_blocks_share_are_changed_in_place() {
    let routes = below(&[prefix("2000::/3")], 5000, 64..=64, 1000);
    let mut live = Live::new(routes, 1);
    let lines = |live: &Live| match &live.engine.form {
        Form::Narrow(tables) => tables.lines_used,
        _ => panic!("a thousand hops need 16 bits"),
    };
    let before = lines(&live);
    let all: Vec<Route<u128>> = live.routes.iter().collect();
    for (i, routes) in all.chunks(50).enumerate() {
        let other = |route: &Route<u128>| Hop::new((route.hop.to_bits() + 1) % 1000);
        live.step(
            routes.iter().map(|route| (route.prefix, other(route))),
            &format!("other hop {i}"),
        );
        let gone = routes.iter().step_by(2).map(|route| (route.prefix, Hop::NONE));
        live.step(gone, &format!("gone {i}"));
    }
    assert_eq!(lines(&live), before, "there was room for each");
    live.agrees("other hops, and half of them gone");
    for (i, routes) in all.chunks(50).enumerate() {
        live.step(routes.iter().map(|route| (route.prefix, route.hop)), &format!("back {i}"));
    }
    assert!(lines(&live) < before + before / 4, "{} lines, {before} at first", lines(&live));
    live.agrees("as before");
    assert_eq!(live.built, 0);
}

/// A patch cannot add a default route or routes outside of the root. It handles all other changes.
#[test]
fn some_changes_ask_for_a_build() {
    let mut live = Live::new(below(&networks(9, 48), 900, 49..=64, 100), 3);
    let mut step = |text: &str, hop: Option<u32>, expected| {
        let hop = hop.map_or(Hop::NONE, Hop::new);
        let patched = live.step([(prefix(text), hop)], text);
        assert_eq!(patched, expected, "{text} {hop:?}");
        live.agrees(text);
    };
    step("::/0", Some(1), false);
    step("::/0", Some(1), true);
    step("::/64", Some(1), true); // as ::/0
    step("::/65", Some(1), true);
    step("::/65", Some(2), false);
    step("::/64", Some(2), true); // the root is larger now
    step("ffff::/16", Some(2), false);
    step("ffff::/16", Some(3), true);
    step("8000::/1", Some(3), true);
    step("::/1", Some(4), true);
    step("::/1", None, true);
    step("::/0", None, false);
}

/// New hops have codes as long as the form has any.
#[test]
fn new_hops_and_networks_have_codes() {
    let sites = networks(5, 48);
    let mut live = Live::new(below(&sites, 300, 64..=64, 100), 4);
    let new = below(&sites, 300, 49..=63, 1);
    for (hop, route) in (100..254).zip(&new) {
        assert!(live.step([(route.prefix, Hop::new(hop))], "8 bits"), "hop {hop}");
    }
    assert!(matches!(live.engine.form, Form::Byte(_)));
    assert!(!live.step([(new[0].prefix, Hop::new(255))], "9 bits"));
    let mut hosts = below(&sites, 60, 128..=128, 9).into_iter();
    let mut applied = 0;
    for (hop, host) in (256..300u32).zip(&mut hosts) {
        let new = [(host.prefix, host.hop), (new[hop as usize].prefix, Hop::new(hop))];
        applied += usize::from(live.step(new, "16 bits"));
    }
    assert_eq!(applied, 44);
    live.agrees("all");
}

/// A divided network keeps its block, and one that is divided no more leaves it to another.
#[test]
fn blocks_of_long_routes_are_used_again() {
    let sites = networks(3, 48);
    let mut routes = below(&sites, 200, 49..=64, 300);
    routes.extend(below(&sites, 60, 65..=128, 300));
    let mut live = Live::new(routes, 10);
    let blocks = |live: &Live| match &live.engine.form {
        Form::Narrow(tables) => tables.long_blocks(),
        _ => panic!("300 hops need 16 bits"),
    };
    let before = blocks(&live);
    for hop in 0..3 {
        live.step(sites.iter().map(|site| (*site, Hop::new(hop))), "another hop for all gaps");
        assert_eq!(blocks(&live), before);
    }
    for round in 0..20 {
        let long: Vec<_> = live.routes.iter().filter(|route| route.prefix.len() > 64).collect();
        for routes in long.chunks(7) {
            live.step(routes.iter().map(|route| (route.prefix, Hop::NONE)), "withdrawn");
            let others = below(&sites, routes.len(), 65..=128, 200 + round);
            let moved = |route: &Route<u128>| {
                Prefix::masked(route.prefix.addr() ^ u128::from(round) << 70, route.prefix.len())
            };
            live.step(
                others.iter().map(|route| (moved(route).expect("a length"), route.hop)),
                "others",
            );
        }
    }
    assert!(blocks(&live) <= before + 7, "{} blocks, {before} at first", blocks(&live));
    assert_eq!(live.built, 0);
    live.agrees("all others");
}

/// Stored tables of a patched engine are loaded, though their lines have prefixes with hops that are gone, and patched
/// in turn.
#[test]
fn a_patched_table_is_stored() {
    for hops in [100, 1000] {
        let mut live = Live::new(start(6, &["2001:db8::/32"], hops), 6);
        for step in 0..60 {
            let changes = live.churn(4, u64::from(hops) / (1 + step / 10));
            live.step(changes, "before");
        }
        let few = hops / 10;
        let large: Vec<_> = live.routes.iter().filter(|route| route.hop.to_bits() >= few).collect();
        for routes in large.chunks(large.len() / 8) {
            live.step(routes.iter().map(|route| (route.prefix, Hop::NONE)), "large hops");
        }
        assert!(live.routes.hop_count() <= few);
        let stored = StoredTables::of(&live.engine.tables());
        let hop_count = live.routes.hop_count();
        let loaded = Matchline::load(&stored, hop_count, &Config::default());
        let before = (
            live.routes.clone(),
            std::mem::replace(&mut live.engine, loaded.expect("as it was stored")),
        );
        live.agrees("loaded");
        for step in 0..40 {
            let changes = live.churn(4, hops.into());
            live.step(changes, &format!("loaded, step {step}"));
        }
        live.agrees("loaded and patched");
        (live.routes, live.engine) = before;
        live.agrees("not touched by that");
    }
}

/// A table that has grown by half requires one build.
#[test]
fn a_table_that_has_grown_is_built_anew() {
    let sites = networks(2000, 32);
    let mut live = Live::new(below(&sites, 4000, 49..=64, 200), 8);
    let used = |live: &Live| match &live.engine.form {
        Form::Byte(tables) => (tables.used(), tables.built),
        _ => panic!("200 hops need 8 bits"),
    };
    let new = below(&sites, 30_000, 49..=64, 200);
    for (i, routes) in new.chunks(500).enumerate() {
        let before = used(&live);
        let changes = routes.iter().map(|route| (route.prefix, route.hop));
        if !live.step(changes, &format!("growth {i}")) {
            assert!(before.0 > before.1 + before.1 / 2, "{before:?}");
            assert_eq!(used(&live).0, used(&live).1);
        }
    }
    assert!((1..=4).contains(&live.built), "{} builds", live.built);
    live.agrees("grown");
}
