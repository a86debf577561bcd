//! The layout of records, and how to read one. Building, loading and looking up share this code.

use bytemuck::Pod;

/// Address bits that index the root.
pub(super) const ROOT_BITS: u32 = 18;
/// Words of the root.
pub(super) const ROOT_WORDS: usize = 1 << ROOT_BITS;
/// Bytes of the root; the records follow it.
pub(super) const ROOT_BYTES: usize = 4 * ROOT_WORDS;
/// The number of /24 networks in a block.
pub(super) const BLOCK: u32 = 1 << (24 - ROOT_BITS);
/// Bytes of a record's bitmap.
pub(super) const MAP: usize = 8;
/// Bytes of the bitmap of a network's record: a bit for each of the 256 addresses.
pub(super) const LONG_MAP: usize = 32;
/// Bytes of a network's record before its codes: the bitmap, and for each of its four words the number of
/// bits set in the words after it.
pub(super) const LONG_HEAD: usize = LONG_MAP + 4;

// The bitmap is one word: the machine uses only the low six bits of a shift count.
const _: () = assert!(BLOCK == u64::BITS && MAP == size_of::<u64>());

/// The most escapes that a record can have: one for each network.
pub(super) const ESCAPES: u32 = BLOCK;

/// A width of codes. Code 0 means no hop, *h* + 1 means hop *h*; the largest codes are escapes.
pub(super) trait Leaf: Pod + Into<u32> + Send + Sync {
    /// The name under which the table is stored.
    const TABLE: &'static str;
    /// The code of a record's first escape, whose hops are in the record of a network; the record's other escapes have
    /// the codes that follow.
    const ESCAPE: u32;

    /// Converts a code, which must fit.
    fn new(code: u32) -> Self;
}

impl Leaf for u8 {
    const TABLE: &'static str = "runs8";
    const ESCAPE: u32 = Self::MAX as u32 - (ESCAPES - 1);

    fn new(code: u32) -> Self {
        code as Self
    }
}

impl Leaf for u16 {
    const TABLE: &'static str = "runs16";
    const ESCAPE: u32 = Self::MAX as u32 - (ESCAPES - 1);

    fn new(code: u32) -> Self {
        code as Self
    }
}

impl Leaf for u32 {
    const TABLE: &'static str = "runs32";
    const ESCAPE: u32 = Self::MAX - (ESCAPES - 1);

    fn new(code: u32) -> Self {
        code
    }
}

/// The element at this byte.
#[inline(always)]
pub(super) fn read<T: Pod>(bytes: &[u8], at: usize) -> T {
    bytemuck::pod_read_unaligned(&bytes[at..at + size_of::<T>()])
}

/// The root word of an address.
#[inline(always)]
pub(super) fn root_word(bytes: &[u8], addr: u32) -> usize {
    read::<u32>(bytes, 4 * (addr >> (32 - ROOT_BITS)) as usize) as usize
}

/// Where the values of the record at `at` begin.
#[inline(always)]
pub(super) const fn values(at: usize) -> usize {
    at + MAP
}

/// The value of run `run` of the record at `at`.
#[inline(always)]
pub(super) fn value<V: Leaf>(bytes: &[u8], at: usize, run: usize) -> u32 {
    read::<V>(bytes, values(at) + run * size_of::<V>()).into()
}

/// The run of an address in a record with this bitmap, counted from the record's last run.
#[inline(always)]
pub(super) fn run_of(map: u64, addr: u32) -> usize {
    // Bit 63 is always set, so at least one remains.
    (map >> (addr >> 8 & (BLOCK - 1))).count_ones() as usize - 1
}

/// The number of runs of the record at `at`.
#[inline(always)]
pub(super) fn runs(bytes: &[u8], at: usize) -> usize {
    read::<u64>(bytes, at).count_ones() as usize
}

/// The number of escapes among the values of the record at `at`.
pub(super) fn escapes<V: Leaf>(bytes: &[u8], at: usize) -> usize {
    let values = &bytes[values(at)..][..runs(bytes, at) * size_of::<V>()];
    let codes = values.chunks_exact(size_of::<V>()).map(|value| read::<V>(value, 0).into());
    codes.filter(|&code| code >= V::ESCAPE).count()
}

/// Bytes in front of the bitmap of a record with this number of escapes: a place for each.
pub(super) const fn front(escapes: usize) -> usize {
    4 * escapes
}

/// The place of the network record for the escape `code` of the record at `at`. The first escape's place is stored
/// directly in front of the record.
#[inline(always)]
pub(super) fn long_place<V: Leaf>(bytes: &[u8], at: usize, code: u32) -> usize {
    let number = (code - V::ESCAPE) as usize;
    read::<u32>(bytes, at - 4 * (number + 1)) as usize
}

/// For each word of a network's bitmap, the number of bits set in the words after it: at most 192.
pub(super) fn behind(map: [u64; 4]) -> [u8; 4] {
    let [_, b, c, d] = map.map(|word| word.count_ones() as u8);
    [b + c + d, c + d, d, 0]
}

/// The code of an address in the network's record at `at`.
#[inline(always)]
pub(super) fn long_code(bytes: &[u8], at: usize, addr: u32) -> u32 {
    let (word, bit) = ((addr >> 6 & 3) as usize, addr & 63);
    let map: u64 = read(bytes, at + 8 * word);
    // As in `run_of`: the last bit of the last word is always set.
    let count = (map >> bit).count_ones() + u32::from(bytes[at + LONG_MAP + word]);
    read(bytes, at + LONG_HEAD + 4 * count as usize - 4)
}
