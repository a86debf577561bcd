use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd, prefetch_read};

use super::Tables;
use super::line::{Code, TOP_BITS};
use super::word::{BASE, LOW, SHIFT_AT, WIDTH_AT, WIDTH_STEP};
use crate::common::{Long, hop};

// The shape of batches, and the reasons (the numbers are in docs/adr/0019-matchline.md):
//
// - A block executes each stage for all of its rows of 16 lookups before the next one: root, tables, lines. There are no lists, and
//   lookups do not leave: one that is answered keeps its word, and searches a line that is always in the first-level cache.
// - Whether another table follows is tested once for all rows of a step. Tested for each row, the branch is mispredicted so
//   often that the rows of a block no longer overlap.
// - All lines of a block are prefetched before the first one is read.

/// Lookups of a row: 32-bit lanes of a vector.
const ROW: usize = 16;
/// Rows of a block.
const ROWS: usize = 8;
/// How many bytes ahead addresses are prefetched.
const AHEAD: usize = 4096;

pub(super) struct Batch<'a, C: Code> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Code> Kernel for Batch<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let search = BlockSearch { simd, tables: self.tables };
        let (rows, rest) = self.addrs.as_chunks::<ROW>();
        let (hop_rows, rest_hops) = self.hops.as_chunks_mut::<ROW>();
        let (blocks, rows) = rows.as_chunks::<ROWS>();
        let (hop_blocks, hop_rows) = hop_rows.as_chunks_mut::<ROWS>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            search.block(addrs, hops);
        }
        let (halves, rows) = rows.as_chunks::<{ ROWS / 2 }>();
        let (hop_halves, hop_rows) = hop_rows.as_chunks_mut::<{ ROWS / 2 }>();
        for (addrs, hops) in halves.iter().zip(hop_halves) {
            search.block(addrs, hops);
        }
        let (pairs, row) = rows.as_chunks::<2>();
        let (hop_pairs, hop_row) = hop_rows.as_chunks_mut::<2>();
        for (addrs, hops) in pairs.iter().zip(hop_pairs) {
            search.block(addrs, hops);
        }
        for (addrs, hops) in row.iter().zip(hop_row) {
            search.block(std::array::from_ref(addrs), std::array::from_mut(hops));
        }
        if !rest.is_empty() {
            let (mut addrs, mut hops) = ([0; ROW], [Hop::NONE; ROW]);
            addrs[..rest.len()].copy_from_slice(rest);
            search.block(&[addrs], std::array::from_mut(&mut hops));
            rest_hops.copy_from_slice(&hops[..rest.len()]);
        }
    }
}

struct BlockSearch<'a, C: Code, S> {
    simd: S,
    tables: &'a Tables<C>,
}

impl<C: Code, S: Simd> BlockSearch<'_, C, S> {
    #[inline(always)]
    fn block<const N: usize>(&self, addrs: &[[u128; ROW]; N], hops: &mut [[Hop; ROW]; N]) {
        let Self { simd, tables } = *self;
        let splat = |word| simd.splat_row(word);
        let mut keys = [[0; ROW]; N];
        let (mut highs, mut lows, mut words) = ([splat(0); N], [splat(0); N], [splat(0); N]);
        let mut open = 0;
        for row in 0..N {
            for line in 0..ROW / 4 {
                prefetch_read(&addrs[row], 4 * line + AHEAD / size_of::<u128>());
            }
            for (key, addr) in keys[row].iter_mut().zip(&addrs[row]) {
                *key = ((addr >> 64) as u64) << TOP_BITS;
            }
            (highs[row], lows[row]) = splat(0).high_words(&addrs[row]);
            words[row] = self.root(highs[row]);
            open |= words[row].top_bits();
        }
        while open != 0 {
            open = 0;
            for row in 0..N {
                words[row] = self.step(words[row], highs[row], lows[row]);
                open |= words[row].top_bits();
            }
        }
        let mut numbers = [[0; ROW]; N];
        for row in 0..N {
            let in_line = words[row].add(words[row]);
            numbers[row] = words[row].and(splat(LOW)).if_top(in_line, splat(0)).words();
            for &number in &numbers[row] {
                prefetch_read(&tables.lines, number as usize);
            }
        }
        for row in 0..N {
            let mut codes = [0; ROW];
            for ((code, &number), &key) in codes.iter_mut().zip(&numbers[row]).zip(&keys[row]) {
                // SAFETY: words name lines that are there, and there is always line 0. A line has a code for each of
                // its places and for the one after the last.
                *code = unsafe {
                    let line = tables.lines.get_unchecked(number as usize);
                    (*C::codes(line).get_unchecked(C::find(simd, line, key))).into()
                };
            }
            let in_line = words[row].add(words[row]);
            let codes = simd.row(&codes).if_top(in_line, words[row]);
            for (to, bits) in hops[row].iter_mut().zip(codes.add(splat(u32::MAX)).words()) {
                *to = Hop::from_bits(bits);
            }
        }
        if let Some(long) = &tables.long {
            resolve(long, tables.shape.blocks_from, addrs.as_flattened(), hops.as_flattened_mut());
        }
    }

    /// The root's words for addresses that begin with these 32 bits.
    #[inline(always)]
    fn root(&self, highs: S::Row) -> S::Row {
        let shape = &self.tables.shape;
        let splat = |word| self.simd.splat_row(word);
        let entries = highs.sub(splat(shape.low)).shr(splat(shape.shift));
        let last = splat(shape.entries);
        // SAFETY: there is a word for each entry, and one for addresses outside of them.
        unsafe { entries.if_below(entries, last, last).gather(self.tables.words.as_ptr()) }
    }

    /// Replaces each word that names a table by the word read from it.
    #[inline(always)]
    fn step(&self, words: S::Row, highs: S::Row, lows: S::Row) -> S::Row {
        let splat = |word| self.simd.splat_row(word);
        let shifts = words.shr(splat(SHIFT_AT)).and(splat(63));
        // The width less the step, which is the least width.
        let widths = words.shr(splat(WIDTH_AT - 1)).and(splat(7 << 1));
        let mask = splat(1 << WIDTH_STEP).shl(widths).add(splat(u32::MAX));
        let indices = lows.shr_long(highs, shifts).and(mask);
        let places = words.and(splat(BASE)).shl(splat(WIDTH_STEP)).add(indices);
        // SAFETY: a table's words are there, all below 2^24.
        unsafe { places.gather_if_top(words, self.tables.words.as_ptr(), words) }
    }
}

/// Replaces the answers that name a block of [`Long`], stored as hops, with those of the low bits.
#[inline(always)]
fn resolve(long: &Long, blocks_from: u32, addrs: &[u128], hops: &mut [Hop]) {
    let blocks = long.blocks() as u32;
    let block = |hop: Hop| hop.to_bits().wrapping_add(1).wrapping_sub(blocks_from);
    // Looked at together, so that there is one branch, seldom taken.
    if hops.iter().fold(false, |any, &hop| any | (block(hop) < blocks)) {
        for (addr, to) in addrs.iter().zip(hops) {
            let block = block(*to);
            if block < blocks {
                *to = hop(long.find(block as usize, *addr as u64));
            }
        }
    }
}
