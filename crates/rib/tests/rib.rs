//! The RIB against a plain map of (VRF, prefix, peer, path identifier), and a naive choice among paths.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fibula_core::{
    Addr, AnyPrefix, Attributes, BgpAttributes, Change as CoreChange, Hop, Prefix, Route, Update,
    Value, Vrf,
};
use fibula_rib::{AttributeSet, Change, Changes, Path, Peer, Preference, Rib, Step};
use fibula_testkit::Rng;

type Key<A> = (u32, Prefix<A>, u32, u32);

/// All announced paths in a plain map.
struct Plain<A: Addr> {
    paths: BTreeMap<Key<A>, BgpAttributes<'static>>,
}

impl<A: Addr> Plain<A> {
    fn paths(&self, vrf: u32, prefix: Prefix<A>) -> Vec<(Key<A>, &BgpAttributes<'static>)> {
        let all = self.paths.iter().filter(|((v, p, ..), _)| (*v, *p) == (vrf, prefix));
        let mut paths: Vec<_> = all.map(|(key, attributes)| (*key, attributes)).collect();
        // The default preference, as one tuple.
        paths.sort_by_key(|((_, _, peer, path_id), a)| {
            let preference = Reverse(a.local_pref.unwrap_or(100));
            (preference, a.as_path_len, a.origin.unwrap_or(0), *peer, a.med.unwrap_or(0), *path_id)
        });
        paths
    }

    fn prefixes(&self, vrf: u32) -> Vec<Prefix<A>> {
        let mut all: Vec<_> =
            self.paths.keys().filter(|key| key.0 == vrf).map(|key| key.1).collect();
        all.dedup();
        all
    }
}

fn same(path: &Path, (key, attributes): &(Key<impl Addr>, &BgpAttributes<'static>)) -> bool {
    (path.peer, path.path_id) == (key.2, key.3)
        && path.attributes.bgp().as_ref() == Some(attributes)
}

fn check<A: Addr>(rib: &Rib, plain: &Plain<A>, rng: &mut Rng) {
    for vrf in 0..3 {
        let prefixes = plain.prefixes(vrf);
        assert_eq!(rib.len::<A>(vrf), prefixes.len());
        let best = |prefix| plain.paths(vrf, prefix)[0];
        let listed: Vec<(Prefix<A>, Path)> = rib.iter::<A>(vrf).collect();
        assert!(listed.iter().map(|(p, _)| *p).eq(prefixes.iter().copied()), "in order");
        assert!(listed.iter().all(|(p, path)| same(path, &best(*p))));
        let routes = rib.routes::<A>(vrf);
        assert!(routes.iter().map(|r| r.prefix).eq(prefixes.iter().copied()));
        let frozen = rib.freeze(vrf);
        assert_eq!(frozen.sequence(), rib.sequence());
        let frozen = frozen.table().unwrap();
        let length = frozen.columns.find("as_path_len").unwrap();
        let row = |route: Route<A>| {
            let length = frozen.columns.value(length, route.hop.index().unwrap());
            (route.prefix, length)
        };
        let expected =
            |&prefix: &Prefix<A>| (prefix, Value::Int(best(prefix).1.as_path_len.into()));
        assert!(frozen.routes::<A>().iter().map(row).eq(prefixes.iter().map(expected)));
        for route in frozen.routes::<A>().iter() {
            let peer = rib.peers().get(best(route.prefix).0.2).unwrap();
            let asn = (peer.asn != 0).then(|| format!("AS{}", peer.asn));
            let name = peer.address.map(|address| address.to_string()).or(asn);
            let column = frozen.columns.find("peer");
            let value = column.map(|at| frozen.columns.value(at, route.hop.index().unwrap()));
            let expected = name.as_deref().map_or(Value::Null, Value::Str);
            assert_eq!(value.unwrap_or(Value::Null), expected);
        }
        for _ in 0..20 {
            let addr: A = prefix::<A>(rng).last();
            let mut covering: Vec<_> =
                prefixes.iter().copied().filter(|p| p.contains(addr)).collect();
            covering.reverse();
            let found = rib.longest(vrf, addr);
            assert_eq!(found.as_ref().map(|(p, _)| *p), covering.first().copied());
            assert_eq!(
                rib.lookup(vrf, addr),
                found.map_or(Hop::NONE, |(_, path)| Hop::new(path.hop))
            );
            let found: Vec<_> = rib.covering(vrf, Prefix::host(addr)).into_iter().collect();
            assert!(found.iter().map(|(p, _)| *p).eq(covering));
            let around = prefix::<A>(rng);
            let covered = prefixes.iter().copied().filter(|p| around.covers(*p));
            assert!(rib.covered(vrf, around).map(|(p, _)| p).eq(covered));
            let paths = rib.paths(vrf, around);
            let expected = plain.paths(vrf, around);
            assert_eq!(paths.len(), expected.len());
            assert_eq!(rib.exact(vrf, around).is_some(), !expected.is_empty());
            if let Some(why) = rib.explain(vrf, around) {
                let ranked = why.paths().iter().map(|(path, _)| path);
                assert!(ranked.zip(&expected).all(|(path, expected)| same(path, expected)));
            }
        }
    }
    for peer in 0..rib.peers().len() as u32 {
        let paths = plain.paths.keys().filter(|key| key.2 == peer).count();
        assert_eq!(rib.paths_of::<A>(peer), paths);
        let is_best = |vrf, prefix| plain.paths(vrf, prefix)[0].0.2 == peer;
        let best = (0..3).flat_map(|vrf| plain.prefixes(vrf).into_iter().map(move |p| (vrf, p)));
        assert_eq!(rib.best_paths_of::<A>(peer), best.filter(|&(vrf, p)| is_best(vrf, p)).count());
    }
    let routes = rib.memory().routes;
    assert_eq!(routes, plain.paths.len());
}

/// Short prefixes that nest and repeat.
fn prefix<A: Addr>(rng: &mut Rng) -> Prefix<A> {
    let len = if rng.chance(0.1) { A::BITS } else { rng.below(7) as u8 };
    let mask = A::netmask(5).or(A::netmask(A::BITS - 2).not());
    Prefix::masked(rng.addr::<A>().and(mask), len).unwrap()
}

fn attributes(rng: &mut Rng) -> BgpAttributes<'static> {
    BgpAttributes {
        as_path_len: rng.below(3) as u32,
        local_pref: rng.chance(0.3).then(|| 90 + rng.below(3) as u32 * 10),
        med: rng.chance(0.3).then(|| rng.below(2) as u32),
        origin: rng.chance(0.5).then(|| rng.below(2) as u8),
        ..BgpAttributes::default()
    }
}

/// The best routes according to the changes alone.
#[derive(Default)]
struct BestRoutes(BTreeMap<(Vrf, AnyPrefix), AttributeSet>);

impl Changes for BestRoutes {
    fn changed<A: Addr>(&mut self, vrf: Vrf, change: Change<A>) {
        let key = (vrf, change.prefix.into());
        match change.best {
            Some((_, set)) => self.0.insert(key, set),
            None => self.0.remove(&key),
        };
    }
}

fn random<A: Addr>(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut rib = Rib::default();
    for asn in 1..=4 {
        rib.peer(Peer::new(None, asn));
    }
    let mut plain = Plain::<A> { paths: BTreeMap::new() };
    let mut changes = BestRoutes::default();
    for round in 0..3000 {
        let key =
            (rng.below(3) as u32, prefix::<A>(&mut rng), rng.below(4) as u32, rng.below(2) as u32);
        let (vrf, prefix, peer, path_id) = key;
        if round % 500 == 499 {
            rib.peer_down(peer, &mut changes);
            plain.paths.retain(|key, _| key.2 != peer);
        } else {
            let bgp = attributes(&mut rng);
            let change = if rng.chance(0.6) {
                plain.paths.insert(key, bgp.clone());
                CoreChange::Announce(Attributes::Bgp(&bgp))
            } else {
                plain.paths.remove(&key);
                CoreChange::Withdraw
            };
            let update = Update { vrf, peer, path_id, ..Update::new(prefix.into(), change) };
            rib.apply(&update, &mut changes).unwrap();
        }
        if round % 50 == 0 {
            check(&rib, &plain, &mut rng);
        }
    }
    check(&rib, &plain, &mut rng);
    for vrf in 0..3 {
        let now: BTreeMap<_, _> =
            rib.iter::<A>(vrf).map(|(p, path)| ((vrf, p.into()), path.attributes)).collect();
        let changes: BTreeMap<_, _> = changes
            .0
            .iter()
            .filter(|(key, _)| key.0 == vrf)
            .map(|(k, v)| (*k, v.clone()))
            .collect();
        assert_eq!(now, changes, "who follows the changes knows the table");
    }
    for peer in 0..4 {
        rib.peer_down(peer, &mut ());
    }
    assert!(rib.is_empty());
    assert_eq!(rib.memory().sets, 0, "no path refers to a set");
}

#[test]
fn equals_a_plain_map() {
    for seed in 0..3 {
        random::<u32>(seed);
        random::<u128>(seed);
    }
}

#[test]
fn preferences_are_followed_and_explained() {
    let preference = Preference { steps: vec![Step::PeerOrder], peers: vec![1] };
    let mut rib = Rib::new(preference);
    let peers = [1, 2].map(|asn| rib.peer(Peer::new(None, asn)));
    for (peer, as_path_len) in peers.into_iter().zip([1, 9]) {
        let bgp = BgpAttributes { as_path_len, ..Default::default() };
        let change = CoreChange::Announce(Attributes::Bgp(&bgp));
        let prefix = "10.0.0.0/8".parse().unwrap();
        rib.apply(&Update { peer, ..Update::new(prefix, change) }, &mut ()).unwrap();
    }
    let why = rib.explain::<u32>(0, "10.0.0.0/8".parse().unwrap()).unwrap();
    assert_eq!(why.best().peer, 1);
    assert_eq!(why.paths()[1].1, Some(Step::PeerOrder));
    assert_eq!(
        why.to_string(),
        "10.0.0.0/8: peer AS2 has the best path: AS path length 9\n  over peer AS1 by peer order: AS path length 1"
    );
    assert!(rib.explain::<u32>(0, Prefix::ALL).is_none());
}

/// A million routes of one peer, in the shape of the Internet's.
#[test]
fn a_route_costs_less_than_a_hundred_bytes() {
    let spec = |text: &str| text.parse::<fibula_testkit::fib::GenSpec>().unwrap();
    let v4: fibula_core::Routes<u32> =
        spec("gen:v4:2024:300000:1").with_hops(fibula_testkit::fib::HopModel::Hash(1)).generate();
    let v6: fibula_core::Routes<u128> =
        spec("gen:v6:2024:100000:1").with_hops(fibula_testkit::fib::HopModel::Hash(1)).generate();
    let prefixes = |rib: &mut Rib, prefixes: &mut dyn Iterator<Item = AnyPrefix>| {
        for prefix in prefixes {
            let bgp = BgpAttributes { as_path_len: 1, ..Default::default() };
            let change = CoreChange::Announce(Attributes::Bgp(&bgp));
            rib.apply(&Update::new(prefix, change), &mut ()).unwrap();
        }
    };
    let (mut rib4, mut rib6) = (Rib::default(), Rib::default());
    prefixes(&mut rib4, &mut v4.iter().map(|r| AnyPrefix::V4(r.prefix)));
    prefixes(&mut rib6, &mut v6.iter().map(|r| AnyPrefix::V6(r.prefix)));
    println!("{:.1} and {:.1} B", rib4.memory().per_route(), rib6.memory().per_route());
    assert!(rib4.memory().per_route() <= 80.0, "{:?}", rib4.memory());
    assert!(rib6.memory().per_route() <= 98.0, "{:?}", rib6.memory());
}
