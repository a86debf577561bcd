//! Many lookups at once.

use core::hint::select_unpredictable;
use core::marker::PhantomData;

use fibula_core::Hop;
use fibula_simd::prefetch_read_l2;

use super::{Entry, SailL};
use crate::sail::division::{CHUNK, Chunk};

// Measurements (Zen 4, 900,000 prefixes, keys of random prefixes; DIR-24-8's plain loop has 220 Mlps): the core runs
// ahead of the loads that miss the cache as far as its buffers reach, so the plain loop's rate is that of its
// instructions, 10 an address as in the paper's table 2:
// - safe code, chunks counted down from the largest entry, bounds checked: 19 instructions, 125 Mlps;
// - chunks counted up, the arrays' starts moved so that an entry is the place of its chunk: 160;
// - the parts of an address loaded from memory, as the paper's code does, four an iteration: 185;
// - a conditional move in place of the first branch: 120; four or eight of the first loads ahead: 165.

/// Addresses an iteration of the plain loop.
const WIDTH: usize = 4;

/// The paper's loop: one address after the other.
pub(super) fn plain<E: Entry>(tables: &SailL<E>, addrs: &[u32], hops: &mut [Hop]) {
    let search = LevelSearch::new(tables);
    let (addrs, addrs_rest) = addrs.as_chunks::<WIDTH>();
    let (hops, hops_rest) = hops.as_chunks_mut::<WIDTH>();
    for (addrs, hops) in addrs.iter().zip(hops) {
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = search.lookup(addr);
        }
    }
    for (addr, hop) in addrs_rest.iter().zip(hops_rest) {
        *hop = search.lookup(addr);
    }
}

/// Lookups that go through a level together.
const BLOCK: usize = 256;

/// The levels are processed one after the other for a block of lookups. The first level finds the place of the entry
/// that decides, in its own array or in the next, without a branch, and prefetches it. So more cache misses overlap
/// than in the plain loop, and no branch is mispredicted. Prefetches are into the second-level cache, which has room
/// for more of them (see DIR-24-8).
pub(super) fn staged<E: Entry>(tables: &SailL<E>, addrs: &[u32], hops: &mut [Hop]) {
    let search = LevelSearch::new(tables);
    let mut places = [&search.bcn16[0]; BLOCK];
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        for (place, addr) in places.iter_mut().zip(addrs) {
            *place = search.place(addr);
            prefetch_read_l2(core::slice::from_ref(*place), 0);
        }
        for ((place, addr), hop) in places.iter().zip(addrs).zip(hops) {
            *hop = search.n32.get(**place, byte::<3>(addr)).unwrap_or(**place).hop();
        }
    }
}

struct LevelSearch<'a, E> {
    bcn16: &'a [E; 1 << 16],
    bcn24: Chunks<'a, E>,
    n32: Chunks<'a, E>,
}

impl<'a, E: Entry> LevelSearch<'a, E> {
    fn new(tables: &'a SailL<E>) -> Self {
        let bcn16 = tables.bcn16.first_chunk().expect("an entry for each node of level 16");
        Self { bcn16, bcn24: Chunks::new(&tables.bcn24), n32: Chunks::new(&tables.n32) }
    }

    #[inline(always)]
    fn lookup(&self, addr: &u32) -> Hop {
        let mut entry = self.bcn16[high(addr)];
        if let Some(below) = self.bcn24.get(entry, byte::<2>(addr)) {
            entry = below;
            if let Some(below) = self.n32.get(entry, byte::<3>(addr)) {
                entry = below;
            }
        }
        entry.hop()
    }

    /// Where the entry of level 16 is, or of level 24 if that one is a chunk.
    #[inline(always)]
    fn place(&self, addr: &u32) -> &'a E {
        let entry = &self.bcn16[high(addr)];
        self.bcn24.place_or(entry, byte::<2>(addr))
    }
}

/// An array of chunks as it is read: with its start moved to where the chunk of entry 0 would be.
struct Chunks<'a, E> {
    /// Larger entries are chunks of the array.
    last_code: u32,
    origin: *const E,
    array: PhantomData<&'a [Chunk<E>]>,
}

impl<'a, E: Entry> Chunks<'a, E> {
    fn new(array: &'a [Chunk<E>]) -> Self {
        let last_code = E::MAX - array.len() as u32;
        let before = (last_code as usize).wrapping_add(1).wrapping_mul(CHUNK);
        let origin = array.as_ptr().cast::<E>().wrapping_sub(before);
        Self { last_code, origin, array: PhantomData }
    }

    /// The entry in the chunk that `entry` is; `None` if it is a code.
    #[inline(always)]
    fn get(&self, entry: E, byte: u8) -> Option<E> {
        if entry.into() <= self.last_code {
            return None;
        }
        // SAFETY: the entries above `last_code` are as many as the array has chunks, and `origin` lies
        // before it by those up to `last_code`: so this is place `byte`, of 256, of one of its chunks.
        Some(unsafe { *self.place(entry, byte) })
    }

    /// The place in the chunk that `entry` is, or that of `entry` itself if it is a code.
    #[inline(always)]
    fn place_or(&self, entry: &'a E, byte: u8) -> &'a E {
        let is_chunk = (*entry).into() > self.last_code;
        let place = select_unpredictable(is_chunk, self.place(*entry, byte), entry);
        // SAFETY: a reference, or as in `get`; the array is borrowed as long.
        unsafe { &*place }
    }

    #[inline(always)]
    fn place(&self, entry: E, byte: u8) -> *const E {
        let chunk = (entry.into() as usize).wrapping_mul(CHUNK);
        self.origin.wrapping_add(chunk | usize::from(byte))
    }
}

/// The first two bytes of an address. Loaded from memory, like [`byte`]: a shift of the whole address
/// would be two more instructions.
#[inline(always)]
fn high(addr: &u32) -> usize {
    const AT: usize = if cfg!(target_endian = "little") { 1 } else { 0 };
    bytemuck::cast_ref::<u32, [u16; 2]>(addr)[AT].into()
}

/// Byte `I` of an address, counted from its first.
#[inline(always)]
fn byte<const I: usize>(addr: &u32) -> u8 {
    let at = if cfg!(target_endian = "little") { 3 - I } else { I };
    bytemuck::cast_ref::<u32, [u8; 4]>(addr)[at]
}
