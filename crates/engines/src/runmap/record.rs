//! How records lie in the table, and how one is read: all that building, loading and looking up have
//! to agree on.

use bytemuck::Pod;

/// Bits of an address that the root is indexed by.
pub(super) const ROOT_BITS: u32 = 18;
/// Words of the root.
pub(super) const ROOT_WORDS: usize = 1 << ROOT_BITS;
/// Bytes of the root; records lie behind it.
pub(super) const ROOT_BYTES: usize = 4 * ROOT_WORDS;
/// Networks /24 of a block.
pub(super) const BLOCK: u32 = 1 << (24 - ROOT_BITS);
/// Bytes of a record's bitmap.
pub(super) const MAP: usize = 8;
/// Bytes of the bitmap of a network's record: a bit for each of the 256 addresses.
pub(super) const LONG_MAP: usize = 32;

// The bitmap is one word, and a shift count is cut to its low six bits by the machine.
const _: () = assert!(BLOCK == u64::BITS && MAP == size_of::<u64>());

/// A width of codes. Code 0 is none, *h* + 1 is hop *h*.
pub(super) trait Leaf: Pod + Into<u32> + Send + Sync {
    /// The name under which the table is stored.
    const TABLE: &'static str;
    /// The code that sends the lookup to the record of a network.
    const ESCAPE: u32;

    /// The code, which fits.
    fn new(code: u32) -> Self;
}

impl Leaf for u8 {
    const TABLE: &'static str = "records8";
    const ESCAPE: u32 = Self::MAX as u32;

    fn new(code: u32) -> Self {
        code as Self
    }
}

impl Leaf for u16 {
    const TABLE: &'static str = "records16";
    const ESCAPE: u32 = Self::MAX as u32;

    fn new(code: u32) -> Self {
        code as Self
    }
}

impl Leaf for u32 {
    const TABLE: &'static str = "records32";
    const ESCAPE: u32 = Self::MAX;

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
    // The last bit is always set, so at least one remains.
    (map >> (addr >> 8 & (BLOCK - 1))).count_ones() as usize - 1
}

/// The number of runs of the record at `at`.
#[inline(always)]
pub(super) fn runs(bytes: &[u8], at: usize) -> usize {
    read::<u64>(bytes, at).count_ones() as usize
}

/// The networks' records that the record at `at` points to, in the order of their places in it.
pub(super) fn long_places<V: Leaf>(bytes: &[u8], at: usize) -> impl Iterator<Item = usize> {
    let values = &bytes[values(at)..][..runs(bytes, at) * size_of::<V>()];
    let escapes = values.chunks_exact(size_of::<V>());
    let escapes = escapes.filter(|value| read::<V>(value, 0).into() == V::ESCAPE).count();
    let places = at + MAP + values.len();
    (0..escapes).map(move |i| read::<u32>(bytes, places + 4 * i) as usize)
}

/// The network's record that run `run` of the record at `at` points to; its value is the escape.
#[inline(always)]
pub(super) fn long_of<V: Leaf>(bytes: &[u8], at: usize, run: usize) -> usize {
    let values = &bytes[values(at)..][..runs(bytes, at) * size_of::<V>()];
    let before = values[..run * size_of::<V>()].chunks_exact(size_of::<V>());
    let before = before.filter(|value| read::<V>(value, 0).into() == V::ESCAPE).count();
    read::<u32>(bytes, at + MAP + values.len() + 4 * before) as usize
}

/// The code of an address in the network's record at `at`.
#[inline(always)]
pub(super) fn long_code(bytes: &[u8], at: usize, addr: u32) -> u32 {
    let map: [u64; 4] = read(bytes, at);
    let (word, bit) = ((addr >> 6 & 3) as usize, addr & 63);
    let above: u32 = map[word + 1..].iter().map(|word| word.count_ones()).sum();
    // As in `run_of`: the last bit of the last word is always set.
    let run = (map[word] >> bit).count_ones() + above - 1;
    read(bytes, at + LONG_MAP + 4 * run as usize)
}
