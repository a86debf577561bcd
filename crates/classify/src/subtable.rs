//! The megaflows of one mask.

use fibula_simd::{Lanes, One, Simd, prefetch_read};

use crate::batch::bits;
use crate::hash::{self, Hashed, Keys};
use crate::{Flow, Mask, WORDS};

/// Number of candidates of a bucket, which one instruction compares.
const CANDIDATES: usize = 16;
/// The signature of a place that was never taken since the last build.
const EMPTY: u32 = 0;
/// That of a place whose megaflow was removed, in a bucket that was full: searches go on behind it.
const REMOVED: u32 = 1;
/// A bucket may have so many on average: of sixteen places few buckets overflow.
const FILL: usize = 10;
/// Words of the filter for each bucket.
const FILTER_WORDS: usize = 4;

/// A bucket's signatures: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; CANDIDATES]);

/// The words of a mask that are not 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    len: usize,
    at: [u8; WORDS],
    masks: [u64; WORDS],
    keys: Keys,
}

impl Words {
    fn new(mask: &Mask, keys: &Keys) -> Self {
        let mut words = Self { len: 0, at: [0; WORDS], masks: [0; WORDS], keys: [0; WORDS] };
        for (at, word) in mask.words().iter().enumerate().filter(|(_, word)| **word != 0) {
            let n = words.len;
            (words.at[n], words.masks[n], words.keys[n]) = (at as u8, *word, keys[at]);
            words.len += 1;
        }
        words
    }

    /// `(word of the flow, mask)`, in ascending order.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> + Clone + '_ {
        self.at[..self.len].iter().zip(&self.masks).map(|(at, mask)| (usize::from(*at), *mask))
    }

    /// `(word of the flow, mask, key)`.
    #[inline(always)]
    pub(crate) fn with_keys(&self) -> impl Iterator<Item = (usize, u64, u64)> + '_ {
        self.iter().zip(&self.keys).map(|((at, mask), key)| (at, mask, *key))
    }
}

/// Megaflows of one mask, in a hash table of buckets with sixteen places.
///
/// ```text
///   hash ─► bucket   │ signature 0 │ 1 │ ... │ 15 │     one line, compared at once
///                          │ equal
///   records                ▼
///                    │ masked words ... │ number │     compared with the packet's words
/// ```
///
/// A bucket that is full overflows into the next, so that a search ends at the first one with an empty place.
#[derive(Clone, Debug)]
pub(crate) struct Subtable {
    /// Its number among all that the cache ever had.
    pub(crate) id: u32,
    pub(crate) mask: Mask,
    pub(crate) words: Words,
    /// Megaflows.
    pub(crate) len: usize,
    /// Places whose megaflow was removed and that are not [`EMPTY`].
    removed: usize,
    lines: Vec<Line>,
    /// For each place its masked words, then its number.
    records: Vec<u64>,
    /// Where the filter lies among the cache's.
    pub(crate) filter: Span,
    /// Number of removed megaflows that still pass the filter.
    pub(crate) stale: usize,
}

/// A part of an array.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

impl Subtable {
    pub(crate) fn new(id: u32, mask: Mask, keys: &Keys) -> Self {
        let words = Words::new(&mask, keys);
        let mut table = Self {
            id,
            mask,
            words,
            len: 0,
            removed: 0,
            lines: Vec::new(),
            records: Vec::new(),
            filter: Span::default(),
            stale: 0,
        };
        table.clear(1);
        table
    }

    fn clear(&mut self, buckets: usize) {
        self.lines = vec![Line([EMPTY; CANDIDATES]); buckets];
        self.records = vec![0; buckets * CANDIDATES * self.stride()];
        self.removed = 0;
    }

    #[inline(always)]
    fn stride(&self) -> usize {
        self.words.len + 1
    }

    /// The words of the filter that fits.
    pub(crate) fn filter_words(&self) -> usize {
        self.lines.len() * FILTER_WORDS
    }

    /// The hash of a flow under the mask.
    pub(crate) fn hash(&self, keys: &Keys, flow: &Flow) -> Hashed {
        let words = self.words.iter().map(|(at, mask)| (at, flow.words()[at] & mask));
        hash::of_words(keys, words)
    }

    #[inline(always)]
    fn bucket(&self, index: u32) -> usize {
        ((u64::from(index) * self.lines.len() as u64) >> 32) as usize
    }

    /// Prefetches the line with which a hash's search begins.
    #[inline(always)]
    pub(crate) fn prefetch(&self, index: u32) {
        prefetch_read(&self.lines, self.bucket(index));
    }

    /// The place of the first record with the signature for whose masked words the caller's comparison succeeds.
    #[inline(always)]
    fn place<S: Simd>(
        &self,
        simd: S,
        hashed: Hashed,
        mut same: impl FnMut(&[u64]) -> bool,
    ) -> Option<(usize, u64)> {
        let signature = hashed.signature.max(REMOVED + 1);
        let mut bucket = self.bucket(hashed.index);
        loop {
            let line = &self.lines[bucket].0;
            for slot in bits(simd.equal32(line, signature)) {
                let at = bucket * CANDIDATES + slot;
                let (number, words) = self.record(at).split_last()?;
                if same(words) {
                    return Some((at, *number));
                }
            }
            if simd.equal32(line, EMPTY) != 0 {
                return None;
            }
            bucket = if bucket + 1 < self.lines.len() { bucket + 1 } else { 0 };
        }
    }

    #[inline(always)]
    fn record(&self, at: usize) -> &[u64] {
        &self.records[at * self.stride()..][..self.stride()]
    }

    /// The number of the megaflow with this hash whose words the caller calls the packet's.
    #[inline(always)]
    pub(crate) fn find<S: Simd>(
        &self,
        simd: S,
        hashed: Hashed,
        same: impl FnMut(&[u64]) -> bool,
    ) -> Option<u32> {
        self.place(simd, hashed, same).map(|(_, number)| number as u32)
    }

    /// Whether a place has this signature: the first half of [`Subtable::find`].
    #[inline(always)]
    pub(crate) fn candidates<S: Simd>(&self, simd: S, hashed: Hashed) -> u32 {
        let line = &self.lines[self.bucket(hashed.index)].0;
        simd.equal32(line, hashed.signature.max(REMOVED + 1))
    }

    /// Prefetches the record that a hash's search will compare, if its bucket has one.
    #[inline(always)]
    pub(crate) fn prefetch_record<S: Simd>(&self, simd: S, hashed: Hashed) {
        let slot = self.candidates(simd, hashed).trailing_zeros() as usize % CANDIDATES;
        let at = self.bucket(hashed.index) * CANDIDATES + slot;
        prefetch_read(&self.records, at * self.stride());
    }

    /// The megaflow's masked words.
    fn masked<'a>(&'a self, flow: &'a Flow) -> impl Iterator<Item = u64> + 'a {
        self.words.iter().map(|(at, mask)| flow.words()[at] & mask)
    }

    /// The place of a megaflow, and its number.
    fn place_of<S: Simd>(&self, simd: S, hashed: Hashed, flow: &Flow) -> Option<(usize, u64)> {
        self.place(simd, hashed, |words| words.iter().copied().eq(self.masked(flow)))
    }

    /// The number of a megaflow.
    pub(crate) fn get<S: Simd>(&self, simd: S, hashed: Hashed, flow: &Flow) -> Option<u32> {
        self.place_of(simd, hashed, flow).map(|(_, number)| number as u32)
    }

    /// Puts a megaflow in, or gives one that is there another number: the one before. The table must not be
    /// [full](Subtable::is_full).
    pub(crate) fn insert<S: Simd>(
        &mut self,
        simd: S,
        hashed: Hashed,
        flow: &Flow,
        number: u32,
    ) -> Option<u32> {
        let stride = self.stride();
        if let Some((at, old)) = self.place_of(simd, hashed, flow) {
            self.records[(at + 1) * stride - 1] = number.into();
            return Some(old as u32);
        }
        let mut bucket = self.bucket(hashed.index);
        let slot = loop {
            let line = &self.lines[bucket].0;
            if let Some(slot) = line.iter().position(|signature| *signature <= REMOVED) {
                break slot;
            }
            bucket = (bucket + 1) % self.lines.len();
        };
        let to = &mut self.lines[bucket].0[slot];
        self.removed -= usize::from(*to == REMOVED);
        *to = hashed.signature.max(REMOVED + 1);
        let words: Vec<u64> = self.masked(flow).chain([number.into()]).collect();
        self.records[(bucket * CANDIDATES + slot) * stride..][..stride].copy_from_slice(&words);
        self.len += 1;
        None
    }

    /// Takes a megaflow out: its number.
    pub(crate) fn remove<S: Simd>(&mut self, simd: S, hashed: Hashed, flow: &Flow) -> Option<u32> {
        let (at, number) = self.place_of(simd, hashed, flow)?;
        let line = &mut self.lines[at / CANDIDATES].0;
        // Searches end at an empty place: there must be one already, or they might end too early.
        let ends_here = line.contains(&EMPTY);
        line[at % CANDIDATES] = if ends_here { EMPTY } else { REMOVED };
        self.removed += usize::from(!ends_here);
        self.len -= 1;
        self.stale += 1;
        Some(number as u32)
    }

    /// Whether it must [grow](Subtable::grow) before a megaflow more.
    pub(crate) fn is_full(&self) -> bool {
        self.len + self.removed >= self.lines.len() * FILL
    }

    /// Builds the table anew, with room for as many megaflows again.
    pub(crate) fn grow<S: Simd>(&mut self, simd: S, keys: &Keys) {
        let all: Vec<(Flow, u32)> = self.iter().collect();
        self.clear((2 * (all.len() + 1)).div_ceil(FILL));
        self.len = 0;
        for (flow, number) in all {
            let hashed = self.hash(keys, &flow);
            self.insert(simd, hashed, &flow, number);
        }
    }

    /// The megaflows and their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Flow, u32)> + '_ {
        let slots = self.lines.iter().flat_map(|line| line.0).enumerate();
        slots.filter(|(_, signature)| *signature > REMOVED).filter_map(|(at, _)| {
            let (number, values) = self.record(at).split_last()?;
            let mut words = [0; WORDS];
            self.words.iter().zip(values).for_each(|((at, _), value)| words[at] = *value);
            Some((Flow::from_words(words), *number as u32))
        })
    }

    /// Bytes of lines and records.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.records)
    }
}

/// The bits of a filter's word that a hash has.
#[inline(always)]
pub(crate) fn filter_bits<V: Lanes<Word = u64>>(hash: V) -> V {
    hash.srl64(32).bit64().or(hash.srl64(38).bit64()).or(hash.srl64(44).bit64())
}

/// Puts hashes into a filter.
pub(crate) fn fill(filter: &mut [u64], hashes: impl Iterator<Item = u64>) {
    for hash in hashes {
        let at = ((hash & 0xffff_ffff) * filter.len() as u64) >> 32;
        if let Some(word) = filter.get_mut(at as usize) {
            *word |= filter_bits(One::new(hash)).to_u64();
        }
    }
}
