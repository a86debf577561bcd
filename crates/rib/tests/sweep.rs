//! Peers that start over: random feeds with restarts, sessions that end and checkpoints in the middle,
//! against a plain map in which every path has a flag of its own.

use std::collections::{BTreeMap, BTreeSet};

use fibula_core::{
    Addr, AnyPrefix, Attributes, BgpAttributes, Change as CoreChange, NextHop, NextHops, Prefix,
    Update, Value, Vrf,
};
use fibula_rib::{AttributeSet, Change, Changes, FeedEvent, Peer, Preference, Rib, Snapshot};
use fibula_testkit::Rng;

/// VRF, prefix, peer, path identifier.
type Key = (Vrf, AnyPrefix, u32, u32);

#[derive(Default)]
struct Plain {
    /// The routes, and whether they are stale.
    paths: BTreeMap<Key, (AttributeSet, bool)>,
    resyncing: BTreeSet<u32>,
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

const PEERS: u32 = 3;
const VRFS: u32 = 2;

/// Few prefixes of both families, nested, so that peers meet at them.
fn prefix(rng: &mut Rng) -> AnyPrefix {
    let (bits, len) = (rng.below(4), rng.below(3) as u8);
    if rng.chance(0.5) {
        Prefix::masked((bits as u32) << 30, len).unwrap().into()
    } else {
        Prefix::masked(u128::from(bits) << 126, len).unwrap().into()
    }
}

/// A random set: one of a few of each kind.
fn set(rng: &mut Rng) -> AttributeSet {
    let number = rng.below(4);
    match rng.below(3) {
        0 => AttributeSet::new(&Attributes::Values(&[Value::Int(number)])),
        1 => {
            let bgp = BgpAttributes { as_path_len: number as u32, ..Default::default() };
            AttributeSet::new(&Attributes::Bgp(&bgp))
        }
        _ => {
            let hop = NextHop::via([192, 0, 2, number as u8].into());
            let next_hops = NextHops { hops: vec![hop; 2], ..Default::default() };
            AttributeSet::new(&Attributes::NextHops(&next_hops))
        }
    }
}

fn announce(
    rib: &mut Rib,
    changes: &mut BestRoutes,
    (vrf, prefix, peer, path_id): Key,
    set: &AttributeSet,
) {
    let (bgp, next_hops, values) = (set.bgp(), set.next_hops(), set.values());
    let attributes = match (&bgp, &next_hops) {
        (Some(bgp), _) => Attributes::Bgp(bgp),
        (_, Some(next_hops)) => Attributes::NextHops(next_hops),
        _ => Attributes::Values(&values),
    };
    let update = Update::new(prefix, CoreChange::Announce(attributes));
    rib.apply(&Update { vrf, peer, path_id, ..update }, changes).unwrap();
}

fn check<A: Addr>(rib: &Rib, plain: &Plain, changes: &BestRoutes) {
    for vrf in 0..VRFS {
        let mut held = BTreeMap::new();
        for (prefix, best) in rib.iter::<A>(vrf) {
            let any = AnyPrefix::from(prefix);
            assert_eq!(changes.0.get(&(vrf, any)), Some(&best.attributes), "{any}");
            for path in rib.paths(vrf, prefix) {
                held.insert((vrf, any, path.peer, path.path_id), path.attributes);
            }
        }
        let of_family = |key: &Key| key.0 == vrf && key.1.family() == A::FAMILY;
        let paths = plain.paths.iter().filter(|(key, _)| of_family(key));
        assert!(paths.map(|(key, (set, _))| (*key, set.clone())).eq(held));
        let prefixes = changes.0.keys().filter(|key| key.0 == vrf && key.1.family() == A::FAMILY);
        assert_eq!(prefixes.count(), rib.len::<A>(vrf), "changes report all removed routes");
    }
}

/// The peer alone, or several, for one event.
fn some(peer: u32, rng: &mut Rng) -> Vec<u32> {
    match rng.chance(0.5) {
        true => vec![peer],
        false => (0..PEERS).filter(|_| rng.chance(0.5)).collect(),
    }
}

#[test]
fn marks_and_sweeps_are_those_of_a_plain_map() {
    let (mut swept, mut reopened, mut restarted) = (0, 0, 0);
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let (mut rib, mut plain, mut changes) =
            (Rib::default(), Plain::default(), BestRoutes::default());
        (0..PEERS).for_each(|asn| assert_eq!(rib.peer(Peer::new(None, asn)), asn));
        for _ in 0..600 {
            let peer = rng.below(PEERS.into()) as u32;
            let vrf = rng.below(VRFS.into()) as u32;
            let key = (vrf, prefix(&mut rng), peer, rng.below(2) as u32);
            match rng.below(100) {
                0..60 => {
                    let set = set(&mut rng);
                    announce(&mut rib, &mut changes, key, &set);
                    plain.paths.insert(key, (set, false));
                }
                60..80 => {
                    let update = Update::new(key.1, CoreChange::Withdraw);
                    let update = Update { vrf, peer, path_id: key.3, ..update };
                    rib.apply(&update, &mut changes).unwrap();
                    plain.paths.remove(&key);
                }
                80..88 => {
                    let peers = some(peer, &mut rng);
                    match peers[..] {
                        [only] => rib.mark_stale(only),
                        _ => {
                            rib.apply_event(FeedEvent::MarkAllStale(&peers), &mut changes).unwrap()
                        }
                    }
                    let of_peers = plain.paths.iter_mut().filter(|(key, _)| peers.contains(&key.2));
                    of_peers.for_each(|(_, (_, stale))| *stale = true);
                    restarted += peers.len();
                    for peer in peers {
                        restarted -= usize::from(plain.resyncing.insert(peer));
                    }
                }
                88..94 => {
                    let peers = some(peer, &mut rng);
                    match peers[..] {
                        [only] => rib.sweep(only, &mut changes),
                        _ => rib.apply_event(FeedEvent::SweepAll(&peers), &mut changes).unwrap(),
                    }
                    let before = plain.paths.len();
                    plain.paths.retain(|key, (_, stale)| !peers.contains(&key.2) || !*stale);
                    swept += before - plain.paths.len();
                    plain.resyncing.retain(|peer| !peers.contains(peer));
                }
                94..96 => {
                    let peers = some(peer, &mut rng);
                    match peers[..] {
                        [only] => rib.peer_down(only, &mut changes),
                        _ => rib.apply_event(FeedEvent::DownAll(&peers), &mut changes).unwrap(),
                    }
                    plain.paths.retain(|key, _| !peers.contains(&key.2));
                    plain.resyncing.retain(|peer| !peers.contains(peer));
                }
                _ => {
                    let sequence = rib.sequence();
                    let bytes = rib.checkpoint("").to_bytes().unwrap();
                    let snapshot = Snapshot::from_bytes(bytes).unwrap();
                    rib = Rib::from_snapshot(&snapshot, Preference::default()).unwrap().rib;
                    assert_eq!(rib.sequence(), sequence);
                    reopened += plain.paths.values().filter(|(_, stale)| *stale).count();
                }
            }
            assert!(rib.resyncing().into_iter().eq(plain.resyncing.iter().copied()));
            check::<u32>(&rib, &plain, &changes);
            check::<u128>(&rib, &plain, &changes);
        }
        for peer in 0..PEERS {
            rib.mark_stale(peer);
            rib.sweep(peer, &mut changes);
        }
        assert!(rib.is_empty() && changes.0.is_empty() && rib.memory().sets == 0);
    }
    assert!(swept > 500 && reopened > 500 && restarted > 100, "{swept} {reopened} {restarted}");
}

/// A sweep removes paths that were not announced again, and keeps paths that were, even with the same attributes.
#[test]
fn a_restart_keeps_what_is_announced_again() {
    let mut rib = Rib::default();
    let mut changes = BestRoutes::default();
    let peers = [1, 2].map(|asn| rib.peer(Peer::new(None, asn)));
    let set = AttributeSet::new(&Attributes::Values(&[Value::Int(1)]));
    let p = |text: &str| text.parse::<AnyPrefix>().unwrap();
    for text in ["10.0.0.0/8", "11.0.0.0/8", "2001:db8::/32"] {
        announce(&mut rib, &mut changes, (0, p(text), peers[0], 0), &set);
    }
    announce(&mut rib, &mut changes, (0, p("11.0.0.0/8"), peers[1], 0), &set);
    rib.mark_stale(peers[0]);
    assert_eq!(rib.memory().routes, 4, "stale routes serve");
    announce(&mut rib, &mut changes, (0, p("10.0.0.0/8"), peers[0], 0), &set);
    rib.sweep(peers[0], &mut changes);
    let left: Vec<_> = changes.0.keys().map(|(_, prefix)| prefix.to_string()).collect();
    assert_eq!(left, ["10.0.0.0/8", "11.0.0.0/8"]);
    assert_eq!(rib.exact::<u32>(0, "11.0.0.0/8".parse().unwrap()).unwrap().peer, peers[1]);
    // A sweep without a mark removes nothing.
    rib.sweep(peers[0], &mut changes);
    rib.sweep(peers[1], &mut changes);
    assert_eq!(rib.memory().routes, 2);
}
