//! Where records are put: none crosses a cache line that need not, and equal ones lie in one place.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A cache line.
pub(super) const LINE: usize = 64;

/// Bytes that grow by lines.
pub(super) struct Space {
    /// The place of the first byte in the table, a line's.
    base: usize,
    bytes: Vec<u8>,
    /// The free bytes at the ends of lines, by how many there are.
    holes: Vec<Vec<usize>>,
    /// The lengths of which there are holes, a bit for each.
    lengths: u64,
    /// Hashes of records, and where those lie.
    seen: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    /// Bytes of the table that records need, be they more than places can number.
    needed: u64,
}

impl Space {
    pub(super) fn new(base: usize) -> Self {
        Self {
            base,
            bytes: Vec::new(),
            holes: vec![Vec::new(); LINE],
            lengths: 0,
            seen: HashMap::default(),
            needed: base as u64,
        }
    }

    /// The bytes, whole lines of them, or how many would be needed if places of 32 bits cannot
    /// number so many.
    pub(super) fn finish(self) -> Result<Vec<u8>, u64> {
        if self.needed > u32::MAX.into() { Err(self.needed) } else { Ok(self.bytes) }
    }

    /// The place of a record with these bytes, a multiple of `align`.
    pub(super) fn put(&mut self, record: &[u8], align: usize) -> u32 {
        let hash = hash(record, align);
        if let Some(&place) = self.seen.get(&hash) {
            let at = place as usize - self.base;
            if self.bytes[at..].starts_with(record) {
                return place;
            }
        }
        let at = self.find(record.len() + align - 1).next_multiple_of(align);
        if self.needed > u32::MAX.into() {
            return 0;
        }
        let place = (self.base + at) as u32;
        self.bytes[at..at + record.len()].copy_from_slice(record);
        self.seen.insert(hash, place);
        place
    }

    /// So many free bytes, in one line if it can hold them.
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
        // Where places have run out nothing is put any more, but all that comes still counts.
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

/// For keys that are hashes.
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
