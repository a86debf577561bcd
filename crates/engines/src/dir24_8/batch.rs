use fibula_core::Hop;
use fibula_simd::{Kernel, Level, Row, Simd, prefetch_read, prefetch_read_l2};

use super::entry::Entry;
use super::{BLOCKS, Tables};
use crate::common::hop;

/// The paper's loop. Its loads do not depend on one another, so the core runs ahead of those that
/// miss the cache as far as its buffers reach.
pub(super) fn plain<E: Entry>(tables: &Tables<E>, addrs: &[u32], hops: &mut [Hop]) {
    let search = BlockSearch::new(tables);
    for (&addr, hop) in addrs.iter().zip(hops) {
        *hop = search.lookup(addr);
    }
}

/// Number of addresses whose entries are prefetched together, before the first of them is looked up.
const BLOCK: usize = 256;
/// Up to this number of addresses, the core's own out-of-order loads are early enough.
const FEW: usize = 32;

/// The same, after prefetching all entries of a block.
///
/// Measured on Zen 4, 900,000 prefixes, random addresses, in Mlps: the plain loop 120; entries prefetched into the
/// first-level cache, 16 / 32 / 64 addresses ahead: 133 / 149 / 139; into the second level, 32 / 64 / 128 ahead: 200 /
/// 246 / 259; so, in blocks of 64 / 128 / 256: 158 / 214 / 268.
pub(super) fn prefetching<E: Entry>(
    tables: &Tables<E>,
    level: Level,
    addrs: &[u32],
    hops: &mut [Hop],
) {
    if addrs.len() <= FEW {
        return plain(tables, addrs, hops);
    }
    let gathered = if level.gathers_well() { gathers(tables, level, addrs, hops) } else { 0 };
    let (addrs, hops) = (&addrs[gathered..], &mut hops[gathered..]);
    let search = BlockSearch::new(tables);
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        for &addr in addrs {
            prefetch_read_l2(search.tbl24, (addr >> 8) as usize);
        }
        for (&addr, hop) in addrs.iter().zip(hops) {
            *hop = search.lookup(addr);
        }
    }
}

struct BlockSearch<'a, E> {
    /// As an array, so that 24 bits of an address need no check.
    tbl24: &'a [E; BLOCKS],
    tbl_long: &'a [E],
}

impl<'a, E: Entry> BlockSearch<'a, E> {
    fn new(tables: &'a Tables<E>) -> Self {
        let tbl24 = tables.tbl24.first_chunk().expect("an entry for each block");
        Self { tbl24, tbl_long: &tables.tbl_long }
    }

    #[inline(always)]
    fn lookup(&self, addr: u32) -> Hop {
        let mut entry: u32 = self.tbl24[(addr >> 8) as usize].into();
        if entry & E::CHUNK != 0 {
            let chunk = (entry & E::MAX) as usize;
            // SAFETY: an entry of `tbl24` names a chunk that lies in `tbl_long`: invariant of the
            // module, kept by `paint`, checked by `load`.
            entry =
                unsafe { *self.tbl_long.get_unchecked(chunk << 8 | (addr & 0xff) as usize) }.into();
        }
        hop(entry)
    }
}

/// Lookups of a row.
const ROW: usize = 16;
/// Lookups whose entries are prefetched together before they are gathered (numbers: docs/engines/runmap-notes.md).
const STAGE: usize = 64;

/// Looks up the whole stages of a batch by gathers; returns how many addresses these are: none without AVX-512, and
/// none if there are more entries than the instruction can name.
pub(super) fn gathers<E: Entry>(
    tables: &Tables<E>,
    level: Level,
    addrs: &[u32],
    hops: &mut [Hop],
) -> usize {
    if tables.tbl_long.len() > 1 << 31 {
        return 0;
    }
    let ((addrs, _), (hops, _)) = (addrs.as_chunks(), hops.as_chunks_mut());
    let len = addrs.as_flattened().len();
    let search = BlockSearch::new(tables);
    level.run_avx512(Gathers { search, addrs, hops }).map_or(0, |()| len)
}

/// Stages of lookups on machines that gather words faster than they load them. Entries of 16 bits are taken from the
/// aligned word that has them.
struct Gathers<'a, E> {
    search: BlockSearch<'a, E>,
    addrs: &'a [[u32; STAGE]],
    hops: &'a mut [[Hop; STAGE]],
}

impl<E: Entry> Kernel for Gathers<'_, E> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { search, addrs, hops } = self;
        for (addrs, hops) in addrs.iter().zip(hops) {
            for &addr in addrs {
                prefetch_read(search.tbl24, (addr >> 8) as usize);
            }
            let ((addrs, _), (hops, _)) = (addrs.as_chunks::<ROW>(), hops.as_chunks_mut::<ROW>());
            for (addrs, hops) in addrs.iter().zip(hops) {
                let entries = search.row(simd, addrs).sub(simd.splat_row(1));
                for (hop, word) in hops.iter_mut().zip(entries.words()) {
                    *hop = Hop::from_bits(word);
                }
            }
        }
    }
}

impl<E: Entry> BlockSearch<'_, E> {
    /// The codes of sixteen addresses.
    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, addrs: &[u32; ROW]) -> S::Row {
        let addrs = simd.row(addrs);
        let blocks = addrs.shr(simd.splat_row(8));
        // SAFETY: the table has an entry for each block, and their number is even.
        let read = unsafe { self.words(simd, blocks).gather(self.tbl24.as_ptr().cast()) };
        let entries = self.entries(simd, read, blocks);
        let chunks = entries.shl(simd.splat_row(32 - 8 * size_of::<E>() as u32));
        if chunks.top_bits() == 0 {
            return entries;
        }
        let places = entries.and(simd.splat_row(E::MAX)).shl(simd.splat_row(8));
        let places = places.or(addrs.and(simd.splat_row(0xff)));
        let table = self.tbl_long.as_ptr().cast();
        // SAFETY: an entry of `tbl24` with the top bit names a chunk that lies in `tbl_long`, of 256 entries, and these
        // are at most 2^31. Other lanes are not read.
        let read =
            unsafe { self.words(simd, places).gather_if_top(chunks, table, simd.splat_row(0)) };
        self.entries(simd, read, places).if_top(chunks, entries)
    }

    /// The words that have the entries of these numbers.
    #[inline(always)]
    fn words<S: Simd>(&self, simd: S, numbers: S::Row) -> S::Row {
        let in_word = size_of::<u32>() / size_of::<E>();
        numbers.shr(simd.splat_row(in_word.trailing_zeros()))
    }

    /// The entries of these numbers, from their words.
    #[inline(always)]
    fn entries<S: Simd>(&self, simd: S, words: S::Row, numbers: S::Row) -> S::Row {
        let in_word = (size_of::<u32>() / size_of::<E>()) as u32;
        // An entry that shares its word has 16 bits.
        let at = numbers.and(simd.splat_row(in_word - 1)).shl(simd.splat_row(4));
        words.shr(at).and(simd.splat_row(E::CHUNK | E::MAX))
    }
}
