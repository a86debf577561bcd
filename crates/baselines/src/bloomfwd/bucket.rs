//! The buckets of the hash tables, and the keys in them.

use bytemuck::Pod;
use fibula_core::{Addr, Hop};
use fibula_filter::{Key, WordKey};
use fibula_simd::Simd;

/// A bucket: a cache line of keys, then their codes, then the overflow mark.
pub(super) type Line = [u64; 8];

/// A bucket without keys.
pub(super) const EMPTY: Line = [0; 8];

/// The stored form of a hop: 0 is none, *h* + 1 is hop *h*. All ones is the mark of a bucket that had no room for all
/// of its keys.
pub(super) trait Code: Pod + PartialEq + Into<u32> {
    /// As many of them as a bucket has room for.
    type Line: Pod + AsRef<[Self]> + AsMut<[Self]>;

    /// No hop.
    const NONE: Self;
    /// The overflow mark.
    const ON: Self;
    /// The name of the table of buckets.
    const BUCKETS: &'static str;
    /// The name of the direct lookup array.
    const DIRECT: &'static str;
    /// So many hops have codes.
    const HOPS_MAX: u32;

    /// The code, cut to this width.
    fn of(code: u32) -> Self;
}

macro_rules! code {
    ($t:ty, $lanes:literal, $buckets:literal, $direct:literal) => {
        impl Code for $t {
            type Line = [$t; $lanes];

            const NONE: Self = 0;
            const ON: Self = <$t>::MAX;
            const BUCKETS: &'static str = $buckets;
            const DIRECT: &'static str = $direct;
            const HOPS_MAX: u32 = <$t>::MAX as u32 - 1;

            #[inline(always)]
            fn of(code: u32) -> Self {
                code as Self
            }
        }
    };
}

code!(u16, 32, "buckets16", "direct16");
code!(u32, 16, "buckets32", "direct32");

/// A key of a hash table: the first bits of an address, the others zero.
pub(super) trait Slot: Pod + PartialEq {
    /// The hashed form of a key.
    type Hashed: Key;
    /// As many of them as a bucket has room for.
    type Line: Pod + AsRef<[Self]> + AsMut<[Self]>;

    /// The key as the filters take it: itself, or, of 128 bits, a mixture.
    fn hashed(self) -> Self::Hashed;
    /// Which keys of the line are this one; a bit for each. Those behind the last slot too.
    fn equal<S: Simd>(self, simd: S, line: &Line) -> u32;
    /// The first bits of the address.
    fn of<A: Addr>(addr: A) -> Self;
}

impl Slot for u32 {
    type Hashed = u32;
    type Line = [u32; 16];

    #[inline(always)]
    fn hashed(self) -> u32 {
        self
    }
    #[inline(always)]
    fn equal<S: Simd>(self, simd: S, line: &Line) -> u32 {
        simd.equal32(bytemuck::cast_ref(line), self)
    }
    #[inline(always)]
    fn of<A: Addr>(addr: A) -> Self {
        (addr.to_u128() >> (A::BITS - 32)) as Self
    }
}

impl Slot for u64 {
    type Hashed = u64;
    type Line = [u64; 8];

    #[inline(always)]
    fn hashed(self) -> u64 {
        self
    }
    #[inline(always)]
    fn equal<S: Simd>(self, simd: S, line: &Line) -> u32 {
        simd.equal64(line, self)
    }
    #[inline(always)]
    fn of<A: Addr>(addr: A) -> Self {
        (addr.to_u128() >> (A::BITS - 64)) as Self
    }
}

impl Slot for u128 {
    type Hashed = u64;
    type Line = [u128; 4];

    #[inline]
    fn hashed(self) -> u64 {
        // An odd factor, so that high and low halves do not cancel out where both count up.
        ((self >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self as u64
    }
    #[inline(always)]
    fn equal<S: Simd>(self, _: S, line: &Line) -> u32 {
        let keys: &[Self; 4] = bytemuck::cast_ref(line);
        (0..4).map(|slot| u32::from(keys[slot] == self) << slot).sum()
    }
    #[inline(always)]
    fn of<A: Addr>(addr: A) -> Self {
        addr.to_u128()
    }
}

/// A family of addresses in the tables.
#[expect(private_bounds, reason = "sealed: the tables know these two families")]
pub trait Address: Addr + Keyed {}

impl Address for u32 {}
impl Address for u128 {}

pub(super) trait Keyed {
    /// The keys of the levels up to [`Keyed::TOP`], as filters and tables have them.
    type Key: Slot<Hashed = Self::Key> + WordKey;
    /// The longest prefixes that they hold: 32, or 64 for IPv6.
    const TOP: u8;
}

impl Keyed for u32 {
    type Key = u32;
    const TOP: u8 = 32;
}

impl Keyed for u128 {
    type Key = u64;
    const TOP: u8 = 64;
}

/// The slots of a bucket: keys and codes, and one code more for the mark.
pub(super) const fn slots<K, C>() -> usize {
    (size_of::<Line>() - size_of::<C>()) / (size_of::<K>() + size_of::<C>())
}

/// The index of the first code in a line that is read as codes.
const fn codes<K, C>() -> usize {
    slots::<K, C>() * size_of::<K>() / size_of::<C>()
}

/// Searches a key in a bucket. Returns its code, none, or the mark if the key is not in this bucket but may be in
/// another.
#[inline(always)]
pub(super) fn probe<K: Slot, C: Code, S: Simd>(simd: S, line: &Line, key: K) -> C {
    let slots = slots::<K, C>();
    // One slot more, which is the mark's.
    let equal = key.equal(simd, line) & ((1 << slots) - 1) | 1 << slots;
    let at = codes::<K, C>() + equal.trailing_zeros() as usize;
    let line: &C::Line = bytemuck::cast_ref(line);
    line.as_ref()[at & (size_of::<Line>() / size_of::<C>() - 1)]
}

/// The code of the key in the buckets, from the one that its hash names on. A key that was not there
/// when its bucket was marked is in the next one with room.
pub(super) fn find<K: Slot, C: Code>(buckets: &[Line], key: K, hash: u32) -> C {
    let mut at = home(hash, buckets.len());
    // If all buckets are marked, the search ends after one round.
    for _ in 0..buckets.len() {
        let code = probe::<K, C, _>(fibula_simd::Scalar, &buckets[at], key);
        if code != C::ON {
            return code;
        }
        at = next(at, buckets.len());
    }
    C::NONE
}

/// Sets the code of the key; [`Code::NONE`] removes it. Returns its previous code.
///
/// # Panics
/// If there is no room.
pub(super) fn set<K: Slot, C: Code>(buckets: &mut [Line], key: K, hash: u32, code: C) -> C {
    if let Some((at, slot)) = locate::<K, C>(buckets, key, hash) {
        // A removed key stays in its slot with no code, which ends a search for it.
        let line = bytemuck::cast_mut::<_, C::Line>(&mut buckets[at]).as_mut();
        return std::mem::replace(&mut line[codes::<K, C>() + slot], code);
    }
    if code == C::NONE {
        return code;
    }
    let mut at = home(hash, buckets.len());
    for _ in 0..buckets.len() {
        let (_, in_use) = split::<K, C>(&buckets[at]);
        if let Some(slot) = in_use.iter().position(|other| *other == C::NONE) {
            let line = &mut buckets[at];
            bytemuck::cast_mut::<_, K::Line>(line).as_mut()[slot] = key;
            bytemuck::cast_mut::<_, C::Line>(line).as_mut()[codes::<K, C>() + slot] = code;
            return C::NONE;
        }
        mark::<K, C>(&mut buckets[at]);
        at = next(at, buckets.len());
    }
    panic!("no bucket has room");
}

/// The bucket and the slot of the key, in use or not.
fn locate<K: Slot, C: Code>(buckets: &[Line], key: K, hash: u32) -> Option<(usize, usize)> {
    let mut at = home(hash, buckets.len());
    for _ in 0..buckets.len() {
        let (keys, _) = split::<K, C>(&buckets[at]);
        if let Some(slot) = keys.iter().position(|other| *other == key) {
            return Some((at, slot));
        }
        if mark_of::<K, C>(&buckets[at]) != C::ON {
            return None;
        }
        at = next(at, buckets.len());
    }
    None
}

fn mark<K: Slot, C: Code>(line: &mut Line) {
    let at = codes::<K, C>() + slots::<K, C>();
    bytemuck::cast_mut::<_, C::Line>(line).as_mut()[at] = C::ON;
}

/// The slots: their keys, and their codes.
fn split<K: Slot, C: Code>(line: &Line) -> (&[K], &[C]) {
    let (keys, all) =
        (bytemuck::cast_ref::<_, K::Line>(line), bytemuck::cast_ref::<_, C::Line>(line));
    let (slots, first) = (slots::<K, C>(), codes::<K, C>());
    (&keys.as_ref()[..slots], &all.as_ref()[first..first + slots])
}

/// The keys in the bucket with their codes.
pub(super) fn entries<K: Slot, C: Code>(line: &Line) -> impl Iterator<Item = (K, C)> {
    let (keys, codes) = split::<K, C>(line);
    keys.iter().copied().zip(codes.iter().copied()).filter(|(_, code)| *code != C::NONE)
}

/// Whether the mark is one.
pub(super) fn is_sound<K: Slot, C: Code>(line: &Line) -> bool {
    let mark = mark_of::<K, C>(line);
    mark == C::NONE || mark == C::ON
}

fn mark_of<K: Slot, C: Code>(line: &Line) -> C {
    let all: &C::Line = bytemuck::cast_ref(line);
    all.as_ref()[codes::<K, C>() + slots::<K, C>()]
}

/// The bucket that the hash names: the high bits of the product, as with the filters' positions.
#[inline(always)]
pub(super) fn home(hash: u32, buckets: usize) -> usize {
    ((u64::from(hash) * buckets as u64) >> 32) as usize
}

#[inline(always)]
fn next(at: usize, buckets: usize) -> usize {
    if at + 1 == buckets { 0 } else { at + 1 }
}

/// The code of a hop.
pub(super) fn code_of(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

const _: () = assert!(slots::<u32, u16>() == 10 && slots::<u32, u32>() == 7);
const _: () = assert!(slots::<u64, u16>() == 6 && slots::<u64, u32>() == 5);
const _: () = assert!(slots::<u128, u16>() == 3 && slots::<u128, u32>() == 3);
