use std::hint::{black_box, cold_path};

use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd, load_rows, prefetch_read, prefetch_read_l2};

use super::descend::Descent;
use super::record::{Codes, Unit};
use super::steps::{code_places, code_words, places, shorten, unit_and_key};
use super::whole::{UnitRows, Whole};
use super::word::RECORD;
use super::{LEVELS, ROOT_BITS, Tables};

// Batches, and the reasons for their shape (the numbers are in docs/engines/wideleaf-notes.md):
//
// - A block executes each stage for all of its rows before the next one, so that the cache misses of lookups overlap:
//   root, three tables, then records and codes. The number of rows is a constant, so the words and keys of a block are
//   in registers between two stages.
// - There are no lists: a lookup stays in its lane from the address to the hop. Once it is finished, it reads the first
//   word of the root or nothing, and compares a record without keys; both are always in the first-level cache.
// - Words are gathered by one instruction, or loaded one by one, whichever is faster on the machine. The places of
//   loads are read from memory: to take them out of a vector takes longer.
// - Each mask of a comparison is stored from the mask register, and the row of masks is then loaded. The load waits for
//   all stores, and is still faster than moves between masks, general registers and vectors, which share one port.
// - A batch has rows that start at multiples of their length, and a last one that ends with it; some addresses are
//   looked up twice.
// - If the root answers nearly all addresses of a block (a scan of unused space), the others are looked up one by one.
//
// Machines that gather (Intel, 2 MiB of L2):
//
// - A batch of 8 has rows of eight words, whose gathers take less time. There each stage waits for the one before, so
//   the root's words are loaded from the addresses in memory while these are put into vectors.
// - The port of moves from vectors also takes a key or a place out of one, so a batch of 8 reads the second half of
//   them from memory. Larger batches use the compiler's choice: with one row or two, loads right after the store take
//   longer.
// - A batch of one row or two does not prefetch addresses: it is slower with them.
// - The codes of a large record lie in the next line. A block of four rows prefetches it; a longer one has enough other
//   work until it arrives, a shorter one has more instructions with it than it waits.
//
// Machines that load (Zen 4):
//
// - With AVX-512, batches of 64 and more are looked up as a whole (`whole.rs`), unless a sample of their root words
//   says that the root answers most addresses: blocks of 64 are better at these.
// - Batches of up to 32 have rows of eight, which are ready sooner than one of sixteen. Blocks of 64 have four rows of
//   sixteen: eight rows need more registers than there are, two wait for each other.
// - Codes of rows of eight are gathered: they are the last step, and nothing computes with their places.
// - Addresses are prefetched into the second-level cache, in short batches, too: most are parts of an array. Buffers of
//   the first level would be occupied until an address arrives from memory.

/// Lookups of a row.
pub(super) const ROW: usize = 16;
/// Lookups of half a row.
pub(super) const HALF_ROW: usize = ROW / 2;
/// Rows of a block, if words are gathered.
const GATHERED_ROWS: usize = 8;
/// Lookups of a block, if words are loaded.
pub(super) const LOADED: usize = 64;
/// If fewer than one in so many addresses are not answered by the root, those are looked up one by one.
const FEW: usize = 16;
/// The fewest lookups of a whole batch.
const WHOLE_MIN: usize = 64;
/// How many addresses ahead they are prefetched.
const AHEAD: usize = 4096 / size_of::<u128>();

pub(super) struct Batch<'a, C: Codes, const GATHERS: bool> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes, const GATHERS: bool> Kernel for Batch<'_, C, GATHERS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        let search = BlockSearch::<_, _, GATHERS> { simd, tables };
        let any_deep = if S::IS_SCALAR {
            tables.plain(simd, addrs, hops)
        } else if addrs.len() <= HALF_ROW {
            search.half_row(addrs, hops)
        } else if addrs.len() < ROW || !GATHERS && addrs.len() == ROW {
            search.two_halves(addrs, hops)
        } else if GATHERS {
            search.gathered(addrs, hops)
        } else {
            search.loaded(addrs, hops)
        };
        if any_deep {
            cold_path();
            // A separate function: it needs so many registers that the prologue of this one would take longer.
            simd.run(Descent::<_, GATHERS> { tables, addrs, hops });
        }
    }
}

pub(super) struct BlockSearch<'a, C: Codes, S, const GATHERS: bool> {
    pub(super) simd: S,
    pub(super) tables: &'a Tables<C>,
}

impl<C: Codes, S: Simd, const GATHERS: bool> BlockSearch<'_, C, S, GATHERS> {
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

    /// Looks up the last row as two halves, which overlap if there is less than a row.
    #[inline(always)]
    fn two_halves(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let len = addrs.len();
        let starts = [len.saturating_sub(ROW), len - HALF_ROW];
        self.block(self.simd.splat_half_row(0), addrs, hops, starts)
    }

    /// Looks up at least a row in blocks for machines that gather.
    #[inline(always)]
    fn gathered(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let row = self.simd.splat_row(0);
        let mut any_deep = false;
        let (blocks, rest) = addrs.as_chunks::<{ GATHERED_ROWS * ROW }>();
        let (hop_blocks, _) = hops.as_chunks_mut::<{ GATHERED_ROWS * ROW }>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            any_deep |= self.block(row, addrs, hops, starts::<ROW, GATHERED_ROWS>(0, addrs.len()));
        }
        let last = addrs.len() - ROW;
        let mut at = addrs.len() - rest.len();
        while at < addrs.len() {
            // The last row ends with the batch, so a block may look up some addresses again. Five rows are four and
            // one.
            let rows = (addrs.len() - at).div_ceil(ROW);
            let (looked_up, is_deep) = match rows {
                1 => (1, self.block(row, addrs, hops, starts::<ROW, 1>(at, last))),
                2 => (2, self.block(row, addrs, hops, starts::<ROW, 2>(at, last))),
                3..=5 => (4, self.block(row, addrs, hops, starts::<ROW, 4>(at, last))),
                _ => {
                    let starts = starts::<ROW, GATHERED_ROWS>(at, last);
                    (GATHERED_ROWS, self.block(row, addrs, hops, starts))
                }
            };
            any_deep |= is_deep;
            at += looked_up * ROW;
        }
        any_deep
    }

    /// Looks up at least a row on machines that load.
    #[inline(always)]
    fn loaded(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        if S::ROWS_WHOLE && addrs.len() >= WHOLE_MIN && self.is_open(addrs) {
            self.simd.run(Whole { tables: self.tables, addrs, hops })
        } else {
            self.blocks(addrs, hops)
        }
    }

    /// Whether the root leaves at least half of the addresses open, as a sample of four shows.
    #[inline(always)]
    fn is_open(&self, addrs: &[u128]) -> bool {
        let is_open = |at| usize::from(self.tables.root_word(&addrs[at]) >= RECORD);
        let quarter = addrs.len() / 4;
        is_open(0) + is_open(quarter) + is_open(2 * quarter) + is_open(3 * quarter) >= 2
    }

    /// Looks up at least a row in blocks.
    #[inline(always)]
    fn blocks(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let half = self.simd.splat_half_row(0);
        let mut any_deep = false;
        let (blocks, rest) = addrs.as_chunks::<LOADED>();
        let (hop_blocks, _) = hops.as_chunks_mut::<LOADED>();
        for (addrs, hops) in blocks.iter().zip(hop_blocks) {
            any_deep |= self.loaded_block(addrs, hops, 0);
        }
        let (at, last) = (addrs.len() - rest.len(), addrs.len() - HALF_ROW);
        any_deep
            | match rest.len().div_ceil(HALF_ROW) {
                0 => false,
                1..=2 => self.two_halves(addrs, hops),
                3 => self.block(half, addrs, hops, starts::<HALF_ROW, 3>(at, last)),
                4 => self.block(half, addrs, hops, starts::<HALF_ROW, 4>(at, last)),
                _ => self.loaded_block(addrs, hops, at),
            }
    }

    /// Looks up the addresses from `at` on, at most a block of them. Rows are those that are one vector.
    #[inline(always)]
    fn loaded_block(&self, addrs: &[u128], hops: &mut [Hop], at: usize) -> bool {
        let len = addrs.len();
        if S::ROWS_WHOLE {
            let starts = starts::<ROW, { LOADED / ROW }>(at, len - ROW);
            self.block(self.simd.splat_row(0), addrs, hops, starts)
        } else {
            let starts = starts::<HALF_ROW, { LOADED / HALF_ROW }>(at, len - HALF_ROW);
            self.block(self.simd.splat_half_row(0), addrs, hops, starts)
        }
    }

    /// Looks up `N` rows of `L` addresses, which start at these places. `row` is any row. Returns whether codes of deep
    /// blocks remain in the result.
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
            for line in 0..if N > 2 || !GATHERS { L / 4 } else { 0 } {
                if GATHERS {
                    prefetch_read(addrs, 4 * line + AHEAD);
                } else {
                    prefetch_read_l2(addrs, 4 * line + AHEAD);
                }
            }
            let (high, low) = row.high_words(addrs);
            keys[i] = high.shl(splat(16)).or(low.shr(splat(16)));
            words[i] = if N == 1 || !GATHERS {
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
        let mut deep = [0; N];
        if len * FEW > N * L {
            self.resolve(keys, &mut words);
            for ((&start, words), deep) in starts.iter().zip(words).zip(&mut deep) {
                let hops = hops[start..].first_chunk_mut().expect("a row of hops");
                *deep = tables.store_hops(hops, words);
            }
        } else {
            for (i, &start) in starts.iter().enumerate() {
                let addrs = addrs[start..].first_chunk().expect("a row of addresses");
                let hops = hops[start..].first_chunk_mut().expect("a row of hops");
                deep[i] = tables.store(self.simd, addrs, hops, words[i], open[i]);
            }
        }
        deep.iter().fold(0, |any, lanes| any | lanes) != 0
    }

    /// Resolves all words to constants.
    #[inline(always)]
    pub(super) fn resolve<R: Row<L>, const L: usize, const N: usize>(
        &self,
        mut keys: [R; N],
        words: &mut [R; N],
    ) {
        for _ in 0..LEVELS {
            self.step(&mut keys, words);
        }
        let record = words[0].splat(RECORD);
        let (mut units, mut searched) = ([[0; L]; N], [[0; L]; N]);
        let mut records = [record; N];
        for i in 0..N {
            records[i] = record.if_below(words[i], record, words[i]);
            let (unit, key) = unit_and_key::<C, _, L>(records[i], keys[i]);
            (units[i], searched[i]) = (unit.words(), key.words());
        }
        // In larger batches places and keys are read from memory, too.
        let in_memory = !GATHERS && (L == ROW || !S::ROWS_WHOLE);
        if in_memory {
            black_box((&mut units, &mut searched));
        }
        let all = self.tables.units.as_ptr();
        if GATHERS && N == GATHERED_ROWS / 2 {
            for &records in &records {
                for last in code_places::<C, _, L>(records, record.splat(u32::MAX)).words() {
                    prefetch_read(&self.tables.units, last as usize / size_of::<C::Unit>());
                }
            }
        }
        let mut verdicts = [[<C::Unit as UnitRows>::Verdict::default(); L]; N];
        self.compare(&units, &searched, &mut verdicts);
        if GATHERS || L == HALF_ROW && S::ROWS_WHOLE {
            for ((words, &records), verdicts) in words.iter_mut().zip(&records).zip(&verdicts) {
                let below = C::Unit::verdicts(record, verdicts);
                let at = code_places::<C, _, L>(records, below);
                // SAFETY: the records can be read, and a record has a code for each rank.
                let read = unsafe { at.shr(record.splat(2)).gather(all.cast()) };
                *words = words.if_below(*words, record, code_words::<C, _, L>(read, at));
            }
            return;
        }
        let (mut at, mut places) = ([record; N], [record; N]);
        for i in 0..N {
            let below = C::Unit::verdicts(record, &verdicts[i]);
            at[i] = code_places::<C, _, L>(records[i], below);
            places[i] = at[i].shr(record.splat(2));
        }
        // SAFETY: as above.
        let read = unsafe { load_rows(places, all.cast()) };
        for ((words, at), read) in words.iter_mut().zip(at).zip(read) {
            *words = words.if_below(*words, record, code_words::<C, _, L>(read, at));
        }
    }

    /// Compares each key with the unit of the same number.
    #[inline(always)]
    fn compare<const L: usize, const N: usize>(
        &self,
        units: &[[u32; L]; N],
        keys: &[[u32; L]; N],
        verdicts: &mut [[<C::Unit as UnitRows>::Verdict; L]; N],
    ) {
        let all = self.tables.units.as_ptr();
        // A batch of 8 compares two half lines at once. With more half rows this takes longer.
        if N == 1
            && !GATHERS
            && S::ROWS_WHOLE
            && let (Some(units), Some(keys)) = (units[0].as_array(), keys[0].as_array())
            && let Some(verdicts) = verdicts[0].as_mut_array()
        {
            let keys = self.simd.splat_half_row(0).load(keys);
            // SAFETY: the units of records that entries name can be read, and so can the first unit.
            return unsafe { C::Unit::below_half_row(self.simd, all, *units, keys, verdicts) };
        }
        for ((to, units), keys) in verdicts.iter_mut().zip(units).zip(keys) {
            for (lane, ((to, unit), key)) in to.iter_mut().zip(units).zip(keys).enumerate() {
                let volatile = N == 1 && L == HALF_ROW && lane >= L / 2;
                // SAFETY: references can be read and written, the units of records that entries name can be read, and
                // so can the first unit. The write is volatile because otherwise the compiler moves each mask to a
                // register of its own, the reads are because otherwise it takes the words out of vectors.
                unsafe {
                    let (unit, key) = if volatile {
                        ((&raw const *unit).read_volatile(), (&raw const *key).read_volatile())
                    } else {
                        (*unit, *key)
                    };
                    let unit = &*all.byte_add(unit as usize);
                    (&raw mut *to).write_volatile(unit.below(self.simd, key));
                }
            }
        }
    }

    /// Reads the next word of each lookup whose word names a table.
    #[inline(always)]
    fn step<R: Row<L>, const L: usize, const N: usize>(
        &self,
        keys: &mut [R; N],
        words: &mut [R; N],
    ) {
        let table = self.tables.words.as_ptr();
        if GATHERS {
            for (keys, words) in keys.iter_mut().zip(words) {
                let places = places(*keys, *words);
                *keys = shorten(*keys, *words);
                // SAFETY: the words that an entry names can be read, and so can the first word.
                *words = unsafe { places.gather_if_top(*words, table, *words) };
            }
            return;
        }
        let mut at = [words[0]; N];
        for ((at, keys), &words) in at.iter_mut().zip(keys).zip(&*words) {
            *at = places(*keys, words).if_top(words, words.splat(0));
            *keys = shorten(*keys, words);
        }
        // SAFETY: as above.
        let read = unsafe { load_rows(at, table) };
        for (words, read) in words.iter_mut().zip(read) {
            *words = read.if_top(*words, *words);
        }
    }
}

/// The places of rows of `L` from this one on, none after the last one.
#[inline(always)]
pub(super) fn starts<const L: usize, const N: usize>(at: usize, last: usize) -> [usize; N] {
    let mut starts = [last; N];
    for (i, start) in starts.iter_mut().enumerate() {
        *start = (at + i * L).min(last);
    }
    starts
}

impl<C: Codes> Tables<C> {
    /// The root's word for an address.
    #[inline(always)]
    fn root_word(&self, addr: &u128) -> u32 {
        let parts: &[u16; 8] = bytemuck::cast_ref(addr);
        let top = if cfg!(target_endian = "little") { &parts[7] } else { &parts[0] };
        // SAFETY: a reference can be read, and the root has a word for every 16 bits. The reads are volatile
        // because otherwise the compiler puts the addresses into vectors and extracts them again.
        unsafe {
            let top = (&raw const *top).read_volatile();
            self.words.as_ptr().add(top.into()).read_volatile()
        }
    }
}
