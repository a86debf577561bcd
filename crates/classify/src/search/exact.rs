//! The exact-match cache: whole flows.

use fibula_simd::{Lanes, One};

use crate::batch::bits;
use crate::cache::Version;
use crate::hash::mix;
use crate::{Batch, Cache, WORDS};

/// Number of flows in an exact-match cache, the same as in Open vSwitch.
pub const EXACT: usize = 8192;

/// A whole flow, in two lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Entry {
    words: [u64; WORDS],
    /// The words that differ from 0.
    bitmap: u16,
    number: u32,
    /// It counts if this is the cache's.
    epoch: u32,
}

/// Flows that were searched for of late, with their megaflows' numbers. Each has two places, by the halves of its
/// hash.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    entries: Vec<Entry>,
    epoch: u32,
    version: Version,
}

impl Exact {
    pub(crate) fn new() -> Self {
        let entries = vec![Entry::default(); EXACT];
        Self { entries, epoch: 1, version: Version::default() }
    }

    /// Forgets all if megaflows went or are other ones.
    pub(crate) fn follow(&mut self, cache: &Cache) {
        let (old, new) = (self.version, cache.version);
        if (old.cache, old.outdated) != (new.cache, new.outdated) {
            self.version = new;
            self.epoch = self.epoch.wrapping_add(1);
            if self.epoch == 0 {
                *self = Self { version: new, ..Self::new() };
            }
        }
    }

    /// The hash of a whole flow. A word that is 0 adds nothing, so that it does not matter which ones of them a
    /// batch has.
    #[inline(always)]
    pub(crate) fn hash(cache: &Cache, batch: &Batch, packet: usize) -> u32 {
        let words = bits(batch.used.into());
        let sum = words.fold(One::new(0), |sum, word| {
            sum.add64(exact_product(One::new(batch.word(packet, word)), One::new(cache.keys[word])))
        });
        mix(sum).low()
    }

    #[inline(always)]
    fn places(hash: u32) -> [usize; 2] {
        [hash as usize % EXACT, (hash >> 16) as usize % EXACT]
    }

    /// The megaflow of a packet.
    #[inline(always)]
    pub(crate) fn find(&self, batch: &Batch, packet: usize, hash: u32) -> Option<u32> {
        Self::places(hash).into_iter().find_map(|at| {
            let entry = self.entries.get(at)?;
            (entry.epoch == self.epoch && same(entry, batch, packet)).then_some(entry.number)
        })
    }

    /// Puts a packet's megaflow in, in place of another one's.
    pub(crate) fn insert(&mut self, batch: &Batch, packet: usize, hash: u32, number: u32) {
        let places = Self::places(hash);
        let free = places.into_iter().find(|at| self.entries[*at].epoch != self.epoch);
        // Of two that are taken one by the hash's top bit: no flow keeps the other out for long.
        let at = free.unwrap_or(places[(hash >> 31) as usize]);
        let words = *batch.flow(packet).words();
        let bitmap = (0..WORDS).filter(|word| words[*word] != 0).fold(0, |bits, w| bits | 1 << w);
        self.entries[at] = Entry { words, bitmap, number, epoch: self.epoch };
    }
}

/// The summand of a word.
#[inline(always)]
pub(crate) fn exact_product<V: Lanes<Word = u64>>(word: V, key: V) -> V {
    word.xor(word.srl64(32)).mul64(key.or(key.longs(1)))
}

/// Whether the entry is the packet's.
#[inline(always)]
fn same(entry: &Entry, batch: &Batch, packet: usize) -> bool {
    let words = bits(batch.used.into()).map(|word| batch.word(packet, word) ^ entry.words[word]);
    entry.bitmap & !batch.used == 0 && words.fold(0, |differ, word| differ | word) == 0
}
