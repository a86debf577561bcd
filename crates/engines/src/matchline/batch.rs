use std::array;

use fibula_core::Hop;
use fibula_simd::{Kernel, Level, Row, Simd, load_rows, prefetch_read, prefetch_read_l2};

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
// - Batches of up to 8 are a row of eight words: gathers take less time, and no lines are read for padding. The rest of a batch is two
//   rows that overlap or one that ends with it, because two rows together take less time than one after the other.
// - Machines that load words faster than they gather them (Zen 4) load them in blocks of 64, and prefetch addresses into the
//   second-level cache, for the reasons that wideleaf's `batch.rs` gives. Shorter batches gather there, too: they have no faster form.
//   AVX2's gathers of a row are loads.

/// Lookups of a row: 32-bit lanes of a vector.
const ROW: usize = 16;
/// Half a row: the rows of batches below 16.
const HALF_ROW: usize = ROW / 2;
/// Rows of a block whose words are gathered.
const ROWS: usize = 8;
/// Lookups of a block whose words are loaded.
const LOADED: usize = 64;
/// How many addresses ahead they are prefetched.
const AHEAD: usize = 4096 / size_of::<u128>();

/// Looks up a batch.
pub(super) fn look_up<C: Code>(
    tables: &Tables<C>,
    level: Level,
    gathers: bool,
    addrs: &[u128],
    hops: &mut [Hop],
) {
    if gathers {
        let batch = Batch::<_, true> { tables, addrs, hops: &mut *hops };
        if level.run_avx512(batch).is_some() {
            return;
        }
    }
    level.run(Batch::<_, false> { tables, addrs, hops });
}

struct Batch<'a, C: Code, const GATHERS: bool> {
    tables: &'a Tables<C>,
    addrs: &'a [u128],
    hops: &'a mut [Hop],
}

impl<C: Code, const GATHERS: bool> Kernel for Batch<'_, C, GATHERS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let search = BlockSearch { simd, tables: self.tables };
        let (addrs, hops) = (self.addrs, self.hops);
        if addrs.len() < ROW {
            return search.less_than_a_row(simd.splat_half_row(0), addrs, hops);
        }
        let at = if GATHERS || !S::ROWS_WHOLE { 0 } else { search.loaded(addrs, hops) };
        if at < addrs.len() {
            let at = at.min(addrs.len() - ROW);
            search.rows(simd.splat_row(0), &addrs[at..], &mut hops[at..]);
        }
    }
}

struct BlockSearch<'a, C: Code, S> {
    simd: S,
    tables: &'a Tables<C>,
}

impl<C: Code, S: Simd> BlockSearch<'_, C, S> {
    /// Looks up at least a row.
    #[inline(always)]
    fn rows(&self, row: S::Row, addrs: &[u128], hops: &mut [Hop]) {
        let (rows, rest) = addrs.as_chunks::<ROW>();
        let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
        let (blocks, rows) = rows.as_chunks::<ROWS>();
        let (hop_blocks, hop_rows) = hop_rows.as_chunks_mut::<ROWS>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            self.block::<_, ROW, _, false>(row, addrs, hops);
        }
        let (halves, rows) = rows.as_chunks::<{ ROWS / 2 }>();
        let (hop_halves, hop_rows) = hop_rows.as_chunks_mut::<{ ROWS / 2 }>();
        for (addrs, hops) in halves.iter().zip(hop_halves) {
            self.block::<_, ROW, _, false>(row, addrs, hops);
        }
        let (pairs, single) = rows.as_chunks::<2>();
        let (hop_pairs, _) = hop_rows.as_chunks_mut::<2>();
        for (addrs, hops) in pairs.iter().zip(hop_pairs) {
            self.block::<_, ROW, _, false>(row, addrs, hops);
        }
        let tail = ROW * single.len() + rest.len();
        if tail > ROW {
            let at = addrs.len() - tail;
            self.two_rows(row, &addrs[at..], &mut hops[at..]);
        } else if tail > 0
            && let (Some(last), Some(hops)) = (addrs.last_chunk(), hops.last_chunk_mut())
        {
            // It ends with the batch, so some addresses may be looked up twice.
            self.block::<_, ROW, _, false>(row, array::from_ref(last), array::from_mut(hops));
        }
    }

    /// Looks up all addresses but those after the last whole block, in blocks whose words are loaded one by one. Returns how many. A block
    /// that would be more than half full ends with the batch, so some addresses may be looked up twice.
    #[inline(always)]
    fn loaded(&self, addrs: &[u128], hops: &mut [Hop]) -> usize {
        let row = self.simd.splat_row(0);
        let mut at = 0;
        while addrs.len() >= LOADED && addrs.len() - at > LOADED / 2 {
            at = at.min(addrs.len() - LOADED);
            let (addrs, hops) = (&addrs[at..][..LOADED], &mut hops[at..][..LOADED]);
            let addrs = addrs.as_chunks::<ROW>().0.as_array().expect("whole rows");
            let hops = hops.as_chunks_mut::<ROW>().0.as_mut_array().expect("whole rows");
            self.block::<_, ROW, { LOADED / ROW }, true>(row, addrs, hops);
            at += LOADED;
        }
        at
    }

    /// Looks up fewer addresses than a row has, as half a row, padded if it is less, or as two.
    #[inline(always)]
    fn less_than_a_row(&self, half: S::HalfRow, addrs: &[u128], hops: &mut [Hop]) {
        if addrs.len() > HALF_ROW {
            return self.two_rows(half, addrs, hops);
        }
        if let (Some(addrs), Some(hops)) = (addrs.as_array(), hops.as_mut_array::<HALF_ROW>()) {
            return self.block::<_, HALF_ROW, _, false>(
                half,
                array::from_ref(addrs),
                array::from_mut(hops),
            );
        }
        let (mut padded, mut padded_hops) = ([0; HALF_ROW], [Hop::NONE; HALF_ROW]);
        padded[..addrs.len()].copy_from_slice(addrs);
        self.block::<_, HALF_ROW, _, false>(half, &[padded], array::from_mut(&mut padded_hops));
        hops.copy_from_slice(&padded_hops[..hops.len()]);
    }

    /// Looks up more than `L` addresses, but no more than two rows, as two that overlap.
    #[inline(always)]
    fn two_rows<R: Row<L>, const L: usize>(&self, any: R, addrs: &[u128], hops: &mut [Hop]) {
        let mut rows = [[0; L]; 2];
        let mut found = [[Hop::NONE; L]; 2];
        let last = addrs.len() - L;
        rows[0].copy_from_slice(&addrs[..L]);
        rows[1].copy_from_slice(&addrs[last..]);
        self.block::<R, L, _, false>(any, &rows, &mut found);
        hops[..L].copy_from_slice(&found[0]);
        hops[last..].copy_from_slice(&found[1]);
    }

    /// Looks up `N` rows of `L` addresses; `LOADS`: words are loaded one by one. `any` is any row.
    #[inline(always)]
    fn block<R: Row<L>, const L: usize, const N: usize, const LOADS: bool>(
        &self,
        any: R,
        addrs: &[[u128; L]; N],
        hops: &mut [[Hop; L]; N],
    ) {
        let Self { simd, tables } = *self;
        let splat = |word| any.splat(word);
        let mut keys = [[0; L]; N];
        let (mut highs, mut lows, mut words) = ([any; N], [any; N], [any; N]);
        let mut open = 0;
        for row in 0..N {
            // A short batch ends before the prefetched lines arrive.
            for line in 0..if N > 2 { L / 4 } else { 0 } {
                if LOADS {
                    prefetch_read_l2(&addrs[row], 4 * line + AHEAD);
                } else {
                    prefetch_read(&addrs[row], 4 * line + AHEAD);
                }
            }
            for (key, addr) in keys[row].iter_mut().zip(&addrs[row]) {
                *key = ((addr >> 64) as u64) << TOP_BITS;
            }
            (highs[row], lows[row]) = any.high_words(&addrs[row]);
            words[row] = self.root(highs[row]);
            if !LOADS {
                // SAFETY: there is a word for each entry, and one for addresses outside of them.
                words[row] = unsafe { words[row].gather(tables.words.as_ptr()) };
                open |= words[row].top_bits();
            }
        }
        if LOADS {
            // SAFETY: as above.
            words = unsafe { load_rows(words, tables.words.as_ptr()) };
            for row in words {
                open |= row.top_bits();
            }
        }
        while open != 0 {
            open = 0;
            if !LOADS {
                for row in 0..N {
                    let places = place(words[row], highs[row], lows[row]);
                    // SAFETY: a table's words are there, all below 2^24.
                    words[row] = unsafe {
                        places.gather_if_top(words[row], tables.words.as_ptr(), words[row])
                    };
                    open |= words[row].top_bits();
                }
                continue;
            }
            let mut places = words;
            for row in 0..N {
                places[row] = place(words[row], highs[row], lows[row]).if_top(words[row], splat(0));
            }
            // SAFETY: as above, and there is a first word.
            let read = unsafe { load_rows(places, tables.words.as_ptr()) };
            for row in 0..N {
                words[row] = read[row].if_top(words[row], words[row]);
                open |= words[row].top_bits();
            }
        }
        let mut numbers = [[0; L]; N];
        for row in 0..N {
            let in_line = words[row].add(words[row]);
            numbers[row] = words[row].and(splat(LOW)).if_top(in_line, splat(0)).words();
            for &number in &numbers[row] {
                prefetch_read(&tables.lines, number as usize);
            }
        }
        for row in 0..N {
            let mut codes = [0; L];
            for ((code, &number), &key) in codes.iter_mut().zip(&numbers[row]).zip(&keys[row]) {
                // SAFETY: words name lines that are there, and there is always line 0. A line has a code for each of
                // its places and for the one after the last.
                *code = unsafe {
                    let line = tables.lines.get_unchecked(number as usize);
                    (*C::codes(line).get_unchecked(C::find(simd, line, key))).into()
                };
            }
            let in_line = words[row].add(words[row]);
            let codes = any.load(&codes).if_top(in_line, words[row]);
            for (to, bits) in hops[row].iter_mut().zip(codes.add(splat(u32::MAX)).words()) {
                *to = Hop::from_bits(bits);
            }
        }
        if let Some(long) = &tables.long {
            resolve(long, tables.shape.blocks_from, addrs.as_flattened(), hops.as_flattened_mut());
        }
    }

    /// The places of the root's words for addresses that begin with these 32 bits.
    #[inline(always)]
    fn root<R: Row<L>, const L: usize>(&self, highs: R) -> R {
        let shape = &self.tables.shape;
        let splat = |word| highs.splat(word);
        let entries = highs.sub(splat(shape.low)).shr(splat(shape.shift));
        let last = splat(shape.entries);
        entries.if_below(entries, last, last)
    }
}

/// The place of the next word of each word that names a table.
#[inline(always)]
fn place<R: Row<L>, const L: usize>(words: R, highs: R, lows: R) -> R {
    let splat = |word| words.splat(word);
    let shifts = words.shr(splat(SHIFT_AT)).and(splat(63));
    // The width less the step, which is the least width.
    let widths = words.shr(splat(WIDTH_AT - 1)).and(splat(7 << 1));
    let mask = splat(1 << WIDTH_STEP).shl(widths).add(splat(u32::MAX));
    let indices = lows.shr_long(highs, shifts).and(mask);
    words.and(splat(BASE)).shl(splat(WIDTH_STEP)).add(indices)
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
