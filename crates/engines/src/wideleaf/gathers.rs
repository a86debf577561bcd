use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd, prefetch_read};

use super::batch::{ROW, code_places, code_words, places, shorten, unit_and_key};
use super::blocks::{AHEAD, HALF_ROW};
use super::record::{Codes, Unit};
use super::word::RECORD;
use super::{LEVELS, ROOT_BITS, Tables};

// Batches on machines that gather words faster than they load them, and the reasons for their shape (Intel, 2 MiB of L2; the numbers
// are in docs/adr/0006-wideleaf.md):
//
// - There are no lists: a lookup stays in its lane from the address to the hop. A gather does not read the words of lanes that are
//   finished, and these compare a record without keys, which is always in the first-level cache.
// - The number of rows is a constant, so the words and keys of a block are in registers between two stages.
// - A batch of 8 has rows of eight words, whose gathers take less time. There each stage waits for the one before, so
//   the root's words are loaded from the addresses in memory while these are put into vectors.
// - Each mask of a comparison is stored from the mask register, and the row of masks is then loaded. The load waits for all stores, and
//   is still faster than moves between masks, general registers and vectors, which share one port.
// - This port also takes a key or a place out of a vector, so a batch of 8 reads the second half of them from memory. Larger
//   batches do what the compiler chooses: with one row or two, loads right after the store take longer.
// - The codes of a large record lie in the next line. A block of four rows prefetches it; a longer one has enough other work until it
//   arrives, a shorter one has more instructions with it than it waits.
// - A batch has rows that start at multiples of their length, and a last one that ends with it; some addresses are looked up twice.

/// Rows of a block.
const ROWS: usize = 8;
/// If fewer than one in so many addresses are not answered by the root, those are looked up one by one.
const FEW: usize = 16;

pub(super) struct Gathered<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes> Kernel for Gathered<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        let search = BlockSearch { simd, tables };
        let len = addrs.len();
        let any_deep = if len <= HALF_ROW {
            search.half_row(addrs, hops)
        } else if len < ROW {
            search.block(simd.splat_half_row(0), addrs, hops, [0, len - HALF_ROW])
        } else {
            search.rows(addrs, hops)
        };
        if any_deep {
            tables.find_deep(addrs, hops);
        }
    }
}

struct BlockSearch<'a, C: Codes, S> {
    simd: S,
    tables: &'a Tables<C>,
}

impl<C: Codes, S: Simd> BlockSearch<'_, C, S> {
    /// Looks up at most half a row, padded if it is less.
    #[inline(always)]
    fn half_row(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let (mut padded, mut padded_hops) = ([0; HALF_ROW], [Hop::NONE; HALF_ROW]);
        let half = self.simd.splat_half_row(0);
        let (from, to) = match (addrs.as_array(), hops.as_mut_array()) {
            (Some(addrs), Some(hops)) => (addrs, hops),
            _ => {
                padded[..addrs.len()].copy_from_slice(addrs);
                (&padded, &mut padded_hops)
            }
        };
        let any_deep = self.block(half, from, to, [0]);
        if hops.len() < HALF_ROW {
            hops.copy_from_slice(&padded_hops[..hops.len()]);
        }
        any_deep
    }

    /// Looks up at least a row.
    #[inline(always)]
    fn rows(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let row = self.simd.splat_row(0);
        let mut any_deep = false;
        let (blocks, rest) = addrs.as_chunks::<{ ROWS * ROW }>();
        let (hop_blocks, _) = hops.as_chunks_mut::<{ ROWS * ROW }>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            any_deep |= self.block(row, addrs, hops, starts::<ROWS>(0, (ROWS - 1) * ROW));
        }
        let last = addrs.len() - ROW;
        let mut at = addrs.len() - rest.len();
        while at < addrs.len() {
            // The last row ends with the batch, so a block may look up some addresses again. Five rows are four and one.
            let rows = (addrs.len() - at).div_ceil(ROW);
            let (looked_up, is_deep) = match rows {
                1 => (1, self.block(row, addrs, hops, starts::<1>(at, last))),
                2 => (2, self.block(row, addrs, hops, starts::<2>(at, last))),
                3..=5 => (4, self.block(row, addrs, hops, starts::<4>(at, last))),
                _ => (ROWS, self.block(row, addrs, hops, starts::<ROWS>(at, last))),
            };
            any_deep |= is_deep;
            at += looked_up * ROW;
        }
        any_deep
    }

    /// Looks up `N` rows of `L` addresses, which start at these places. `row` is any row. Returns whether codes of deep blocks
    /// remain in the result.
    #[inline(always)]
    fn block<R: Row<L>, const L: usize, const N: usize>(
        &self,
        row: R,
        addrs: &[u128],
        hops: &mut [Hop],
        starts: [usize; N],
    ) -> bool {
        let Self { tables, .. } = *self;
        let splat = |word| row.splat(word);
        let (mut keys, mut words, mut open) = ([row; N], [row; N], [0; N]);
        let mut len = 0;
        for (i, &start) in starts.iter().enumerate() {
            let addrs = addrs[start..].first_chunk().expect("a row of addresses");
            // A short batch ends before the prefetched lines arrive.
            for line in 0..if N > 2 { L / 4 } else { 0 } {
                prefetch_read(addrs, 4 * line + AHEAD / size_of::<u128>());
            }
            let (high, low) = row.high_words(addrs);
            keys[i] = high.shl(splat(16)).or(low.shr(splat(16)));
            words[i] = if N == 1 {
                let mut read = [0; L];
                for (to, addr) in read.iter_mut().zip(addrs) {
                    *to = tables.root_word(addr);
                }
                row.load(&read)
            } else {
                // SAFETY: the root has a word for every 16 bits.
                unsafe { high.shr(splat(32 - ROOT_BITS)).gather(tables.words.as_ptr()) }
            };
            // Words that are not constants have one of the two top bits.
            open[i] = words[i].or(words[i].add(words[i])).top_bits();
            len += open[i].count_ones() as usize;
        }
        let mut many_deep = false;
        if len * FEW > N * L {
            self.resolve(&keys, &mut words);
            let mut deep = [0; N];
            for ((&start, words), deep) in starts.iter().zip(words).zip(&mut deep) {
                let hops = hops[start..].first_chunk_mut().expect("a row of hops");
                *deep = tables.store_hops(hops, words);
            }
            if deep.iter().fold(0, |any, row| any | row) != 0 {
                for (start, deep) in starts.into_iter().zip(deep) {
                    let rows = start..start + L;
                    many_deep |=
                        tables.find_if_few_deep(&addrs[rows.clone()], &mut hops[rows], deep);
                }
            }
            return many_deep;
        }
        for ((&start, &words), &open) in starts.iter().zip(&words).zip(&open) {
            let addrs = addrs[start..].first_chunk().expect("a row of addresses");
            let hops = hops[start..].first_chunk_mut().expect("a row of hops");
            many_deep |= tables.store(self.simd, addrs, hops, words, open);
        }
        many_deep
    }

    /// Resolves all words to constants.
    #[inline(always)]
    fn resolve<R: Row<L>, const L: usize, const N: usize>(
        &self,
        keys: &[R; N],
        words: &mut [R; N],
    ) {
        let mut keys = *keys;
        for _ in 0..LEVELS {
            for (keys, words) in keys.iter_mut().zip(words.iter_mut()) {
                let places = places(*keys, *words);
                *keys = shorten(*keys, *words);
                // SAFETY: the words that an entry names can be read, and so can the first word.
                *words =
                    unsafe { places.gather_if_top(*words, self.tables.words.as_ptr(), *words) };
            }
        }
        let record = words[0].splat(RECORD);
        let (mut units, mut searched) = ([[0; L]; N], [[0; L]; N]);
        let mut records = [record; N];
        for i in 0..N {
            records[i] = record.if_below(words[i], record, words[i]);
            let (unit, key) = unit_and_key::<C, _, L>(records[i], keys[i]);
            (units[i], searched[i]) = (unit.words(), key.words());
        }
        let all = self.tables.units.as_ptr();
        if N == ROWS / 2 {
            for &records in &records {
                for last in code_places::<C, _, L>(records, record.splat(u32::MAX)).words() {
                    prefetch_read(&self.tables.units, last as usize / size_of::<C::Unit>());
                }
            }
        }
        let mut verdicts = [[<C::Unit as Unit>::Verdict::default(); L]; N];
        for ((to, units), keys) in verdicts.iter_mut().zip(&units).zip(&searched) {
            for (lane, ((to, unit), key)) in to.iter_mut().zip(units).zip(keys).enumerate() {
                let in_memory = N == 1 && L == HALF_ROW && lane >= L / 2;
                // SAFETY: references can be read and written, the units of records that entries name can be read, and so can the
                // first unit. The write is volatile because otherwise the compiler moves each mask to a register of its own, the reads
                // are because otherwise it takes the words out of vectors.
                unsafe {
                    let (unit, key) = if in_memory {
                        ((&raw const *unit).read_volatile(), (&raw const *key).read_volatile())
                    } else {
                        (*unit, *key)
                    };
                    let unit = &*all.byte_add(unit as usize);
                    (&raw mut *to).write_volatile(unit.below(self.simd, key));
                }
            }
        }
        for ((words, &records), verdicts) in words.iter_mut().zip(&records).zip(&verdicts) {
            let below = C::Unit::verdicts(record, verdicts);
            let places = code_places::<C, _, L>(records, below);
            // SAFETY: the records can be read, and a record has a code for each rank.
            let read =
                unsafe { places.shr(record.splat(2)).gather(self.tables.units.as_ptr().cast()) };
            *words = words.if_below(*words, record, code_words::<C, _, L>(read, places));
        }
    }
}

/// The places of rows from this one on, none after the last one.
#[inline(always)]
fn starts<const N: usize>(at: usize, last: usize) -> [usize; N] {
    let mut starts = [last; N];
    for (i, start) in starts.iter_mut().enumerate() {
        *start = (at + i * ROW).min(last);
    }
    starts
}
