use std::array;

use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Level, Row, Simd, load_rows, prefetch_read, prefetch_read_l2};

use super::Tables;
use super::line::{Code, TOP_BITS};
use super::lookup::One;
use super::word::{BASE, LOW, SHIFT_AT, WIDTH_AT, WIDTH_STEP};
use crate::common::{Long, hop};

// The shape of batches, and the reasons (the numbers are in docs/engines/matchline-notes.md):
//
// - A block executes each stage for all of its rows of 16 lookups before the next one: root, tables, lines. There are
//   no lists, and lookups do not leave: one that is answered keeps its word, and searches a line that is always in the
//   first-level cache.
// - Whether another table follows is tested once for all rows of a step. Tested for each row, the branch is
//   mispredicted so often that the rows of a block no longer overlap.
// - All lines of a block are prefetched before the first one is read.
// - Batches of up to 8 are a row of eight words: gathers take less time, and no lines are read for padding. The rest of
//   a batch is two rows that overlap or one that ends with it, because two rows together take less time than one after
//   the other.
// - A batch of one row or two does not prefetch addresses: it is slower with them.
//
// Machines that load words faster than they gather them (Zen 4) load them in blocks of 64, and in rows of eight up
// to 32. They prefetch addresses into the second-level cache in batches of any length, for the reasons that wideleaf's
// `batch.rs` gives. AVX2's gathers of a row are loads.

/// Lookups of a row: 32-bit lanes of a vector.
const ROW: usize = 16;
/// Half a row: the rows of batches below 16.
const HALF_ROW: usize = ROW / 2;
/// Rows of a block whose words are gathered.
const ROWS: usize = 8;
/// Lookups of a block whose words are loaded.
const LOADED: usize = 64;
/// The same of a block of half rows.
const HALF_BLOCK: usize = LOADED / 2;
/// How many addresses ahead they are prefetched.
const AHEAD: usize = 4096 / size_of::<u128>();

/// Fewer addresses are looked up one after the other: the machine overlaps them, and rows would be mostly empty.
const ALONE: usize = HALF_ROW;
/// The same in plain code, whose rows have no lanes, and on machines that gather, where it was not measured.
const ALONE_PLAIN: usize = 5;

/// Looks up a batch.
pub(super) fn look_up<C: Code>(
    tables: &Tables<C>,
    level: Level,
    gathers: bool,
    addrs: &[u128],
    hops: &mut [Hop],
) {
    let alone = if gathers || level.isa() == Isa::Scalar { ALONE_PLAIN } else { ALONE };
    if addrs.len() < alone {
        return level.run(Few { tables, addrs, hops });
    }
    if gathers {
        let batch = Batch::<_, true> { tables, addrs, hops: &mut *hops };
        if level.run_avx512(batch).is_some() {
            return;
        }
    }
    level.run(Batch::<_, false> { tables, addrs, hops });
}

/// Looks up addresses one after the other.
struct Few<'a, C: Code> {
    tables: &'a Tables<C>,
    addrs: &'a [u128],
    hops: &'a mut [Hop],
}

impl<C: Code> Kernel for Few<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (&addr, hop) in self.addrs.iter().zip(self.hops) {
            *hop = One { tables: self.tables, addr }.run(simd);
        }
    }
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
        let search = BlockSearch::<_, _, GATHERS> { simd, tables: self.tables };
        let (addrs, hops) = (self.addrs, self.hops);
        if BlockSearch::<C, S, GATHERS>::LOADS {
            search.loaded(addrs, hops);
        } else if addrs.len() <= HALF_ROW {
            search.half_row(addrs, hops);
        } else if addrs.len() < ROW {
            search.overlapping::<_, HALF_ROW, 2>(simd.splat_half_row(0), addrs, hops);
        } else {
            search.rows(simd.splat_row(0), addrs, hops);
        }
    }
}

struct BlockSearch<'a, C: Code, S, const GATHERS: bool> {
    simd: S,
    tables: &'a Tables<C>,
}

impl<C: Code, S: Simd, const GATHERS: bool> BlockSearch<'_, C, S, GATHERS> {
    /// Whether words are loaded one by one. Without AVX-512 a gather is as many loads.
    const LOADS: bool = !GATHERS && S::ROWS_WHOLE;

    /// Looks up at least a row.
    #[inline(always)]
    fn rows(&self, row: S::Row, addrs: &[u128], hops: &mut [Hop]) {
        let (rows, rest) = addrs.as_chunks::<ROW>();
        let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
        let (blocks, rows) = rows.as_chunks::<ROWS>();
        let (hop_blocks, hop_rows) = hop_rows.as_chunks_mut::<ROWS>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            self.block(row, addrs, hops);
        }
        let (halves, rows) = rows.as_chunks::<{ ROWS / 2 }>();
        let (hop_halves, hop_rows) = hop_rows.as_chunks_mut::<{ ROWS / 2 }>();
        for (addrs, hops) in halves.iter().zip(hop_halves) {
            self.block(row, addrs, hops);
        }
        let (pairs, single) = rows.as_chunks::<2>();
        let (hop_pairs, _) = hop_rows.as_chunks_mut::<2>();
        for (addrs, hops) in pairs.iter().zip(hop_pairs) {
            self.block(row, addrs, hops);
        }
        let tail = ROW * single.len() + rest.len();
        if tail > ROW {
            let at = addrs.len() - tail;
            self.overlapping::<_, ROW, 2>(row, &addrs[at..], &mut hops[at..]);
        } else if tail > 0
            && let (Some(last), Some(hops)) = (addrs.last_chunk(), hops.last_chunk_mut())
        {
            // It ends with the batch, so some addresses may be looked up twice.
            self.block(row, array::from_ref(last), array::from_mut(hops));
        }
    }

    /// Looks up addresses in blocks whose words are loaded. One that would be more than half full ends with the batch,
    /// so some addresses may be looked up twice.
    #[inline(always)]
    fn loaded(&self, addrs: &[u128], hops: &mut [Hop]) {
        let (row, half) = (self.simd.splat_row(0), self.simd.splat_half_row(0));
        let mut at = 0;
        while at < addrs.len() {
            let left = addrs.len() - at;
            let len = if left > HALF_BLOCK && addrs.len() >= LOADED {
                at = at.min(addrs.len() - LOADED);
                LOADED
            } else {
                left.min(HALF_BLOCK)
            };
            let (addrs, hops) = (&addrs[at..][..len], &mut hops[at..][..len]);
            match (len, len.div_ceil(HALF_ROW)) {
                (LOADED, _) => {
                    let addrs = addrs.as_chunks::<ROW>().0.as_array().expect("whole rows");
                    let hops = hops.as_chunks_mut::<ROW>().0.as_mut_array().expect("whole rows");
                    self.block::<_, ROW, { LOADED / ROW }>(row, addrs, hops);
                }
                (HALF_BLOCK, _) => {
                    let addrs = addrs.as_chunks::<HALF_ROW>().0.as_array().expect("whole rows");
                    let hops = hops.as_chunks_mut().0.as_mut_array().expect("whole rows");
                    self.block::<_, HALF_ROW, { HALF_BLOCK / HALF_ROW }>(half, addrs, hops);
                }
                (_, 1) => self.half_row(addrs, hops),
                (_, 2) => self.overlapping::<_, HALF_ROW, 2>(half, addrs, hops),
                (_, 3) => self.overlapping::<_, HALF_ROW, 3>(half, addrs, hops),
                (..) => self.overlapping::<_, HALF_ROW, 4>(half, addrs, hops),
            }
            at += len;
        }
    }

    /// Looks up at most half a row, padded if it is less.
    #[inline(always)]
    fn half_row(&self, addrs: &[u128], hops: &mut [Hop]) {
        let half = self.simd.splat_half_row(0);
        if let (Some(addrs), Some(hops)) = (addrs.as_array(), hops.as_mut_array::<HALF_ROW>()) {
            return self.block(half, array::from_ref(addrs), array::from_mut(hops));
        }
        let (mut padded, mut padded_hops) = ([0; HALF_ROW], [Hop::NONE; HALF_ROW]);
        padded[..addrs.len()].copy_from_slice(addrs);
        self.block(half, &[padded], array::from_mut(&mut padded_hops));
        hops.copy_from_slice(&padded_hops[..hops.len()]);
    }

    /// Looks up at least `L` addresses, but no more than `N` rows, as copies of rows that overlap if they are fewer.
    #[inline(always)]
    fn overlapping<R: Row<L>, const L: usize, const N: usize>(
        &self,
        any: R,
        addrs: &[u128],
        hops: &mut [Hop],
    ) {
        let (mut rows, mut found) = ([[0; L]; N], [[Hop::NONE; L]; N]);
        let starts = array::from_fn::<_, N, _>(|i| (i * L).min(addrs.len() - L));
        let (from, to) =
            match (addrs.as_chunks().0.as_array(), hops.as_chunks_mut().0.as_mut_array()) {
                (Some(addrs), Some(hops)) => (addrs, hops),
                _ => {
                    for (row, start) in rows.iter_mut().zip(starts) {
                        row.copy_from_slice(&addrs[start..][..L]);
                    }
                    (&rows, &mut found)
                }
            };
        self.block(any, from, to);
        if hops.len() < N * L {
            for (found, start) in found.iter().zip(starts) {
                hops[start..][..L].copy_from_slice(found);
            }
        }
    }

    /// Looks up `N` rows of `L` addresses. `any` is any row.
    #[inline(always)]
    fn block<R: Row<L>, const L: usize, const N: usize>(
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
            for line in 0..if N > 2 || !GATHERS { L / 4 } else { 0 } {
                if GATHERS {
                    prefetch_read(&addrs[row], 4 * line + AHEAD);
                } else {
                    prefetch_read_l2(&addrs[row], 4 * line + AHEAD);
                }
            }
            for (key, addr) in keys[row].iter_mut().zip(&addrs[row]) {
                *key = ((addr >> 64) as u64) << TOP_BITS;
            }
            (highs[row], lows[row]) = any.high_words(&addrs[row]);
            words[row] = self.root(highs[row]);
            if !Self::LOADS {
                // SAFETY: there is a word for each entry, and one for addresses outside of them.
                words[row] = unsafe { words[row].gather(tables.words.as_ptr()) };
                open |= words[row].top_bits();
            }
        }
        if Self::LOADS {
            // SAFETY: as above.
            words = unsafe { load_rows(words, tables.words.as_ptr()) };
            for row in words {
                open |= row.top_bits();
            }
        }
        while open != 0 {
            open = 0;
            if !Self::LOADS {
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
