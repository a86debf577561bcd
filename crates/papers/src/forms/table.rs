//! The megaflows of one mask, found by a hash of 32 bits.

use fibula_classify::{Flow, Mask, WORDS};
use fibula_simd::{Scalar, Simd};

use super::miniflow::bits;
use super::{Form, hash};

/// Candidates of a bucket: one instruction compares them.
const CANDIDATES: usize = 16;
/// The signature of an empty place. Hashes with this signature take the next one.
const EMPTY: u32 = 0;
/// The most megaflows a bucket has on average: of sixteen places few buckets overflow.
const FILL: usize = 10;

/// A bucket's signatures: a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u32; CANDIDATES]);

/// The words of a mask that are not 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    len: usize,
    at: [u8; WORDS],
    masks: [u64; WORDS],
}

impl Words {
    fn new(mask: &Mask) -> Self {
        let mut words = Self { len: 0, at: [0; WORDS], masks: [0; WORDS] };
        for (at, word) in mask.words().iter().enumerate().filter(|(_, word)| **word != 0) {
            (words.at[words.len], words.masks[words.len]) = (at as u8, *word);
            words.len += 1;
        }
        words
    }

    /// Their number.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// `(word of the flow, mask)`, in ascending order.
    #[inline(always)]
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, u64)> + Clone + '_ {
        self.at[..self.len].iter().zip(&self.masks).map(|(at, mask)| (usize::from(*at), *mask))
    }
}

/// The product's hash table without filters and removal: buckets with sixteen signatures, and for each place a record
/// of masked words and number. A bucket that is full overflows into the next.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) words: Words,
    pub(super) len: usize,
    form: Form,
    lines: Vec<Line>,
    records: Vec<u64>,
}

impl Table {
    pub(super) fn new(form: Form, mask: Mask) -> Self {
        let words = Words::new(&mask);
        let mut table = Self { words, len: 0, form, lines: Vec::new(), records: Vec::new() };
        table.clear(1);
        table
    }

    fn clear(&mut self, buckets: usize) {
        self.lines = vec![Line([EMPTY; CANDIDATES]); buckets];
        self.records = vec![0; buckets * CANDIDATES * self.stride()];
        self.len = 0;
    }

    #[inline(always)]
    fn stride(&self) -> usize {
        self.words.len + 1
    }

    #[inline(always)]
    fn bucket(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.lines.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn record(&self, at: usize) -> &[u64] {
        &self.records[at * self.stride()..][..self.stride()]
    }

    /// The number of the megaflow with this hash whose words the caller calls the packet's.
    #[inline(always)]
    pub(super) fn find<S: Simd>(
        &self,
        simd: S,
        hash: u32,
        mut same: impl FnMut(&[u64]) -> bool,
    ) -> Option<u32> {
        let signature = hash.max(EMPTY + 1);
        let mut bucket = self.bucket(hash);
        loop {
            let line = &self.lines[bucket].0;
            for slot in bits(simd.equal32(line, signature)) {
                let (number, words) = self.record(bucket * CANDIDATES + slot).split_last()?;
                if same(words) {
                    return Some(*number as u32);
                }
            }
            if simd.equal32(line, EMPTY) != 0 {
                return None;
            }
            bucket = if bucket + 1 < self.lines.len() { bucket + 1 } else { 0 };
        }
    }

    /// The places of the bucket with this signature: the first half of [`Table::find`].
    #[inline(always)]
    pub(super) fn candidates<S: Simd>(&self, simd: S, hash: u32) -> u32 {
        simd.equal32(&self.lines[self.bucket(hash)].0, hash.max(EMPTY + 1))
    }

    /// Adds a megaflow, which the table does not have.
    pub(super) fn insert(&mut self, flow: &Flow, number: u32) {
        if self.len >= self.lines.len() * FILL {
            let all: Vec<(Flow, u32)> = self.iter().collect();
            self.clear((2 * (all.len() + 1)).div_ceil(FILL));
            all.iter().for_each(|(flow, number)| self.place(flow, *number));
        }
        self.place(flow, number);
    }

    fn place(&mut self, flow: &Flow, number: u32) {
        let masked = self.words.iter().map(|(at, mask)| flow.words()[at] & mask);
        let words: Vec<u64> = masked.chain([number.into()]).collect();
        let hash = hash::of_words(Scalar, self.form, words[..self.words.len].iter().copied());
        let mut bucket = self.bucket(hash);
        let slot = loop {
            match self.lines[bucket].0.iter().position(|signature| *signature == EMPTY) {
                Some(slot) => break slot,
                None => bucket = (bucket + 1) % self.lines.len(),
            }
        };
        self.lines[bucket].0[slot] = hash.max(EMPTY + 1);
        let (at, stride) = (bucket * CANDIDATES + slot, self.stride());
        self.records[at * stride..][..stride].copy_from_slice(&words);
        self.len += 1;
    }

    /// The megaflows and their numbers.
    fn iter(&self) -> impl Iterator<Item = (Flow, u32)> + '_ {
        let slots = self.lines.iter().flat_map(|line| line.0).enumerate();
        slots.filter(|(_, signature)| *signature != EMPTY).filter_map(|(at, _)| {
            let (number, values) = self.record(at).split_last()?;
            let mut words = [0; WORDS];
            self.words.iter().zip(values).for_each(|((at, _), value)| words[at] = *value);
            Some((Flow::from_words(words), *number as u32))
        })
    }

    /// Bytes of lines and records.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&*self.lines) + size_of_val(&*self.records)
    }
}
