//! Three VRFs with the same prefixes, one of them without a compiled table: a feed of announcements, withdrawals and
//! ends of sessions through `Live`, against one plain map a VRF; through a checkpoint and without one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use crate::engines::{Behaviour, makers};
use fibula_core::{
    Addr, AnyPrefix, Attributes, Change, FamilyType, Hop, PerFamily, Prefix, Update, Value, Vrf,
};
use fibula_rib::{
    AttributeSet, Audit, FeedEvent, Live, LiveOptions, Pacing, Peer, Preference, Rib,
};
use fibula_testkit::Rng;

const VRFS: [Vrf; 3] = [0, 7, 9];
/// The followed VRFs; 9 is only in the RIB.
const FOLLOWED: [Vrf; 2] = [0, 7];
const PEERS: u32 = 4;
const EVENTS: usize = 6_000;
/// One event in this many is the end of a session.
const DOWN: usize = 997;

/// An event of the feed.
enum Event {
    /// A peer and a path identifier, with a value or without a route any more.
    CoreChange { vrf: Vrf, prefix: AnyPrefix, path: (u32, u32), value: Option<u64> },
    /// The session with the peer ended.
    Down(u32),
}

/// Few prefixes, nested, with the default route and host routes.
fn prefix<A: Addr>(rng: &mut Rng) -> Prefix<A> {
    let len = rng.choose(&[0, 1, 2, 3, 4, 5, 6, A::BITS]).unwrap();
    Prefix::masked(A::from_u128(u128::from(rng.below(64)) << (A::BITS - 6)), len).unwrap()
}

fn feed() -> Vec<Event> {
    let mut rng = Rng::new(21);
    let event = |i| {
        if i % DOWN == DOWN - 1 {
            return Event::Down(rng.below(PEERS.into()) as u32);
        }
        let vrf = rng.choose(&VRFS).unwrap();
        let prefix = match rng.below(2) {
            0 => AnyPrefix::V4(prefix(&mut rng)),
            _ => AnyPrefix::V6(prefix(&mut rng)),
        };
        let path = (rng.below(PEERS.into()) as u32, rng.below(2) as u32);
        // Values repeat within a VRF, but never in another VRF.
        let value = rng.below(50) * 10 + u64::from(vrf);
        Event::CoreChange { vrf, prefix, path, value: (!rng.chance(0.4)).then_some(value) }
    };
    (0..EVENTS).map(event).collect()
}

/// The values of the paths of each prefix, by peer and path identifier.
type Map<A> = BTreeMap<Prefix<A>, BTreeMap<(u32, u32), u64>>;

enum Maps {}

impl FamilyType for Maps {
    type Of<A: Addr> = Map<A>;
}

/// A plain model of one VRF.
type Plain = PerFamily<Maps>;

/// The value of the longest match. Values alone rank alike, so the peer that came first is best.
fn longest<A: Addr>(map: &Map<A>, addr: A) -> Option<u64> {
    let covering = (0..=A::BITS).rev().map(|len| Prefix::masked(addr, len).unwrap());
    let mut paths = covering.filter_map(|prefix| map.get(&prefix));
    paths.find_map(|paths| paths.values().next().copied())
}

fn value(set: &AttributeSet) -> u64 {
    match set.values()[..] {
        [Value::Int(value)] => value,
        ref other => panic!("{other:?}"),
    }
}

/// All paths of all VRFs by prefix, the best one first, then by peer.
type Paths = BTreeMap<(Vrf, String), Vec<(u32, u32, u64)>>;

/// A live table beside plain maps of the same feed.
struct Replay {
    live: Live,
    plain: BTreeMap<Vrf, Plain>,
}

fn follow(rib: Rib) -> Live {
    let pacing = Pacing { bucket: Duration::from_millis(1), ..Pacing::default() };
    let options = LiveOptions { pacing, audit: Audit::Full, ..LiveOptions::default() };
    Live::start(rib, &FOLLOWED, makers(Behaviour::default()), options, |_| {}).unwrap()
}

impl Replay {
    fn new() -> Self {
        let live = follow(Rib::default());
        for number in 0..PEERS {
            assert_eq!(live.peer(Peer::new(None, 64500 + number)), number);
        }
        let plain = VRFS.map(|vrf| (vrf, Plain::default())).into();
        Self { live, plain }
    }

    fn take(&mut self, event: &Event) {
        match *event {
            Event::Down(peer) => {
                self.live.event(FeedEvent::Down(peer)).unwrap();
                for plain in self.plain.values_mut() {
                    let all = plain.v4.values_mut().chain(plain.v6.values_mut());
                    all.for_each(|paths| paths.retain(|path, _| path.0 != peer));
                }
            }
            Event::CoreChange { vrf, prefix, path, value } => {
                let values = [Value::Int(value.unwrap_or_default())];
                let change = match value {
                    Some(_) => Change::Announce(Attributes::Values(&values)),
                    None => Change::Withdraw,
                };
                let (peer, path_id) = path;
                let update = Update { vrf, peer, path_id, ..Update::new(prefix, change) };
                self.live.apply(&update).unwrap();
                let plain = self.plain.get_mut(&vrf).unwrap();
                let paths = match prefix {
                    AnyPrefix::V4(prefix) => plain.v4.entry(prefix).or_default(),
                    AnyPrefix::V6(prefix) => plain.v6.entry(prefix).or_default(),
                };
                match value {
                    Some(value) => paths.insert(path, value),
                    None => paths.remove(&path),
                };
            }
        }
    }

    /// Continues from a file. The feed's position is the number of events.
    fn through_checkpoint(self, path: &Path, position: usize) -> Self {
        self.live.checkpoint(&position.to_string()).write(path).unwrap();
        let (before, peers) = (self.paths(), self.live.with_rib(|rib| rib.peers().clone()));
        drop(self.live);
        let restored = Rib::open(path, Preference::default()).unwrap();
        assert_eq!(restored.position, position.to_string());
        assert_eq!(restored.rib.sequence(), position as u64);
        assert_eq!(*restored.rib.peers(), peers);
        let replay = Self { live: follow(restored.rib), ..self };
        assert!(replay.paths() == before, "the paths came back");
        replay.compare();
        replay
    }

    /// Every VRF at both ends of every touched prefix and beside them: what readers see, and what the RIB
    /// answers.
    fn compare(&self) {
        self.live.flush().unwrap();
        self.compare_family::<u32>();
        self.compare_family::<u128>();
    }

    fn compare_family<A: Addr>(&self) {
        // Prefixes without a path stay in the maps.
        let touched = self.plain.values().flat_map(|plain| plain.get::<A>().keys().copied());
        let touched: BTreeSet<Prefix<A>> = touched.collect();
        let addrs: Vec<A> = touched.into_iter().flat_map(around).collect();
        for (&vrf, plain) in &self.plain {
            let map = plain.get::<A>();
            let expected: Vec<_> = addrs.iter().map(|addr| longest(map, *addr)).collect();
            let of_rib = self.live.with_rib(|rib| -> Vec<_> {
                let best = |addr: &A| Some(value(&rib.longest(vrf, *addr)?.1.attributes));
                addrs.iter().map(best).collect()
            });
            assert!(of_rib == expected, "the RIB, VRF {vrf}");
            let Some(mut reader) = self.live.reader::<A>(vrf) else {
                assert!(!FOLLOWED.contains(&vrf));
                continue;
            };
            assert!(FOLLOWED.contains(&vrf));
            let table = reader.pin();
            let mut hops = vec![Hop::NONE; addrs.len()];
            table.lookup_batch(&addrs, &mut hops);
            for ((addr, hop), expected) in addrs.iter().zip(hops).zip(expected) {
                let found = table.attributes(hop).map(value);
                assert_eq!(found, expected, "{} in VRF {vrf}", addr.to_string_ip());
            }
            assert_eq!(self.live.counters::<A>(vrf).unwrap().differences.get(), 0);
        }
    }

    /// The contents of the RIB.
    fn paths(&self) -> Paths {
        let mut all = Paths::new();
        self.live.with_rib(|rib| {
            assert!(rib.vrfs().all(|vrf| VRFS.contains(&vrf)));
            for vrf in VRFS {
                paths_of::<u32>(rib, vrf, &mut all);
                paths_of::<u128>(rib, vrf, &mut all);
            }
        });
        all
    }

    /// The contents of the plain maps, in the same form.
    fn plain_paths(&self) -> Paths {
        fn of<A: Addr>(vrf: Vrf, map: &Map<A>, all: &mut Paths) {
            for (prefix, paths) in map.iter().filter(|(_, paths)| !paths.is_empty()) {
                let paths = paths.iter().map(|((peer, id), value)| (*peer, *id, *value));
                all.insert((vrf, prefix.to_string()), paths.collect());
            }
        }
        let mut all = Paths::new();
        for (vrf, plain) in &self.plain {
            of(*vrf, &plain.v4, &mut all);
            of(*vrf, &plain.v6, &mut all);
        }
        all
    }
}

fn paths_of<A: Addr>(rib: &Rib, vrf: Vrf, all: &mut Paths) {
    for (prefix, _) in rib.iter::<A>(vrf) {
        let paths = rib.paths(vrf, prefix).into_iter();
        let mut paths: Vec<_> =
            paths.map(|path| (path.peer, path.path_id, value(&path.attributes))).collect();
        paths[1..].sort_unstable(); // only the best one has a place
        all.insert((vrf, prefix.to_string()), paths);
    }
}

/// The ends of the prefix and their neighbours.
fn around<A: Addr>(prefix: Prefix<A>) -> Vec<A> {
    let (first, last) = (prefix.first(), prefix.last());
    let all = [first.predecessor(), Some(first), Some(last), last.successor()];
    all.into_iter().flatten().collect()
}

/// The whole feed, with a checkpoint before this event or without one.
fn replay(feed: &[Event], checkpoint: Option<usize>) -> Paths {
    let directory = tempfile::tempdir().unwrap();
    let mut replay = Replay::new();
    for (i, event) in feed.iter().enumerate() {
        if checkpoint == Some(i) {
            replay = replay.through_checkpoint(&directory.path().join("rib.fib"), i);
        }
        replay.take(event);
        if i % 500 == 499 {
            replay.compare();
        }
    }
    replay.compare();
    let paths = replay.paths();
    assert!(paths == replay.plain_paths(), "the RIB and the plain maps");
    assert_eq!(replay.live.with_rib(Rib::sequence), feed.len() as u64);
    paths
}

#[test]
fn a_feed_of_several_vrfs_through_a_checkpoint() {
    let feed = feed();
    let whole = replay(&feed, None);
    // Many prefixes are in all VRFs, each with a value of its own.
    let best = |vrf, prefix: &String| whole.get(&(vrf, prefix.clone())).map(|paths| paths[0].2);
    let of_global = whole.keys().filter(|(vrf, _)| *vrf == 0).map(|(_, prefix)| prefix);
    let shared = of_global.filter_map(|prefix| {
        let values: BTreeSet<u64> = VRFS.iter().filter_map(|vrf| best(*vrf, prefix)).collect();
        (values.len() == VRFS.len()).then_some(prefix.contains(':'))
    });
    let (v6, v4): (Vec<bool>, Vec<bool>) = shared.partition(|is_v6| *is_v6);
    assert!(v4.len() > 30 && v6.len() > 30, "{} {}", v4.len(), v6.len());
    // Before some update, and right after the end of a session.
    for checkpoint in [EVENTS / 2, 4 * DOWN] {
        assert!(matches!(feed[4 * DOWN - 1], Event::Down(_)));
        let paths = replay(&feed, Some(checkpoint));
        assert!(paths == whole, "checkpoint before event {checkpoint}");
    }
}
