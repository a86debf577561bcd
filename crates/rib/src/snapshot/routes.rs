use std::sync::Arc;

use bytemuck::Pod;
use fibula_core::{Addr, Hop, Prefix, Route, Routes, SharedBytes, TableSource};

use super::Snapshot;
use crate::Table;
use crate::array::{Array, Image};

/// No parent.
pub(super) const NO_PARENT: u32 = u32::MAX;
/// The most bits that a bucket index may have: 64 MiB.
pub(super) const MAX_BUCKET_BITS: u8 = 24;

/// The families that a snapshot holds: `u32` and `u128`.
pub trait StoredFamily: Addr + Pod {
    /// The stored routes of this family.
    #[doc(hidden)]
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self>;
    /// The routes of this family.
    #[doc(hidden)]
    fn routes(table: &Table) -> &Routes<Self>;
    /// The first `bits` (1 to 24) bits.
    #[doc(hidden)]
    fn top(self, bits: u8) -> usize;
}

impl StoredFamily for u32 {
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self> {
        &snapshot.v4
    }
    fn routes(table: &Table) -> &Routes<Self> {
        &table.v4
    }
    #[inline]
    fn top(self, bits: u8) -> usize {
        (self >> (32 - bits)) as usize
    }
}

impl StoredFamily for u128 {
    fn of(snapshot: &Snapshot) -> &StoredRoutes<Self> {
        &snapshot.v6
    }
    fn routes(table: &Table) -> &Routes<Self> {
        &table.v6
    }
    #[inline]
    fn top(self, bits: u8) -> usize {
        ((self >> 64) as u64 >> (64 - bits)) as usize
    }
}

/// The routes of a family as they lie in a snapshot, sorted, with what it takes to find the matching
/// one.
///
/// An engine answers with a hop only. Where the matched prefix is wanted as well,
/// [`StoredRoutes::matched`] finds it: the bucket of the address's first bits narrows the routes to a
/// few, a binary search finds the last that begins at or before the address, and from there a climb
/// along the parents (the longest prefix that covers a prefix) ends at the longest match. That it is
/// among them: whatever begins between a match and the address lies inside the match.
pub struct StoredRoutes<A: StoredFamily> {
    pub(super) addrs: Array<A>,
    pub(super) lens: Array<u8>,
    pub(super) hops: Array<u32>,
    /// The route with the longest prefix that covers this one, always an earlier one.
    pub(super) parents: Array<u32>,
    /// `buckets[b]` routes have first bits below `b`; ascending, the last one is the number of routes.
    pub(super) buckets: Array<u32>,
    pub(super) bits: u8,
    pub(super) rows: u32,
    pub(super) engine: String,
    pub(super) tables: StoredTables,
}

impl<A: StoredFamily> StoredRoutes<A> {
    /// Number of routes.
    pub fn len(&self) -> usize {
        self.addrs.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Route `index`, in sorted order.
    ///
    /// # Panics
    /// If `index` is not below [`StoredRoutes::len`].
    #[inline]
    pub fn get(&self, index: usize) -> Route<A> {
        let (addr, len) = (self.addrs[index], self.lens[index].min(A::BITS));
        // Canonical and within the family's length since opening: this masks nothing.
        let prefix = Prefix::masked(addr, len).unwrap_or(Prefix::ALL);
        Route { prefix, hop: Hop::from_bits(self.hops[index]) }
    }

    /// The index of the longest matching route.
    ///
    /// ```
    /// # use fibula_core::{Hop, Prefix, Routes};
    /// # use fibula_rib::{EnginePart, Snapshot, Table, to_bytes};
    /// let routes = [("10.0.0.0/8", 0), ("10.1.0.0/16", 1)];
    /// let v4: Routes<u32> = routes.map(|(p, h)| (p.parse().unwrap(), Hop::new(h))).into_iter().collect();
    /// let table = Table::from_routes(v4, Routes::default());
    /// let bytes = to_bytes(&table, &EnginePart::none(), &EnginePart::none())?;
    /// let snapshot = Snapshot::from_bytes(bytes)?;
    /// let stored = snapshot.family::<u32>();
    /// assert_eq!(stored.matched(0x0a01_0203), Some(1));
    /// assert_eq!(stored.matched(0x0aff_0000), Some(0));
    /// assert_eq!(stored.matched(0x0b00_0000), None);
    /// assert_eq!(stored.covering(0x0a01_0203).collect::<Vec<_>>(), [1, 0]);
    /// # Ok::<(), fibula_rib::SnapshotError>(())
    /// ```
    #[inline]
    pub fn matched(&self, addr: A) -> Option<usize> {
        let addrs: &[A] = &self.addrs;
        let buckets: &[u32] = &self.buckets;
        let bucket = addr.top(self.bits);
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
        let first = self.matched(addr);
        std::iter::successors(first, |&index| up(&self.parents, index))
            .take(usize::from(A::BITS) + 1)
            .filter(move |&index| self.get(index).prefix.contains(addr))
    }

    /// The routes as a table to build engines from.
    pub fn to_routes(&self) -> Routes<A> {
        (0..self.len()).map(|index| self.get(index)).collect()
    }

    /// The engine whose tables are stored; empty if there is none.
    pub fn engine_name(&self) -> &str {
        &self.engine
    }

    /// The engine's tables.
    pub fn tables(&self) -> &dyn TableSource {
        &self.tables
    }

    /// The names of the engine's tables with their bytes.
    pub fn table_sizes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.tables.places.iter().map(|(name, start, end)| (name.as_str(), end - start))
    }

    /// Number of attribute rows: every hop is below it.
    pub fn hop_count(&self) -> u32 {
        self.rows
    }
}

#[inline]
fn up(parents: &[u32], index: usize) -> Option<usize> {
    Some(parents[index]).filter(|&p| p != NO_PARENT).map(|p| p as usize)
}

/// The tables of one engine inside a snapshot.
pub(super) struct StoredTables {
    pub(super) image: Arc<Image>,
    pub(super) places: Vec<(String, usize, usize)>,
}

impl TableSource for StoredTables {
    fn table(&self, name: &str) -> Option<SharedBytes> {
        let (_, start, end) = self.places.iter().find(|(n, ..)| n == name)?;
        let owner: Arc<dyn AsRef<[u8]> + Send + Sync> = self.image.clone();
        SharedBytes::new(owner, *start, end - start)
    }
}

/// How many bits the bucket index of `routes` routes has: about one bucket a route, within reason.
pub(super) fn bucket_bits(routes: usize) -> u8 {
    let bits = usize::BITS - routes.saturating_sub(1).leading_zeros();
    bits.clamp(4, 18) as u8
}

/// The bucket index of sorted routes.
pub(super) fn buckets<A: StoredFamily>(addrs: &[A], bits: u8) -> Vec<u32> {
    let mut buckets = vec![0u32; (1 << bits) + 1];
    for addr in addrs {
        buckets[addr.top(bits) + 1] += 1;
    }
    for b in 1..buckets.len() {
        buckets[b] += buckets[b - 1];
    }
    buckets
}

/// For each route the index of the longest prefix that covers it, [`NO_PARENT`] if there is none.
pub(super) fn parents<A: Addr>(routes: &Routes<A>) -> Vec<u32> {
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
