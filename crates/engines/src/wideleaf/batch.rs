use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Row, Simd, prefetch_read};

use super::lookup::One;
use super::record::Codes;
use super::word::{BASE, BITS_AT, BYTE, RECORD};
use super::{LEVELS, Tables};

// How batches are shaped, and why (Zen 4; the numbers are in docs/adr/0006-wideleaf.md):
//
// - Stages over rows of 16 lookups: root, three tables, then records and codes, each stage for all rows
//   of a block before the next one, so that no lookup waits for its own cache line alone.
// - Words of tables are gathered by the vector unit, and only by the lookups that still have a table:
//   a gather costs the lines that it fetches.
// - The keys of records are compared half a line at a time, since a whole line takes the first level of
//   the caches twice as long to fetch. The mask is not moved to a general register, which takes longer
//   than the comparison, but stored from the mask register; a row's masks are then read as a vector,
//   whose leading zeros are the ranks.
// - Lookups that end in a constant leave before the records: the others' words are moved together.
// - Few addresses that the root does not answer (a scan of unused space) are looked up one by one.
// - Row operations are written out (`fibula_simd::Row`), and a block's lists are its own, of a fixed
//   size: left to the compiler, or shared by blocks, the same loops went through memory.

/// Lookups of a row: 32-bit lanes of a vector.
const ROW: usize = 16;
/// Rows that go through the stages together, and what their lists have room for.
const ROWS: usize = 4;
const LANES: usize = ROW * (ROWS + 1);
/// And at the end of a batch, at most.
const LAST_ROWS: usize = 2 * ROWS;
const LAST_LANES: usize = ROW * (LAST_ROWS + 1);
/// Shorter batches do not fill the stages.
const SHORT: usize = 20;
/// How far ahead keys are asked for.
const AHEAD: usize = 4096;

type AddrRow = [u128; ROW];
type HopRow = [Hop; ROW];

pub(super) struct Batch<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes> Kernel for Batch<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        let search = LeafSearch { simd, tables };
        if S::ISA == Isa::Scalar || addrs.len() < SHORT {
            return tables.plain(simd, addrs, hops);
        }
        // What is left behind whole rows goes as the row that ends with it: some are looked up twice.
        let (last, mut last_hops) = (addrs.last_chunk(), [Hop::NONE; ROW]);
        let ragged = !addrs.len().is_multiple_of(ROW);
        {
            let (rows, _) = addrs.as_chunks::<ROW>();
            let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
            // A short block does not fill the stages: what would be one joins the whole one before.
            let short = rows.len() % ROWS;
            let left = if short == 0 && !ragged { 0 } else { short + ROWS };
            let at = rows.len().saturating_sub(left);
            let ((blocks, rows), (hop_blocks, hop_rows)) =
                (rows.split_at(at), hop_rows.split_at_mut(at));
            let (blocks, _) = blocks.as_chunks::<ROWS>();
            let (hop_blocks, _) = hop_blocks.as_chunks_mut::<ROWS>();
            for (rows, hop_rows) in blocks.iter().zip(hop_blocks) {
                search.block::<ROWS, LANES>(rows, None, hop_rows, None);
            }
            if ragged {
                search.block::<LAST_ROWS, LAST_LANES>(rows, last, hop_rows, Some(&mut last_hops));
            } else if !rows.is_empty() {
                search.block::<LAST_ROWS, LAST_LANES>(rows, None, hop_rows, None);
            }
        }
        if let (true, Some(to)) = (ragged, hops.last_chunk_mut()) {
            *to = last_hops;
        }
    }
}

struct LeafSearch<'a, C: Codes, S> {
    simd: S,
    tables: &'a Tables<C>,
}

/// Words of lookups: room for all of a block's, and for a row more, since rows are written whole.
struct List<const LANES: usize>([u32; LANES]);

impl<const LANES: usize> List<LANES> {
    #[inline(always)]
    fn new() -> Self {
        Self([0; LANES])
    }
    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, at: usize) -> S::Row {
        simd.row(self.0[at..].first_chunk().expect("room for a row more"))
    }
    #[inline(always)]
    fn put<R: Row>(&mut self, at: usize, row: R) {
        *self.0[at..].first_chunk_mut().expect("room for a row more") = row.words();
    }
}

impl<C: Codes, S: Simd> LeafSearch<'_, C, S> {
    #[inline(always)]
    fn block<const N: usize, const L: usize>(
        &self,
        addrs: &[AddrRow],
        last: Option<&AddrRow>,
        hops: &mut [HopRow],
        last_hops: Option<&mut HopRow>,
    ) {
        let simd = self.simd;
        let sixteen = simd.splat_row(16);
        let (mut keys, mut words) = ([simd.splat_row(0); N], [simd.splat_row(0); N]);
        let mut open = [0; N];
        let rows = (addrs.len() + usize::from(last.is_some())).min(N);
        for i in 0..rows {
            let Some(addrs) = addrs.get(i).or(last) else { break };
            for line in 0..ROW / 4 {
                prefetch_read(addrs, 4 * line + AHEAD / size_of::<u128>());
            }
            let (high, low) = simd.high_words(addrs);
            keys[i] = high.shl(sixteen).or(low.shr(sixteen));
            // SAFETY: the root has a word for every 16 bits.
            words[i] = unsafe { high.shr(sixteen).gather(self.tables.words.as_ptr()) };
            open[i] = self.open(words[i]);
        }
        let len = open.iter().map(|open| open.count_ones()).sum::<u32>() as usize;
        let few = len * if S::ROWS_WHOLE { 16 } else { 3 } <= rows * ROW;
        if few {
            // Looked up one by one below.
        } else if len * 2 > rows * ROW {
            self.resolve::<N, L>(&mut keys, &mut words, rows);
        } else {
            self.resolve_few::<N, L>(&keys, &mut words, &open, rows);
        }
        let minus_one = simd.splat_row(u32::MAX);
        let codes_end = simd.splat_row(C::TOP - self.tables.deep.blocks() as u32);
        let rows = addrs.iter().chain(last).zip(hops.iter_mut().chain(last_hops));
        for ((addrs, hops), (&words, &open)) in rows.zip(words.iter().zip(&open)) {
            for (to, bits) in hops.iter_mut().zip(words.add(minus_one).words()) {
                *to = Hop::from_bits(bits);
            }
            if few {
                self.one_by_one(addrs, hops, open);
            }
            // Codes are below 2^31: the difference tells which are larger.
            let deep = codes_end.sub(words).top_bits();
            if deep != 0 {
                self.tables.find_deep(addrs, hops, if few { deep & !open } else { deep });
            }
        }
    }

    /// Looks up the addresses that `open` has a bit for.
    #[inline(always)]
    fn one_by_one(&self, addrs: &AddrRow, hops: &mut HopRow, mut open: u16) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize % ROW;
            hops[lane] = One { tables: self.tables, addr: addrs[lane] }.run(self.simd);
            open &= open - 1;
        }
    }

    /// Makes constants of few words that are none: they are moved together first.
    #[inline(always)]
    fn resolve_few<const N: usize, const L: usize>(
        &self,
        keys: &[S::Row; N],
        words: &mut [S::Row; N],
        open: &[u16; N],
        rows: usize,
    ) {
        let (mut few_keys, mut few_words) = (List::<L>::new(), List::<L>::new());
        let mut len = 0;
        for i in 0..rows {
            few_keys.put(len, keys[i].compress(open[i]));
            few_words.put(len, words[i].compress(open[i]));
            len += open[i].count_ones() as usize;
        }
        // The lanes behind the final one's are constants: they name nothing.
        few_words.put(len, self.simd.splat_row(0));
        let few = len.div_ceil(ROW);
        let (mut keys, mut open_words) = (*keys, *words);
        for (i, (keys, words)) in keys.iter_mut().zip(&mut open_words).take(few).enumerate() {
            *keys = few_keys.row(self.simd, i * ROW);
            *words = few_words.row(self.simd, i * ROW);
        }
        self.resolve::<N, L>(&mut keys, &mut open_words, few);
        for (i, &words) in open_words.iter().take(few).enumerate() {
            few_words.put(i * ROW, words);
        }
        let mut at = 0;
        for i in 0..rows {
            words[i] = few_words.row(self.simd, at).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// Makes constants of all words.
    #[inline(always)]
    fn resolve<const N: usize, const L: usize>(
        &self,
        keys: &mut [S::Row; N],
        words: &mut [S::Row; N],
        rows: usize,
    ) {
        for _ in 0..LEVELS {
            for i in 0..rows {
                (keys[i], words[i]) = self.step(keys[i], words[i]);
            }
        }
        let (mut records, mut searched) = (List::<L>::new(), List::<L>::new());
        let record = self.simd.splat_row(RECORD);
        if !S::ROWS_WHOLE {
            // Moving words together costs more than to search a record without keys for constants.
            for i in 0..rows {
                records.put(i * ROW, record.if_below(words[i], record, words[i]));
                searched.put(i * ROW, keys[i]);
            }
            self.search(&mut searched, &mut records, rows * ROW);
            for (i, words) in words[..rows].iter_mut().enumerate() {
                *words = words.if_below(*words, record, records.row(self.simd, i * ROW));
            }
            return;
        }
        let mut open = [0; N];
        let mut len = 0;
        for i in 0..rows {
            open[i] = self.open(words[i]);
            records.put(len, words[i].compress(open[i]));
            searched.put(len, keys[i].compress(open[i]));
            len += open[i].count_ones() as usize;
        }
        // The lanes behind the final one's.
        records.put(len, record);
        self.search(&mut searched, &mut records, len);
        let mut at = 0;
        for i in 0..rows {
            words[i] = records.row(self.simd, at).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// Which words are no constants.
    #[inline(always)]
    fn open(&self, words: S::Row) -> u16 {
        words.or(words.add(words)).top_bits()
    }

    /// Follows the words that name a table, and takes the bits from the keys that it looks at.
    #[inline(always)]
    fn step(&self, keys: S::Row, words: S::Row) -> (S::Row, S::Row) {
        let splat = |word| self.simd.splat_row(word);
        let down = words.shr(splat(BITS_AT));
        let places = words.and(splat(BASE)).add(keys.shr(down));
        // SAFETY: a table's entry names words that are there, at places below 2^28; no other lane is read.
        let read = unsafe { places.gather_if_top(words, self.tables.words.as_ptr(), words) };
        let bits = splat(32).sub(down);
        (keys.shl(bits).if_top(words, keys), read)
    }

    /// Puts the codes of the keys in place of the words of their records.
    #[inline(always)]
    fn search<const L: usize>(&self, keys: &mut List<L>, words: &mut List<L>, len: usize) {
        let simd = self.simd;
        let splat = |word| simd.splat_row(word);
        let rows = len.div_ceil(ROW);
        let mut halves = List::<L>::new();
        for at in (0..rows).map(|row| row * ROW) {
            let key = keys.row(simd, at);
            keys.put(at, key.and(splat(0xffff_0000)).or(key.shr(splat(16))));
            halves.put(at, words.row(simd, at).shr(splat(3)).and(splat(BYTE)).shr(splat(5)));
        }
        let mut verdicts = [0u16; L];
        for ((to, &half), &key) in verdicts[..len].iter_mut().zip(&halves.0).zip(&keys.0) {
            // SAFETY: the records that entries name are there, and so is nobody's.
            let half = unsafe { self.tables.halves.get_unchecked(half as usize) };
            *to = simd.below16(half, key);
        }
        let (verdicts, _) = verdicts.as_chunks::<ROW>();
        for (at, row) in verdicts[..rows].iter().enumerate() {
            let word = words.row(simd, at * ROW);
            words.put(at * ROW, self.codes(word, simd.halves(row)));
        }
    }

    /// The codes in these records, of whose halves these keys are below.
    #[inline(always)]
    fn codes(&self, words: S::Row, below: S::Row) -> S::Row {
        let splat = |word| self.simd.splat_row(word);
        let (bytes, keys) = (words.shr(splat(3)).and(splat(BYTE)), words.and(splat(31)));
        let first = words.shr(splat(4)).and(splat(14));
        let all = splat(1).shl(keys).add(splat(u32::MAX));
        // Sorted keys: the bits are the lowest ones, so that the bits' length counts them.
        let ranks = below.shr(first).and(all).bit_lengths();
        let size = size_of::<C::Code>() as u32;
        let behind_keys = keys.add(keys).add(splat(size - 1)).and(splat(!(size - 1)));
        let places = bytes.add(behind_keys).add(ranks.shl(splat(size.trailing_zeros())));
        // SAFETY: the records are there, and a record has a code for each rank.
        let read = unsafe { places.shr(splat(2)).gather(self.tables.halves.as_ptr().cast()) };
        // Codes of 8 and of 16 bits are read with their neighbours: no load goes over a line's end.
        if size == 4 {
            return read;
        }
        read.shr(places.and(splat(3)).shl(splat(3))).and(splat(C::TOP))
    }
}

impl<C: Codes> Tables<C> {
    /// Finds what the codes of deep blocks stand for, which have become hops beyond any hop's number.
    #[cold]
    fn find_deep(&self, addrs: &AddrRow, hops: &mut HopRow, mut lanes: u16) {
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize % ROW;
            let block = C::TOP - (hops[lane].to_bits() + 1);
            hops[lane] = self.deep.find(block as usize, addrs[lane]);
            lanes &= lanes - 1;
        }
    }
}
