//! The routes of a family with an index for longest-prefix match. The arrays are the same in memory and in a
//! snapshot.

use std::ops::Range;

use fibula_core::{Addr, AnyEngine, Follow, Hop, Lookup, Memory, Prefix, Route, Routes};

use crate::Pod;
use crate::array::Array;

/// No parent.
pub(crate) const NO_PARENT: u32 = u32::MAX;
/// The most bits that a bucket index may have: 64 MiB.
pub(crate) const MAX_BUCKET_BITS: u8 = 24;

/// The routes of a family, sorted, with an index that finds the longest match of an address.
///
/// An engine answers only with a hop. To get the matched prefix too, use [`IndexedRoutes::matched`]. The bucket of
/// the address's first bits narrows the routes to a few, and a binary search finds the last one that begins at or
/// before the address. From there, the parents (each the longest prefix that covers a prefix) lead to the longest
/// match. It is among them, because every prefix that begins between a match and the address lies inside the match.
///
/// As a [`Lookup`] it answers with hops by this search: many times slower than an engine, but without a build.
///
/// ```
/// use fibula_core::{Hop, Lookup, Routes};
/// use fibula_rib::IndexedRoutes;
/// let list = [("10.0.0.0/8", 0), ("10.1.0.0/16", 1), ("11.0.0.0/8", 2)];
/// let routes: Routes<u32> = list.map(|(p, h)| (p.parse().unwrap(), Hop::new(h))).into_iter().collect();
/// let routes = IndexedRoutes::new(&routes);
/// assert_eq!(routes.matched(0x0a01_0203), Some(1));
/// assert_eq!(routes.covering(0x0a01_0203).collect::<Vec<_>>(), [1, 0]);
/// assert_eq!(routes.within("10.0.0.0/7".parse().unwrap()), 0..3);
/// assert_eq!(routes.find("10.1.0.0/16".parse().unwrap()), Some(1));
/// assert_eq!(routes.lookup(0x0bff_ffff), Hop::new(2));
/// ```
#[derive(Clone)]
pub struct IndexedRoutes<A: Addr> {
    pub(crate) addrs: Array<A>,
    pub(crate) lens: Array<u8>,
    pub(crate) hops: Array<u32>,
    /// The route with the longest prefix that covers this one, always an earlier one.
    pub(crate) parents: Array<u32>,
    /// `buckets[b]` routes have first bits below `b`; ascending, the last one is the number of routes.
    pub(crate) buckets: Array<u32>,
    pub(crate) bits: u8,
}

impl<A: Addr + Pod> Default for IndexedRoutes<A> {
    fn default() -> Self {
        Self::new(&Routes::default())
    }
}

impl<A: Addr + Pod> IndexedRoutes<A> {
    /// Copies and indexes the routes. O(n).
    ///
    /// # Panics
    /// If there are 2^32 - 1 routes or more.
    pub fn new(routes: &Routes<A>) -> Self {
        assert!(routes.len() < NO_PARENT as usize, "route numbers have 32 bits");
        let addrs: Vec<A> = routes.iter().map(|r| r.prefix.addr()).collect();
        let bits = bucket_bits(addrs.len());
        Self {
            buckets: buckets(&addrs, bits).into(),
            bits,
            addrs: addrs.into(),
            lens: routes.iter().map(|r| r.prefix.len()).collect::<Vec<_>>().into(),
            hops: routes.iter().map(|r| r.hop.to_bits()).collect::<Vec<_>>().into(),
            parents: parents(routes).into(),
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.addrs.len()
    }

    /// Whether there are no routes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The route with this index, in sorted order.
    ///
    /// # Panics
    /// If `index` is not below [`IndexedRoutes::len`].
    #[inline]
    pub fn get(&self, index: usize) -> Route<A> {
        let (addr, len) = (self.addrs[index], self.lens[index].min(A::BITS));
        // The prefix was checked when the file was opened to be canonical and not too long, so this masks nothing.
        let prefix = Prefix::masked(addr, len).unwrap_or(Prefix::ALL);
        Route { prefix, hop: Hop::from_bits(self.hops[index]) }
    }

    /// The hop of the route with this index.
    ///
    /// # Panics
    /// If `index` is not below [`IndexedRoutes::len`].
    #[inline]
    pub fn hop(&self, index: usize) -> Hop {
        Hop::from_bits(self.hops[index])
    }

    /// The prefix length of the route with this index.
    ///
    /// # Panics
    /// If `index` is not below [`IndexedRoutes::len`].
    #[inline]
    pub fn prefix_len(&self, index: usize) -> u8 {
        self.lens[index].min(A::BITS)
    }

    /// The index of the longest matching route.
    #[inline]
    pub fn matched(&self, addr: A) -> Option<usize> {
        let addrs: &[A] = &self.addrs;
        let buckets: &[u32] = &self.buckets;
        let bucket = top(addr, self.bits);
        let (start, end) = (buckets[bucket] as usize, buckets[bucket + 1] as usize);
        let at_or_before = start + addrs[start..end].partition_point(|&first| first <= addr);
        let parents: &[u32] = &self.parents;
        let lens: &[u8] = &self.lens;
        let mut index = at_or_before.checked_sub(1)?;
        // Every step leaves a covering prefix behind and goes to a shorter one, so a sound table never
        // needs more; the bound keeps a forged one from making lookups slow.
        for _ in 0..=A::BITS {
            if addr.xor(addrs[index]).and(A::netmask(lens[index])) == A::MIN {
                return Some(index);
            }
            index = up(parents, index)?;
        }
        None
    }

    /// The indices of all routes that match the address, longest first.
    pub fn covering(&self, addr: A) -> impl Iterator<Item = usize> + '_ {
        let first = self.matched(addr).unwrap_or(self.len());
        self.outward(first).filter(move |&index| self.get(index).prefix.contains(addr))
    }

    /// The index of a route, followed by those of the routes that cover it, longest first.
    pub fn outward(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let first = Some(index).filter(|&index| index < self.len());
        std::iter::successors(first, |&index| up(&self.parents, index))
            .take(usize::from(A::BITS) + 1)
    }

    /// The indices of the routes that the prefix covers, including its own. O(log n).
    pub fn within(&self, prefix: Prefix<A>) -> Range<usize> {
        // Prefixes that begin at the same address are next to each other, shorter ones first.
        let begin = self.addrs.partition_point(|&addr| addr < prefix.first());
        let same = self.addrs[begin..].partition_point(|&addr| addr == prefix.first());
        let shorter = self.lens[begin..begin + same].partition_point(|&len| len < prefix.len());
        let inside = self.addrs[begin..].partition_point(|&addr| addr <= prefix.last());
        begin + shorter..begin + inside
    }

    /// The index of the route with exactly this prefix. O(log n).
    pub fn find(&self, prefix: Prefix<A>) -> Option<usize> {
        let first = self.within(prefix).next()?;
        (self.get(first).prefix == prefix).then_some(first)
    }

    /// The routes in the form that engines are built from.
    pub fn to_routes(&self) -> Routes<A> {
        (0..self.len()).map(|index| self.get(index)).collect()
    }
}

impl<A: Addr + Pod> Lookup<A> for IndexedRoutes<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.matched(addr).map_or(Hop::NONE, |index| Hop::from_bits(self.hops[index]))
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        addrs.iter().zip(hops).for_each(|(addr, hop)| *hop = self.lookup(*addr));
    }

    fn memory(&self) -> Memory {
        Memory::new([
            ("addr", size_of_val::<[A]>(&self.addrs)),
            ("len", self.lens.len()),
            ("hop", size_of_val::<[u32]>(&self.hops)),
            ("parent", size_of_val::<[u32]>(&self.parents)),
            ("bucket", size_of_val::<[u32]>(&self.buckets)),
        ])
    }
}

impl<A: Addr + Pod> Follow<A> for IndexedRoutes<A> {}
impl<A: Addr + Pod> AnyEngine<A> for IndexedRoutes<A> {}

#[inline]
fn up(parents: &[u32], index: usize) -> Option<usize> {
    Some(parents[index]).filter(|&p| p != NO_PARENT).map(|p| p as usize)
}

/// Number of bits of the bucket index for `routes` routes: about one bucket for each route, within limits.
fn bucket_bits(routes: usize) -> u8 {
    let bits = usize::BITS - routes.saturating_sub(1).leading_zeros();
    bits.clamp(4, 18) as u8
}

/// The first `bits` (1 to 24) bits of the address.
#[inline]
fn top<A: Addr>(addr: A, bits: u8) -> usize {
    match A::BITS {
        32 => (addr.to_u128() as u32 >> (32 - bits)) as usize,
        _ => ((addr.to_u128() >> 64) as u64 >> (64 - bits)) as usize,
    }
}

/// The bucket index of sorted routes.
fn buckets<A: Addr>(addrs: &[A], bits: u8) -> Vec<u32> {
    let mut buckets = vec![0u32; (1 << bits) + 1];
    for addr in addrs {
        buckets[top(*addr, bits) + 1] += 1;
    }
    for b in 1..buckets.len() {
        buckets[b] += buckets[b - 1];
    }
    buckets
}

/// For each route the index of the longest prefix that covers it, [`NO_PARENT`] if there is none.
fn parents<A: Addr>(routes: &Routes<A>) -> Vec<u32> {
    let mut open: Vec<(Prefix<A>, u32)> = Vec::new();
    let mut parents = Vec::with_capacity(routes.len());
    for (route, index) in routes.iter().zip(0..) {
        while open.last().is_some_and(|(prefix, _)| !prefix.covers(route.prefix)) {
            open.pop();
        }
        parents.push(open.last().map_or(NO_PARENT, |&(_, parent)| parent));
        open.push((route.prefix, index));
    }
    parents
}
