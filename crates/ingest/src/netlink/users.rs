//! The routes that use each next-hop object.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use fibula_core::{Addr, AnyPrefix, Prefix, Vrf};

/// A route, as a feed names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) vrf: Vrf,
    pub(super) path_id: u32,
    pub(super) prefix: AnyPrefix,
}

/// The number of the object that each route uses. Routes that have their next hops inline take no room:
/// a route costs 8 bytes of IPv4 and 20 of IPv6, in tables that are between three and six eighths full.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// By VRF and path.
    tables: HashMap<(Vrf, u32), Tables>,
    seed: Seed,
}

#[derive(Default)]
struct Tables {
    v4: Table<u32>,
    v6: Table<u128>,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} and {} routes", self.v4.len, self.v6.len)
    }
}

/// Who speaks to us chooses the prefixes, so it must not know the places that they get.
#[derive(Debug)]
struct Seed(u64);

impl Default for Seed {
    fn default() -> Self {
        Self(RandomState::new().hash_one(0))
    }
}

impl Users {
    /// Numbers that objects may have.
    pub(super) const NUMBERS: u32 = (1 << TAG_BITS) - 1;

    /// Sets the object of a route; gives the one that it had.
    pub(super) fn set(&mut self, key: Key, number: u32) -> Option<u32> {
        let tables = self.tables.entry((key.vrf, key.path_id)).or_default();
        match key.prefix {
            AnyPrefix::V4(prefix) => tables.v4.set(prefix, number, self.seed.0),
            AnyPrefix::V6(prefix) => tables.v6.set(prefix, number, self.seed.0),
        }
    }

    /// Whether this route has an object.
    pub(super) fn has(&self, key: Key) -> bool {
        self.tables.get(&(key.vrf, key.path_id)).is_some_and(|tables| match key.prefix {
            AnyPrefix::V4(prefix) => tables.v4.has(prefix, self.seed.0),
            AnyPrefix::V6(prefix) => tables.v6.has(prefix, self.seed.0),
        })
    }

    /// Forgets a route; gives the object that it had.
    pub(super) fn remove(&mut self, key: Key) -> Option<u32> {
        let tables = self.tables.get_mut(&(key.vrf, key.path_id))?;
        match key.prefix {
            AnyPrefix::V4(prefix) => tables.v4.remove(prefix, self.seed.0),
            AnyPrefix::V6(prefix) => tables.v6.remove(prefix, self.seed.0),
        }
    }

    /// Gives the routes whose object `is_wanted`, sorted, with its number.
    pub(super) fn of(&self, is_wanted: impl Fn(u32) -> bool, mut each: impl FnMut(Key, u32)) {
        let mut tables: Vec<_> = self.tables.iter().collect();
        tables.sort_unstable_by_key(|(id, _)| **id);
        for (&(vrf, path_id), tables) in tables {
            let mut give = |prefix, number| each(Key { vrf, path_id, prefix }, number);
            for (prefix, number) in tables.v4.of(&is_wanted) {
                give(prefix.into(), number);
            }
            for (prefix, number) in tables.v6.of(&is_wanted) {
                give(prefix.into(), number);
            }
        }
    }
}

/// Bits of an [`Entry::tag`] that hold the number; those above hold the prefix length.
const TAG_BITS: u32 = 24;

/// A prefix and a number.
#[derive(Clone, Copy)]
#[repr(C, packed(4))]
struct Entry<A> {
    addr: A,
    /// The number plus one, and the length above it; 0 if the place is free.
    tag: u32,
}

const _: () = assert!(size_of::<Entry<u32>>() == 8 && size_of::<Entry<u128>>() == 20);

impl<A: Addr> Entry<A> {
    const FREE: Self = Self { addr: A::MIN, tag: 0 };

    fn new(prefix: Prefix<A>, number: u32) -> Self {
        Self { addr: prefix.addr(), tag: (number + 1) | u32::from(prefix.len()) << TAG_BITS }
    }

    fn is_free(self) -> bool {
        self.tag == 0
    }

    fn is(self, prefix: Prefix<A>) -> bool {
        let addr = self.addr;
        !self.is_free() && addr == prefix.addr() && self.prefix_len() == prefix.len()
    }

    fn prefix_len(self) -> u8 {
        (self.tag >> TAG_BITS) as u8
    }

    fn prefix(self) -> Prefix<A> {
        Prefix::masked(self.addr, self.prefix_len()).unwrap_or(Prefix::ALL)
    }

    fn number(self) -> u32 {
        (self.tag & ((1 << TAG_BITS) - 1)) - 1
    }

    /// Where it belongs, as a fraction of the table.
    fn hash(self, seed: u64) -> u64 {
        let addr = self.addr.to_u128();
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product >> 64) as u64 ^ product as u64
        };
        let high = (addr >> 64) as u64 ^ u64::from(self.prefix_len());
        let first = fold(high ^ seed, 0x9e37_79b9_7f4a_7c15);
        fold(first ^ addr as u64 ^ seed.rotate_left(32), 0xd6e8_feb8_6659_fd93 ^ seed)
    }
}

/// An open table with linear probing: an entry stands at its place or behind it, with no free place between.
struct Table<A> {
    entries: Vec<Entry<A>>,
    len: usize,
}

impl<A> Default for Table<A> {
    fn default() -> Self {
        Self { entries: Vec::new(), len: 0 }
    }
}

impl<A: Addr> Table<A> {
    const SMALLEST: usize = 8;

    fn set(&mut self, prefix: Prefix<A>, number: u32, seed: u64) -> Option<u32> {
        if (self.len + 1) * 4 > self.entries.len() * 3 {
            self.resize((self.entries.len() * 2).max(Self::SMALLEST), seed);
        }
        let entry = Entry::new(prefix, number);
        let at = self.find(entry, seed);
        let old = std::mem::replace(&mut self.entries[at], entry);
        if old.is_free() {
            self.len += 1;
            return None;
        }
        Some(old.number())
    }

    fn remove(&mut self, prefix: Prefix<A>, seed: u64) -> Option<u32> {
        if self.entries.is_empty() {
            return None;
        }
        let mut gap = self.find(Entry::new(prefix, 0), seed);
        let old = self.entries[gap];
        if old.is_free() {
            return None;
        }
        // Close the gap: whatever stands behind it, up to a free place, moves there unless its own place
        // lies behind the gap.
        let mask = self.entries.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let entry = self.entries[at];
            if entry.is_free() {
                break;
            }
            let home = self.home(entry, seed);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(gap) & mask {
                self.entries[gap] = entry;
                gap = at;
            }
        }
        self.entries[gap] = Entry::FREE;
        self.len -= 1;
        if self.len * 8 < self.entries.len() && self.entries.len() > Self::SMALLEST {
            self.resize(self.entries.len() / 2, seed);
        }
        Some(old.number())
    }

    fn has(&self, prefix: Prefix<A>, seed: u64) -> bool {
        !self.entries.is_empty() && !self.entries[self.find(Entry::new(prefix, 0), seed)].is_free()
    }

    /// The prefixes whose number `is_wanted`, sorted: seeds differ, what is said does not.
    fn of(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<(Prefix<A>, u32)> {
        let wanted =
            self.entries.iter().filter(|entry| !entry.is_free() && is_wanted(entry.number()));
        let mut found: Vec<_> = wanted.map(|entry| (entry.prefix(), entry.number())).collect();
        found.sort_unstable();
        found
    }

    fn home(&self, entry: Entry<A>, seed: u64) -> usize {
        entry.hash(seed) as usize & (self.entries.len() - 1)
    }

    /// Where the entry's prefix stands, or the free place where it would. The table is not full.
    fn find(&self, entry: Entry<A>, seed: u64) -> usize {
        let prefix = entry.prefix();
        let mut at = self.home(entry, seed);
        while !self.entries[at].is_free() && !self.entries[at].is(prefix) {
            at = (at + 1) & (self.entries.len() - 1);
        }
        at
    }

    /// Moves everything to a table of so many places, a power of two.
    fn resize(&mut self, places: usize, seed: u64) {
        let old = std::mem::replace(&mut self.entries, vec![Entry::FREE; places]);
        for entry in old.into_iter().filter(|entry| !entry.is_free()) {
            let at = self.find(entry, seed);
            self.entries[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_map_does(
            steps in prop::collection::vec((0..3u32, 0..40u32, 0..=32u8, 0..9u32), 0..400)
        ) {
            let (mut users, mut map) = (Users::default(), BTreeMap::new());
            for (step, addr, len, number) in steps {
                let v4 = Prefix::masked(addr << 26, len).unwrap();
                let v6 = Prefix::masked(u128::from(addr) << 122, len * 4).unwrap();
                let prefix = if step == 2 { AnyPrefix::V6(v6) } else { AnyPrefix::V4(v4) };
                let key = Key { vrf: addr % 2, path_id: 0, prefix };
                prop_assert_eq!(users.has(key), map.contains_key(&key));
                match step {
                    0 if number < 5 => prop_assert_eq!(users.remove(key), map.remove(&key)),
                    _ => prop_assert_eq!(users.set(key, number), map.insert(key, number)),
                }
            }
            let all: Vec<_> = map.clone().into_iter().collect();
            let found = |wanted: &dyn Fn(u32) -> bool| {
                let mut found = Vec::new();
                users.of(wanted, |key, number| found.push((key, number)));
                found
            };
            prop_assert_eq!(found(&|_| true), all);
            let some: Vec<_> = map.into_iter().filter(|&(_, number)| number == 3).collect();
            prop_assert_eq!(found(&|number| number == 3), some);
        }
    }

    #[test]
    fn a_table_grows_and_shrinks() {
        let mut table = Table::<u32>::default();
        for i in 0..1000 {
            assert_eq!(table.set(Prefix::host(i << 8), i, 7), None);
        }
        assert_eq!((table.len, table.entries.len()), (1000, 2048));
        for i in 0..1000 {
            assert_eq!(table.remove(Prefix::host(i << 8), 7), Some(i));
        }
        assert_eq!((table.len, table.entries.len()), (0, Table::<u32>::SMALLEST));
    }
}
