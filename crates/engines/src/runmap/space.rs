//! Allocates space for records: a record that fits into a cache line does not cross one, and equal records share a
//! place.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A cache line.
pub(super) const LINE: usize = 64;

/// Places by numbers that are hashes.
type OffsetsByHash = HashMap<u64, u32, BuildHasherDefault<Hashed>>;

/// The records' bytes, which grow by whole lines.
pub(super) struct Space {
    /// The place of the first byte in the table, the start of a line.
    base: usize,
    bytes: Vec<u8>,
    /// The holes at the ends of lines, by length.
    holes: Vec<Vec<usize>>,
    /// A bit for each length of which there are holes.
    lengths: u64,
    /// The places of records by their hashes.
    seen: OffsetsByHash,
    /// Bytes that the table needs, even if places cannot number as many.
    needed: u64,
}

impl Space {
    pub(super) fn new(base: usize) -> Self {
        Self::with_capacity(base, 0)
    }

    /// With memory for so many bytes.
    pub(super) fn with_capacity(base: usize, bytes: usize) -> Self {
        Self {
            base,
            bytes: Vec::with_capacity(bytes),
            holes: vec![Vec::new(); LINE],
            lengths: 0,
            seen: HashMap::default(),
            needed: base as u64,
        }
    }

    /// Returns the bytes, in whole lines. If 32-bit places cannot number them, returns the number of bytes
    /// needed as the error.
    pub(super) fn finish(self) -> Result<Vec<u8>, u64> {
        if self.needed > u32::MAX.into() { Err(self.needed) } else { Ok(self.bytes) }
    }

    /// Stores a record, unless an equal one is there, and returns its place, a multiple of `align`.
    pub(super) fn put(&mut self, record: &[u8], align: usize) -> u32 {
        let hash = hash(record, align);
        if let Some(&place) = self.seen.get(&hash) {
            let at = place as usize - self.base;
            if self.bytes[at..].starts_with(record) {
                return place;
            }
        }
        let place = self.add(record, align);
        if self.needed <= u32::MAX.into() {
            self.seen.insert(hash, place);
        }
        place
    }

    /// Stores a record, and returns its place, a multiple of `align`.
    pub(super) fn add(&mut self, record: &[u8], align: usize) -> u32 {
        let at = self.find(record.len() + align - 1).next_multiple_of(align);
        if self.needed > u32::MAX.into() {
            return 0;
        }
        self.bytes[at..at + record.len()].copy_from_slice(record);
        (self.base + at) as u32
    }

    /// Allocates `len` bytes, within one line if they fit into one.
    fn find(&mut self, len: usize) -> usize {
        // The shortest hole that is long enough.
        let fitting = if len < LINE { self.lengths >> len << len } else { 0 };
        if fitting != 0 {
            let hole = fitting.trailing_zeros() as usize;
            let at = self.holes[hole].pop().expect("there is a hole of this length");
            if self.holes[hole].is_empty() {
                self.lengths &= !(1 << hole);
            }
            self.leave(at + len, hole - len);
            return at;
        }
        let at = self.bytes.len();
        let end = (at + len).next_multiple_of(LINE);
        // Once places have run out, nothing is stored any more, but the bytes needed are still counted.
        self.needed += (end - at) as u64;
        if self.needed <= u32::MAX.into() {
            self.bytes.resize(end, 0);
            self.leave(at + len, end - at - len);
        }
        at
    }

    fn leave(&mut self, at: usize, len: usize) {
        if len > 0 {
            self.holes[len].push(at);
            self.lengths |= 1 << len;
        }
    }
}

fn hash(record: &[u8], align: usize) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (words, rest) = record.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let hash = words.iter().fold(align as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = mix(mix(hash, u64::from_le_bytes(last)), record.len() as u64);
    hash ^ hash >> 32
}

/// The hasher for keys that are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are integers of 64 bits")
    }
}
