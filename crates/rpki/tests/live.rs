//! Routes of a live table, validated again as VRPs come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_core::{AnyPrefix, Attributes, BgpAttributes, Change, Update};
use fibula_fib::FibOptions;
use fibula_rib::{Live, LiveOptions, Peer, Rib};
use fibula_rpki::{LiveVrps, Revalidated, Revalidator, Validity, Vrp, Vrps};

/// A live table with these routes and origins.
fn table(routes: &[(AnyPrefix, u32)]) -> Arc<Live> {
    let options = LiveOptions::default();
    let live = Live::start(Rib::default(), &[0], FibOptions::default(), options, |_| {}).unwrap();
    let peer = live.peer(Peer::new(None, 64500));
    for &(prefix, origin) in routes {
        let attributes = BgpAttributes { origin_as: Some(origin), ..Default::default() };
        let change = Change::Announce(Attributes::Bgp(&attributes));
        live.apply(&Update { peer, ..Update::new(prefix, change) }).unwrap();
    }
    Arc::new(live)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what} within a minute");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn vrp(prefix: &str, max_len: u64, asn: u32) -> Vrp {
    Vrp::new(prefix.parse().unwrap(), max_len, asn).unwrap()
}

/// The prefixes, origins and validities, in order.
fn changes(found: &[Revalidated]) -> Vec<(String, Option<Validity>, Option<Validity>)> {
    let mut all: Vec<_> =
        found.iter().map(|found| (found.prefix.to_string(), found.before, found.after)).collect();
    all.sort_unstable();
    all
}

#[test]
fn only_routes_under_changed_vrps_are_validated() {
    use Validity::{InvalidLength, InvalidOrigin, Valid};
    let prefix = |text: &str| text.parse::<AnyPrefix>().unwrap();
    let table = table(&[
        (prefix("10.0.0.0/8"), 1),
        (prefix("10.1.0.0/16"), 1),
        (prefix("10.1.1.0/24"), 2),
        (prefix("10.2.0.0/16"), 1),
        (prefix("2001:db8::/32"), 1),
        (prefix("2001:db8:1::/48"), 3),
    ]);
    let vrps = Arc::new(LiveVrps::default());
    let _revalidator = Revalidator::start(Arc::clone(&vrps), Arc::clone(&table)).unwrap();
    let step = |set: Option<&[Vrp]>, changed: &[&str], sets| {
        let before = vrps.counts();
        let set = set.map(|set| Vrps::new(set.iter().copied()));
        vrps.replace(set, changed.iter().map(|text| prefix(text)));
        until("revalidated", || vrps.counts().sets == sets);
        let after = vrps.counts();
        let changed = after.changed - before.changed;
        (after.validated - before.validated, changes(&vrps.revalidated(changed as usize)))
    };
    let change = |prefix: &str, before, after| (prefix.to_owned(), before, after);

    // The first set: what it covers is valid or not, and what no VRP covers is not read: it had no validity before, and
    // is not found from now on, for which nobody has to be told.
    let (ten, more) = (vrp("10.1.0.0/16", 16, 1), vrp("2001:db8::/32", 48, 1));
    let (validated, found) = step(Some(&[ten, more]), &["10.1.0.0/16", "2001:db8::/32"], 1);
    assert_eq!(validated, 4);
    assert_eq!(
        found,
        [
            change("10.1.0.0/16", None, Some(Valid)),
            change("10.1.1.0/24", None, Some(InvalidOrigin)),
            change("2001:db8:1::/48", None, Some(InvalidOrigin)),
            change("2001:db8::/32", None, Some(Valid)),
        ]
    );
    // One more VRP: the two routes under it, of which one changes.
    let other = vrp("10.1.0.0/16", 16, 2);
    let (validated, found) = step(Some(&[ten, more, other]), &["10.1.0.0/16"], 2);
    assert_eq!(validated, 2);
    assert_eq!(found, [change("10.1.1.0/24", Some(InvalidOrigin), Some(InvalidLength))]);
    // Two changes, one inside the other: each route once.
    let (validated, found) = step(Some(&[more, other]), &["10.1.0.0/16", "10.0.0.0/8"], 3);
    assert_eq!(validated, 4);
    assert_eq!(found, [change("10.1.0.0/16", Some(Valid), Some(InvalidOrigin))]);
    // Nothing is known any more.
    let (validated, found) = step(None, &["10.1.0.0/16", "2001:db8::/32"], 4);
    assert_eq!(validated, 4);
    assert_eq!(found.len(), 4);
    assert!(found.iter().all(|(_, before, after)| before.is_some() && after.is_none()));
    assert_eq!(vrps.counts().newly_invalid, 3);
}

/// A thread that ended does not keep the next one from going on where it stopped; and so many changes that each cannot
/// be remembered end in a validation of all routes.
#[test]
fn another_thread_goes_on_and_memory_is_bounded() {
    let table = table(&[("10.0.0.0/8".parse().unwrap(), 1), ("2001:db8::/32".parse().unwrap(), 1)]);
    let live = Arc::new(LiveVrps::default());
    drop(Revalidator::start(Arc::clone(&live), Arc::clone(&table)).unwrap());
    let other = "192.0.2.0/24".parse::<AnyPrefix>().unwrap();
    let vrp = vrp("10.0.0.0/8", 8, 1);
    for _ in 0..3 {
        live.replace(Some(Vrps::new([vrp])), std::iter::repeat_n(other, 1 << 20));
    }
    let _revalidator = Revalidator::start(Arc::clone(&live), table).unwrap();
    until("revalidated", || live.counts().sets == 1);
    assert_eq!(live.counts().validated, 2, "all routes, though no change covers one");
}

/// Random VRPs come and go over a table of tens of thousands of routes: what is reported is what a comparison of all
/// routes gives, and no route outside of the changed VRPs is read.
#[test]
fn reports_what_a_comparison_of_all_routes_gives() {
    let mut random = fibula_testkit::Rng::new(7);
    let mut draw = |below: u64| random.below(below);
    let mut routes = BTreeSet::new();
    while routes.len() < 20_000 {
        let addr = 0x0a00_0000 | (draw(1 << 14) << 10) as u32;
        let prefix = AnyPrefix::masked(std::net::Ipv4Addr::from(addr).into(), 14 + draw(9) as u8);
        routes.insert(prefix.unwrap());
    }
    let routes: Vec<(AnyPrefix, u32)> =
        routes.into_iter().map(|prefix| (prefix, 1 + draw(4) as u32)).collect();
    let table = table(&routes);
    let live = Arc::new(LiveVrps::default());
    let _revalidator = Revalidator::start(Arc::clone(&live), Arc::clone(&table)).unwrap();

    let mut set = BTreeSet::<Vrp>::new();
    let mut before: Option<Vrps> = None;
    for round in 1..=40 {
        let mut changed = Vec::new();
        for _ in 0..=draw(6) {
            let addr = std::net::Ipv4Addr::from(0x0a00_0000 | (draw(1 << 10) << 14) as u32);
            let len = 10 + draw(9);
            let prefix = AnyPrefix::masked(addr.into(), len as u8).unwrap();
            let vrp = Vrp::new(prefix, len + draw(5), 1 + draw(4) as u32).unwrap();
            if !set.remove(&vrp) {
                set.insert(vrp);
            }
            changed.push(prefix);
        }
        let after = Vrps::new(set.iter().copied());
        let counted = live.counts();
        live.replace(Some(Vrps::new(set.iter().copied())), changed.iter().copied());
        until("revalidated", || live.counts().sets == round);
        let counts = live.counts();

        let is_under = |prefix: AnyPrefix| changed.iter().any(|block| covers(*block, prefix));
        let under = routes.iter().filter(|(prefix, _)| is_under(*prefix)).count();
        assert_eq!(counts.validated - counted.validated, under as u64, "round {round}");
        let mut expected = Vec::new();
        for &(prefix, origin) in routes.iter().filter(|(prefix, _)| is_under(*prefix)) {
            let was = before.as_ref().map(|vrps| vrps.validity(prefix, Some(origin)));
            let is = Some(after.validity(prefix, Some(origin)));
            if was != is {
                expected.push((prefix.to_string(), was, is));
            }
        }
        expected.sort_unstable();
        let found = live.revalidated((counts.changed - counted.changed) as usize);
        let kept = found.len().min(expected.len());
        assert_eq!(counts.changed - counted.changed, expected.len() as u64, "round {round}");
        if kept == expected.len() {
            assert_eq!(changes(&found), expected, "round {round}");
        }
        before = Some(after);
    }
    assert!(live.counts().changed > 1000, "the rounds change something: {:?}", live.counts());
}

fn covers(block: AnyPrefix, prefix: AnyPrefix) -> bool {
    match (block, prefix) {
        (AnyPrefix::V4(block), AnyPrefix::V4(prefix)) => block.covers(prefix),
        (AnyPrefix::V6(block), AnyPrefix::V6(prefix)) => block.covers(prefix),
        _ => false,
    }
}
