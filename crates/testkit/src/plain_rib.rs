//! The oracle of a RIB.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::marker::PhantomData;

use fibula_core::{Addr, AnyPrefix, FamilyType, PerFamily, Prefix};

/// The paths of a prefix by peer and path identifier.
pub type PlainPaths<S> = BTreeMap<(u32, u32), S>;

/// The prefixes with their paths.
struct Maps<S>(PhantomData<S>);

impl<S> FamilyType for Maps<S> {
    type Of<A: Addr> = HashMap<Prefix<A>, PlainPaths<S>>;
}

/// The routes of one table by peer, in plain maps: slow, complete, and obviously right.
///
/// `S` is the data of a path. The caller decides which path is the best: by the smallest rank.
///
/// ```
/// use fibula_testkit::PlainRib;
/// let mut rib = PlainRib::default();
/// rib.announce("10.0.0.0/8".parse()?, (0, 0), 7);
/// rib.announce("10.0.0.0/8".parse()?, (1, 0), 5);
/// let rank = |_, &path: &i32| path;
/// assert_eq!(rib.longest::<u32, _>(0x0a00_0001, rank), Some(&5));
/// rib.mark_stale(1);
/// rib.sweep(1);
/// assert_eq!(rib.longest::<u32, _>(0x0a00_0001, rank), Some(&7));
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
pub struct PlainRib<S> {
    maps: PerFamily<Maps<S>>,
    /// The paths that their peer has to announce again before its sweep.
    stale: BTreeSet<(u32, u32, AnyPrefix)>,
}

impl<S> Default for PlainRib<S> {
    fn default() -> Self {
        Self { maps: PerFamily { v4: HashMap::new(), v6: HashMap::new() }, stale: BTreeSet::new() }
    }
}

/// The best path: that of the smallest rank, by peer, path identifier and path.
pub fn best<S, K: Ord>(paths: &PlainPaths<S>, rank: impl Fn((u32, u32), &S) -> K) -> Option<&S> {
    paths.iter().min_by_key(|(key, path)| rank(**key, path)).map(|(_, path)| path)
}

impl<S> PlainRib<S> {
    /// Sets the path of a peer and a path identifier.
    pub fn announce(&mut self, prefix: AnyPrefix, (peer, path_id): (u32, u32), path: S) {
        self.stale.remove(&(peer, path_id, prefix));
        let paths = match prefix {
            AnyPrefix::V4(prefix) => self.maps.v4.entry(prefix).or_default(),
            AnyPrefix::V6(prefix) => self.maps.v6.entry(prefix).or_default(),
        };
        paths.insert((peer, path_id), path);
    }

    /// Removes the path of a peer and a path identifier.
    pub fn withdraw(&mut self, prefix: AnyPrefix, (peer, path_id): (u32, u32)) {
        self.stale.remove(&(peer, path_id, prefix));
        match prefix {
            AnyPrefix::V4(prefix) => remove(&mut self.maps.v4, prefix, (peer, path_id)),
            AnyPrefix::V6(prefix) => remove(&mut self.maps.v6, prefix, (peer, path_id)),
        }
    }

    /// Removes all paths of a peer.
    pub fn down(&mut self, peer: u32) {
        self.stale.retain(|&(of, ..)| of != peer);
        self.retain(|(of, ..)| of != peer);
    }

    /// Marks all paths of a peer.
    pub fn mark_stale(&mut self, peer: u32) {
        self.stale.extend(of_peer(&self.maps.v4, peer));
        self.stale.extend(of_peer(&self.maps.v6, peer));
    }

    /// Removes the marked paths of a peer.
    pub fn sweep(&mut self, peer: u32) {
        let swept: BTreeSet<_> = self.stale.extract_if(.., |&(of, ..)| of == peer).collect();
        self.retain(|path| !swept.contains(&path));
    }

    /// The prefixes of a family with their paths, in no order.
    pub fn iter<A: Addr>(&self) -> impl Iterator<Item = (Prefix<A>, &PlainPaths<S>)> {
        self.maps.get::<A>().iter().map(|(prefix, paths)| (*prefix, paths))
    }

    /// All prefixes, sorted.
    pub fn prefixes(&self) -> Vec<AnyPrefix> {
        let v4 = self.maps.v4.keys().copied().map(AnyPrefix::V4);
        let v6 = self.maps.v6.keys().copied().map(AnyPrefix::V6);
        let mut all: Vec<_> = v4.chain(v6).collect();
        all.sort_unstable();
        all
    }

    /// The best path of the longest prefix that has the address.
    pub fn longest<A: Addr, K: Ord>(
        &self,
        addr: A,
        rank: impl Fn((u32, u32), &S) -> K,
    ) -> Option<&S> {
        let shorter = (0..=A::BITS).rev().filter_map(|len| Prefix::masked(addr, len).ok());
        let paths = shorter.into_iter().find_map(|prefix| self.maps.get::<A>().get(&prefix))?;
        best(paths, rank)
    }

    /// Removes all other paths.
    fn retain(&mut self, keep: impl Fn((u32, u32, AnyPrefix)) -> bool) {
        retain(&mut self.maps.v4, &keep);
        retain(&mut self.maps.v6, &keep);
    }
}

type Map<A, S> = HashMap<Prefix<A>, PlainPaths<S>>;

fn remove<A: Addr, S>(map: &mut Map<A, S>, prefix: Prefix<A>, key: (u32, u32)) {
    if let Some(paths) = map.get_mut(&prefix) {
        paths.remove(&key);
        if paths.is_empty() {
            map.remove(&prefix);
        }
    }
}

fn retain<A: Addr, S>(map: &mut Map<A, S>, keep: impl Fn((u32, u32, AnyPrefix)) -> bool) {
    map.retain(|&prefix, paths| {
        paths.retain(|&(peer, path_id), _| keep((peer, path_id, prefix.into())));
        !paths.is_empty()
    });
}

/// The paths of a peer, by path identifier and prefix.
fn of_peer<A: Addr, S>(map: &Map<A, S>, peer: u32) -> impl Iterator<Item = (u32, u32, AnyPrefix)> {
    map.iter().flat_map(move |(&prefix, paths)| {
        let keys = paths.keys().filter(move |(of, _)| *of == peer);
        keys.map(move |&(_, path_id)| (peer, path_id, prefix.into()))
    })
}
