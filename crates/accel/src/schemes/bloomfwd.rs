use fibula_core::Family;
use fibula_filter::{Hash, Key, Parameters};

use super::{Code, Plan, Tables};
use crate::image::{Form, Image, Walk};
use crate::launch::{Source, source};

static SOURCE: Source = source!("bloomfwd");

/// By family and the width of codes.
pub(super) static FORMS: [[Form; 2]; 2] = [
    [
        Form { kernel: "bloomfwd4_16", source: &SOURCE, walk: Walk::V4(code4::<u16>) },
        Form { kernel: "bloomfwd4_32", source: &SOURCE, walk: Walk::V4(code4::<u32>) },
    ],
    [
        Form { kernel: "bloomfwd6_16", source: &SOURCE, walk: Walk::V6(code6::<u16>) },
        Form { kernel: "bloomfwd6_32", source: &SOURCE, walk: Walk::V6(code6::<u32>) },
    ],
];

/// Words of a level's description: its length, the filter's bits and positions of a key, the first word of the filter,
/// the first bucket, and how many buckets there are.
const LEVEL: usize = 8;
/// Bytes of a bucket.
const BUCKET: usize = 64;

/// Parts: the levels, longest first, the levels of routes longer than /64 and the filter before them; the direct lookup
/// array; the filters; the buckets. Numbers: the bits that index the array, the levels, those of long routes, and the
/// hash functions of filters and buckets.
pub(super) fn plan(family: Family, tables: Tables<'_>) -> Option<Plan<'_>> {
    let (width, buckets) = tables.one_of(&["buckets16", "buckets32"])?;
    let (_, direct) = tables.one_of(&["direct16", "direct32"])?;
    let filters = tables.get("filters")?;
    let shape = tables.get("shape")?.as_chunks().0;
    let shape: Vec<u32> = shape.iter().map(|word| u32::from_ne_bytes(*word)).collect();
    let (&[direct_bits, filter_hash, table_hash, levels, long], rows) =
        shape.split_first_chunk()?;
    // CRC32C is an instruction of the CPU, and has no kernel.
    let has_kernel = |hash: u32| hash_of(hash) != Hash::Crc32c;
    if ![filter_hash, table_hash].into_iter().all(has_kernel) {
        return None;
    }
    let (mut described, mut words, mut bucket) = (Vec::new(), 0, 0);
    for row in rows.chunks_exact(4) {
        let (bits, of_level) = (row[1], row[3]);
        described.extend([row[0], bits, row[2], words, bucket, of_level, 0, 0]);
        words += bits.div_ceil(64);
        bucket += of_level;
    }
    let described = bytemuck::cast_slice(&described).to_vec();
    Some(Plan {
        form: &FORMS[usize::from(family == Family::V6)][width],
        parts: vec![described.into(), direct.into(), filters.into(), buckets.into()],
        words: vec![direct_bits, levels, long, filter_hash, table_hash],
    })
}

/// Level by level, from the longest prefixes on; then the direct lookup array.
fn code4<C: Code>(image: &Image, addr: u32) -> u32 {
    let found = (0..image.word(1) as usize).find_map(|level| {
        let key = addr & u32::MAX << (32 - level_word(image, level, 0));
        find::<u32, C>(image, level, key)
    });
    found.unwrap_or_else(|| {
        image.get::<C>(1, (u64::from(addr) >> (32 - image.word(0))) as usize).into()
    })
}

/// The same over the first 64 bits. Before that, if a filter says so, the levels of routes longer than /64.
fn code6<C: Code>(image: &Image, addr: u128) -> u32 {
    let high = (addr >> 64) as u64;
    let (levels, long) = (image.word(1) as usize, image.word(2) as usize);
    if long > 0 && passes(image, levels + long, high) {
        let found = (levels..levels + long).find_map(|level| {
            let key = addr & u128::MAX << (128 - level_word(image, level, 0));
            find::<u128, C>(image, level, key)
        });
        if let Some(code) = found {
            return code;
        }
    }
    let found = (0..levels).find_map(|level| {
        let key = high & u64::MAX << (64 - level_word(image, level, 0));
        find::<u64, C>(image, level, key)
    });
    found.unwrap_or_else(|| image.get::<C>(1, (high >> 32 >> (32 - image.word(0))) as usize).into())
}

/// The hash function of this number.
fn hash_of(number: u32) -> Hash {
    Hash::ALL[number as usize]
}

fn level_word(image: &Image, level: usize, word: usize) -> u32 {
    image.get(0, level * LEVEL + word)
}

/// Whether the filter of a level lets the key pass.
fn passes<H: Key>(image: &Image, level: usize, key: H) -> bool {
    let [bits, hashes, first_word] = [1, 2, 3].map(|word| level_word(image, level, word));
    let parameters = Parameters::new(bits, hashes);
    (0..hashes).all(|index| {
        let at = parameters.position(hash_of(image.word(3)).nth(key, index));
        image.get::<u64>(2, (first_word + at / 64) as usize) >> (at % 64) & 1 == 1
    })
}

/// The code of a key at a level. A bucket has keys, then their codes, then the mark, with all bits set if the search
/// goes on in the next bucket.
fn find<K: BucketKey, C: Code>(image: &Image, level: usize, key: K) -> Option<u32> {
    let hashed = key.hashed();
    if !passes(image, level, hashed) {
        return None;
    }
    let [first_bucket, buckets] = [4, 5].map(|word| level_word(image, level, word));
    let slots = (BUCKET - size_of::<C>()) / (size_of::<K>() + size_of::<C>());
    let hash = hash_of(image.word(4)).nth(hashed, 0);
    let start = ((u64::from(hash) * u64::from(buckets)) >> 32) as u32;
    for at in (start..buckets).chain(0..start) {
        let line = (first_bucket + at) as usize * BUCKET;
        let is_there = |slot: &usize| image.read::<K>(3, line + slot * size_of::<K>()) == key;
        let slot = (0..slots).find(is_there).unwrap_or(slots);
        let code: u32 =
            image.read::<C>(3, line + slots * size_of::<K>() + slot * size_of::<C>()).into();
        if code != u32::MAX >> (32 - 8 * size_of::<C>()) {
            return (code != 0).then_some(code);
        }
    }
    None
}

/// A key of a bucket.
trait BucketKey: bytemuck::Pod + PartialEq {
    type Hashed: Key;
    /// As hash functions take it.
    fn hashed(self) -> Self::Hashed;
}

impl BucketKey for u32 {
    type Hashed = u32;
    fn hashed(self) -> u32 {
        self
    }
}

impl BucketKey for u64 {
    type Hashed = u64;
    fn hashed(self) -> u64 {
        self
    }
}

impl BucketKey for u128 {
    type Hashed = u64;
    fn hashed(self) -> u64 {
        ((self >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self as u64
    }
}
