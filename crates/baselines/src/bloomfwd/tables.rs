//! The tables as they lie in memory: all levels' bits in one, all levels' buckets in another.

use std::marker::PhantomData;
use std::ops::Range;

use fibula_core::TableRef;
use fibula_filter::{Bits, Counters, Hash, Parameters};
use fibula_simd::Table;

use super::bucket::{Address, Code, Keyed, Line, Slot, entries, find, set, slots};
use super::{FILTERS, Hashes, SHAPE};

/// A filter and the hash table behind it, of prefixes of one length: where they lie.
#[derive(Clone, Debug)]
pub(super) struct Level {
    /// The length. Of the gate it is that of its keys.
    pub len: u8,
    pub shape: Parameters,
    /// Its words of `filters`.
    pub words: Range<usize>,
    /// Its buckets; none for the gate.
    pub buckets: Range<usize>,
    /// The keys in them.
    pub keys: usize,
}

/// The tables with codes of one width.
#[derive(Clone)]
pub(super) struct Tables<A, C: Code> {
    pub hashes: Hashes,
    /// The first bits that index `direct`.
    pub direct_bits: u8,
    /// The hops of the shortest prefixes.
    pub direct: Table<C>,
    /// Longest first.
    pub levels: Vec<Level>,
    /// Those of prefixes longer than an address's key, longest first.
    pub long: Vec<Level>,
    /// The filter of the keys that such prefixes begin with.
    pub gate: Option<Level>,
    pub filters: Table<u64>,
    pub buckets: Table<Line>,
    /// The description of the levels in a file.
    pub shape: Table<u32>,
    /// The counters of `filters`, from the first patch on.
    pub counters: Option<Counters>,
    pub family: PhantomData<A>,
}

impl Level {
    pub(super) fn bits<'a>(&self, filters: &'a [u64], hash: Hash) -> Bits<'a> {
        Bits::new(&filters[self.words.clone()], self.shape, hash)
            .expect("levels have as many words as their shapes")
    }

    /// The most keys that its buckets should have.
    pub(super) fn room<K: Slot, C: Code>(&self) -> usize {
        self.buckets.len() * slots::<K, C>() * 17 / 20
    }
}

impl<A: Address, C: Code> Tables<A, C> {
    /// The levels in the order of their words and buckets.
    pub(super) fn all_levels(&self) -> impl Iterator<Item = &Level> {
        self.levels.iter().chain(&self.long).chain(&self.gate)
    }

    pub(super) fn table_refs(&self) -> Vec<TableRef<'_>> {
        vec![
            TableRef { name: SHAPE, bytes: self.shape.as_bytes() },
            TableRef { name: C::DIRECT, bytes: self.direct.as_bytes() },
            TableRef { name: FILTERS, bytes: self.filters.as_bytes() },
            TableRef { name: C::BUCKETS, bytes: self.buckets.as_bytes() },
        ]
    }

    /// The level's code of the key, behind its filter.
    #[inline]
    pub(super) fn find<K: Slot>(&self, level: &Level, key: K) -> C {
        let hashed = key.hashed();
        if !level.bits(&self.filters, self.hashes.filter).contains(hashed) {
            return C::NONE;
        }
        find(&self.buckets[level.buckets.clone()], key, self.hashes.table.nth(hashed, 0))
    }

    /// The description of the levels, which `load` reads.
    pub(super) fn describe(&self) -> Table<u32> {
        let hash =
            |hash| Hash::ALL.iter().position(|other| *other == hash).expect("one of all") as u32;
        let mut shape = vec![
            self.direct_bits.into(),
            hash(self.hashes.filter),
            hash(self.hashes.table),
            self.levels.len() as u32,
            self.long.len() as u32,
        ];
        for level in self.all_levels() {
            let buckets = level.buckets.len() as u32;
            shape.extend([level.len.into(), level.shape.bits(), level.shape.hashes(), buckets]);
        }
        Table::from_vec(shape)
    }

    /// Counts the keys anew: the counters are those of the keys in the tables, so nobody stores them.
    pub(super) fn count(&self) -> Counters {
        let mut counters = Counters::new(self.filters.len() * 64);
        for level in &self.levels {
            for (key, _) in self.keys::<<A as Keyed>::Key>(level) {
                raise(&mut counters, level, self.hashes.filter, key);
            }
        }
        for level in &self.long {
            for (key, _) in self.keys::<u128>(level) {
                raise(&mut counters, level, self.hashes.filter, key.hashed());
                if let Some(gate) = &self.gate {
                    raise(&mut counters, gate, self.hashes.filter, (key >> 64) as u64);
                }
            }
        }
        counters
    }

    /// The keys of a level with their codes.
    fn keys<K: Slot>(&self, level: &Level) -> impl Iterator<Item = (K, C)> {
        self.buckets[level.buckets.clone()].iter().flat_map(entries)
    }
}

fn raise<K: fibula_filter::Key>(counters: &mut Counters, level: &Level, hash: Hash, key: K) {
    for at in level.shape.positions(hash, key) {
        counters.raise(level.words.start * 64 + at as usize);
    }
}

/// The tables while they change. Keeps filters, counters, buckets and numbers of keys consistent.
pub(super) struct Writer<'a> {
    pub hashes: Hashes,
    pub filters: &'a mut [u64],
    pub buckets: &'a mut [Line],
    /// None during a build, which removes nothing.
    pub counters: Option<&'a mut Counters>,
}

impl Writer<'_> {
    /// Sets the code of a key of the level; [`Code::NONE`] removes the key. Returns how the number of keys changed, or
    /// `None` without a change if there is no room for one more.
    pub(super) fn set<K: Slot, C: Code>(
        &mut self,
        level: &mut Level,
        key: K,
        code: C,
    ) -> Option<Change> {
        let hashed = key.hashed();
        let hash = self.hashes.table.nth(hashed, 0);
        let buckets = &mut self.buckets[level.buckets.clone()];
        if code != C::NONE
            && level.keys >= level.room::<K, C>()
            && find::<K, C>(buckets, key, hash) == C::NONE
        {
            return None;
        }
        let before = set(buckets, key, hash, code);
        let change = match (before != C::NONE, code != C::NONE) {
            (false, true) => Change::Came,
            (true, false) => Change::Went,
            _ => Change::Stayed,
        };
        match change {
            Change::Came => level.keys += 1,
            Change::Went => level.keys -= 1,
            Change::Stayed => {}
        }
        self.pass(level, hashed, change);
        Some(change)
    }

    /// Adds a key to the filter, or removes it.
    pub(super) fn pass<K: fibula_filter::Key>(&mut self, level: &Level, key: K, change: Change) {
        for at in level.shape.positions(self.hashes.filter, key) {
            let at = level.words.start * 64 + at as usize;
            let (word, bit) = (&mut self.filters[at / 64], 1 << (at % 64));
            let counters = self.counters.as_deref_mut();
            let turns = match change {
                // While tables are built there are no counters, and bits are only set.
                Change::Came => counters.is_none_or(|counters| counters.raise(at)),
                Change::Went => counters.is_some_and(|counters| counters.lower(at)),
                Change::Stayed => false,
            };
            if turns {
                *word = if change == Change::Came { *word | bit } else { *word & !bit };
            }
        }
    }
}

/// The change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Came,
    Went,
    /// With another code or without.
    Stayed,
}
