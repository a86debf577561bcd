use fibula_core::Hop;
use fibula_simd::{Row, Simd, prefetch_read};

use super::record::{Codes, Unit};
use super::word::{BASE, BITS_AT, BYTE, RECORD};
use super::{LEVELS, Tables};

// The stages of a block of lookups, each for all of its rows (the numbers are in docs/adr/0006-wideleaf.md). They are for
// machines on which a gather takes longer than loads; the others have `gathers.rs`.
//
// - A plain load reads each word, from a place that the previous stage has written to a list. On Zen 4 a gather costs more than
//   sixteen loads with any mask, and so does extracting the places from a vector. A lookup whose word names no table reads the first word.
// - The keys of records are compared a unit at a time: half a line on a Zen 4, where a whole line takes the first level of
//   the caches twice as long to fetch, elsewhere a line. The mask is not moved to a general register, because that takes
//   longer than the comparison, but stored from the mask register; a row's masks are then read as a
//   vector, and counts of leading zeros give the ranks.
// - In large tables, all words and records of a block are prefetched before the first one is read. Reads
//   alone would wait for their lines with fewer misses in flight than the core supports.
// - Lookups that end in a constant leave before the records are read: the words of the others are compacted.
// - Row operations are explicit (`fibula_simd::Row`), and each block has its own lists of a fixed size.
//   With vectorisation by the compiler, or with lists shared by blocks, the same loops went through memory.

/// Lookups of a row: 32-bit lanes of a vector.
pub(super) const ROW: usize = 16;

pub(super) type AddrRow = [u128; ROW];
pub(super) type HopRow = [Hop; ROW];

/// The stages with loads.
pub(super) struct Stages<'a, C: Codes, S> {
    pub(super) simd: S,
    pub(super) tables: &'a Tables<C>,
}

/// Words of lookups, with room for a block and one more row, because rows are written whole.
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
    fn words(&self, at: usize) -> &[u32; ROW] {
        self.0[at..].first_chunk().expect("room for a row more")
    }
    #[inline(always)]
    fn put<R: Row>(&mut self, at: usize, row: R) {
        *self.0[at..].first_chunk_mut().expect("room for a row more") = row.words();
    }
}

impl<C: Codes, S: Simd> Stages<'_, C, S> {
    /// Reads the root words of the first `LIVE` addresses.
    #[inline(always)]
    pub(super) fn root<const LIVE: usize>(&self, addrs: &AddrRow) -> S::Row {
        let mut read = [0; ROW];
        for (to, addr) in read.iter_mut().zip(&addrs[..LIVE]) {
            *to = self.tables.root_word(addr);
        }
        self.simd.row(&read)
    }

    /// Reads the words at the first `LIVE` of these places.
    ///
    /// # Safety
    /// The words at these places can be read.
    #[inline(always)]
    unsafe fn loads<const LIVE: usize>(&self, places: &[u32; ROW], words: *const u32) -> S::Row {
        let mut read = [0; ROW];
        for (to, place) in read.iter_mut().zip(&places[..LIVE]) {
            // SAFETY: a reference can be read, and the caller guarantees that the words can. Volatile: see `root`.
            *to =
                unsafe { words.add((&raw const *place).read_volatile() as usize).read_volatile() };
        }
        self.simd.row(&read)
    }

    /// A mask of the words that are not constants.
    #[inline(always)]
    pub(super) fn open(&self, words: S::Row) -> u16 {
        words.or(words.add(words)).top_bits()
    }

    /// Resolves the `open` words to constants; compacts them first, because they are few.
    #[inline(always)]
    pub(super) fn resolve_few<const N: usize, const L: usize>(
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
        // The lanes after the last open word become constants, which name nothing.
        few_words.put(len, self.simd.splat_row(0));
        let few = len.div_ceil(ROW);
        let (mut keys, mut open_words) = (*keys, *words);
        for (i, (keys, words)) in keys.iter_mut().zip(&mut open_words).take(few).enumerate() {
            *keys = few_keys.row(self.simd, i * ROW);
            *words = few_words.row(self.simd, i * ROW);
        }
        self.resolve::<N, L, ROW>(&mut keys, &mut open_words, few);
        for (i, &words) in open_words.iter().take(few).enumerate() {
            few_words.put(i * ROW, words);
        }
        let mut at = 0;
        for i in 0..rows {
            words[i] = few_words.row(self.simd, at).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// Resolves all words to constants; if there is only one row, its first `LIVE` words.
    #[inline(always)]
    pub(super) fn resolve<const N: usize, const L: usize, const LIVE: usize>(
        &self,
        keys: &mut [S::Row; N],
        words: &mut [S::Row; N],
        rows: usize,
    ) {
        let table = self.tables.words.as_ptr();
        let mut places = List::<L>::new();
        let is_far = self.tables.is_far();
        for i in 0..rows {
            places.put(i * ROW, self.places(keys[i], words[i]));
        }
        for _ in 0..LEVELS {
            if is_far {
                for &place in &places.0[..rows * ROW] {
                    prefetch_read(&self.tables.words, place as usize);
                }
            }
            for i in 0..rows {
                // SAFETY: the words that an entry names can be read, and so can the first word.
                let read = unsafe { self.loads::<LIVE>(places.words(i * ROW), table) };
                keys[i] = shorten(keys[i], words[i]);
                words[i] = read.if_top(words[i], words[i]);
                places.put(i * ROW, self.places(keys[i], words[i]));
            }
        }
        let mut records = List::<L>::new();
        let (mut searched, mut units) = (List::<L>::new(), List::<L>::new());
        let record = self.simd.splat_row(RECORD);
        if !S::ROWS_WHOLE || N <= 2 {
            // Without AVX-512, and where it would save only few rows, compaction costs more than searching a record without
            // keys for each constant.
            for i in 0..rows {
                let words = record.if_below(words[i], record, words[i]);
                let (unit, key) = unit_and_key::<C, _, ROW>(words, keys[i]);
                records.put(i * ROW, words);
                units.put(i * ROW, unit);
                searched.put(i * ROW, key);
            }
            let len = if N == 1 { LIVE } else { rows * ROW };
            self.search::<L, LIVE>(&searched, &units, &mut records, len);
            for (i, words) in words[..rows].iter_mut().enumerate() {
                *words = words.if_below(*words, record, records.row(self.simd, i * ROW));
            }
            return;
        }
        let mut open = [0; N];
        let mut len = 0;
        for i in 0..rows {
            open[i] = self.open(words[i]);
            let words = words[i].compress(open[i]);
            let (unit, key) = unit_and_key::<C, _, ROW>(words, keys[i].compress(open[i]));
            records.put(len, words);
            units.put(len, unit);
            searched.put(len, key);
            len += open[i].count_ones() as usize;
        }
        // Fills the lanes after the last open word.
        records.put(len, record);
        self.search::<L, LIVE>(&searched, &units, &mut records, len);
        let mut at = 0;
        for i in 0..rows {
            words[i] = records.row(self.simd, at).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// The places of the next words: in the table for a word that names one, else the first word.
    #[inline(always)]
    fn places(&self, keys: S::Row, words: S::Row) -> S::Row {
        places(keys, words).if_top(words, self.simd.splat_row(0))
    }

    /// Searches the keys in their records, and replaces the records' words by the codes.
    #[inline(always)]
    fn search<const L: usize, const LIVE: usize>(
        &self,
        keys: &List<L>,
        units: &List<L>,
        words: &mut List<L>,
        len: usize,
    ) {
        let simd = self.simd;
        let rows = len.div_ceil(ROW);
        if self.tables.is_far() {
            for &unit in &units.0[..len] {
                prefetch_read(&self.tables.units, unit as usize / size_of::<C::Unit>());
            }
        }
        let mut verdicts = [<C::Unit as Unit>::Verdict::default(); L];
        for ((to, &unit), &key) in verdicts[..len].iter_mut().zip(&units.0).zip(&keys.0) {
            // SAFETY: the units of records that entries name can be read, and so can the first unit.
            let unit = unsafe { &*self.tables.units.as_ptr().byte_add(unit as usize) };
            *to = unit.below(simd, key);
        }
        let codes = self.tables.units.as_ptr().cast();
        let (verdicts, _) = verdicts.as_chunks::<ROW>();
        let mut places = List::<L>::new();
        let record = simd.splat_row(RECORD);
        for (at, row) in verdicts[..rows].iter().enumerate() {
            let at = at * ROW;
            let place =
                code_places::<C, _, ROW>(words.row(simd, at), C::Unit::verdicts(record, row));
            words.put(at, place);
            places.put(at, place.shr(simd.splat_row(2)));
        }
        for at in (0..rows).map(|row| row * ROW) {
            // SAFETY: as above.
            let read = unsafe { self.loads::<LIVE>(places.words(at), codes) };
            words.put(at, code_words::<C, _, ROW>(read, words.row(simd, at)));
        }
    }
}

impl<C: Codes> Tables<C> {
    /// The root's word for an address.
    #[inline(always)]
    pub(super) fn root_word(&self, addr: &u128) -> u32 {
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

/// The first byte of each record's code. `below` has a bit for each key of the unit that is below the searched key.
#[inline(always)]
pub(super) fn code_places<C: Codes, R: Row<N>, const N: usize>(words: R, below: R) -> R {
    let splat = |word| words.splat(word);
    let (bytes, keys) = (words.shr(splat(3)).and(splat(BYTE)), words.and(splat(31)));
    let first = words.shr(splat(4)).and(splat(size_of::<C::Unit>() as u32 / 2 - 2));
    let all = splat(1).shl(keys).add(splat(u32::MAX));
    // The keys are sorted, so the set bits are the lowest ones, and the bit length is their number.
    let ranks = below.shr(first).and(all).bit_lengths();
    let size = size_of::<C::Code>() as u32;
    let behind_keys = keys.add(keys).add(splat(size - 1)).and(splat(!(size - 1)));
    bytes.add(behind_keys).add(ranks.shl(splat(size.trailing_zeros())))
}

/// Extracts the codes at these bytes from the words that contain them.
#[inline(always)]
pub(super) fn code_words<C: Codes, R: Row<N>, const N: usize>(read: R, places: R) -> R {
    let splat = |word| places.splat(word);
    // Codes of 8 and of 16 bits are read as part of an aligned word, so no load crosses the end of a line.
    if size_of::<C::Code>() == 4 {
        return read;
    }
    read.shr(places.and(splat(3)).shl(splat(3))).and(splat(C::TOP))
}

/// The first bytes of the records' units, and the keys as the comparison needs them.
#[inline(always)]
pub(super) fn unit_and_key<C: Codes, R: Row<N>, const N: usize>(words: R, keys: R) -> (R, R) {
    let splat = |word| words.splat(word);
    let unit = words.shr(splat(3)).and(splat(BYTE & !(size_of::<C::Unit>() as u32 - 1)));
    (unit, keys.and(splat(0xffff_0000)).or(keys.shr(splat(16))))
}

/// The places of the next words, where a word names a table.
#[inline(always)]
pub(super) fn places<R: Row<N>, const N: usize>(keys: R, words: R) -> R {
    words.and(words.splat(BASE)).add(keys.shr(words.shr(words.splat(BITS_AT))))
}

/// Removes the bits that index the table from each key whose word names one.
#[inline(always)]
pub(super) fn shorten<R: Row<N>, const N: usize>(keys: R, words: R) -> R {
    let bits = words.splat(32).sub(words.shr(words.splat(BITS_AT)));
    keys.shl(bits).if_top(words, keys)
}
