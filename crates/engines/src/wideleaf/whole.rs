//! Batches of 64 addresses and more on machines that load words: each stage for the whole batch, through memory.

use std::hint::black_box;
use std::mem::MaybeUninit;

use fibula_core::Hop;
use fibula_simd::{Kernel, Row, RowOffsets, Simd, prefetch_read, read_row};

use super::batch::{HALF_ROW, ROW, starts};
use super::record::{Codes, Half, Line, Unit};
use super::steps::{code_places, code_words, places, shorten, unit_and_key};
use super::word::{BASE, RECORD};
use super::{LEVELS, Tables};

// Between two stages all words and places of the batch lie in memory, not in registers:
//
// - A place that was stored with its row some hundred cycles before is loaded without waiting for the row, and two at a
//   time. In blocks of 64 each stage loads places that the one before has just stored.
// - Half lines are compared two at once, and one mask is stored for both.
// - Addresses are prefetched during the stages of tables. All of them at the start of a batch would occupy the buffers
//   that its first stages need.
// - `black_box` keeps the compiler from joining the loops of two stages.

/// Rows of a whole batch.
const ROWS: usize = 16;
/// The most lookups of a whole batch.
const WHOLE: usize = ROWS * ROW;
/// How many addresses ahead they are prefetched.
const AHEAD: usize = 8192 / size_of::<u128>();

/// A word or place for each lookup. A stage puts those of all rows of the batch before another one reads them.
struct Rows([MaybeUninit<RowOffsets>; ROWS]);

impl Rows {
    #[inline(always)]
    fn new() -> Self {
        Self([MaybeUninit::uninit(); ROWS])
    }

    #[inline(always)]
    fn put<R: Row>(&mut self, row: usize, words: R) {
        self.0[row].write(RowOffsets(words.words()));
    }

    /// # Safety
    /// The row was put.
    #[inline(always)]
    unsafe fn places(&self, row: usize) -> &RowOffsets {
        // SAFETY: the caller's.
        unsafe { self.0[row].assume_init_ref() }
    }

    /// The row; `any` is any one.
    ///
    /// # Safety
    /// The row was put.
    #[inline(always)]
    unsafe fn get<R: Row>(&self, row: usize, any: R) -> R {
        // SAFETY: the caller's.
        any.load(unsafe { &self.places(row).0 })
    }
}

/// Looks up at least a row of addresses. Returns whether codes of deep blocks remain in the result.
///
/// A kernel of its own: its stages need so much of the stack that smaller batches would take longer with it.
pub(super) struct Whole<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes> Kernel for Whole<'_, C> {
    type Output = bool;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> bool {
        let Self { tables, addrs, hops } = self;
        let (mut any_deep, mut at) = (false, 0);
        while at < addrs.len() {
            // Less than a row at the end is looked up with some addresses before it once more.
            let end = (at + WHOLE).min(addrs.len());
            let start = at.min(end - ROW);
            any_deep |= tables.whole(simd, &addrs[start..end], &mut hops[start..end]);
            at = end;
        }
        any_deep
    }
}

impl<C: Codes> Tables<C> {
    /// Looks up at least a row and at most [`WHOLE`] addresses.
    #[inline(always)]
    fn whole<S: Simd>(&self, simd: S, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let any = simd.splat_row(0);
        let record = any.splat(RECORD);
        // The last row ends with the batch, and looks some addresses up again.
        let rows = addrs.len().div_ceil(ROW).min(ROWS);
        let start = starts::<ROW, ROWS>(0, addrs.len() - ROW);
        let (table, units) = (self.words.as_ptr(), self.units.as_ptr());
        let (mut keys, mut words) = (Rows::new(), Rows::new());
        let (mut from, mut to) = (&mut Rows::new(), &mut Rows::new());
        let mut verdicts = [MaybeUninit::<[<C::Unit as UnitRows>::Verdict; ROW]>::uninit(); ROWS];

        // SAFETY, of this and all blocks below: rows are put by the stage before the one that gets them. The places
        // are those of the root, which has a word for every 16 bits, of words, units and codes that entries name, or of
        // the first word or unit: all of these can be read.
        for r in 0..rows {
            let addrs = addrs[start[r]..].first_chunk().expect("a row of addresses");
            let (high, low) = any.high_words(addrs);
            keys.put(r, high.shl(any.splat(16)).or(low.shr(any.splat(16))));
            from.put(r, high.shr(any.splat(16)).shl(any.splat(2)));
        }
        black_box((&mut keys, &mut *from));
        for r in 0..rows {
            // SAFETY: see above.
            let read = unsafe { read_row(any, table, from.places(r)) };
            words.put(r, read);
            // SAFETY: see above.
            unsafe { step(any, &mut keys, read, to, r) };
        }
        black_box((&mut keys, &mut words, &mut *to));
        for level in 0..LEVELS {
            (from, to) = (to, from);
            for r in 0..rows {
                prefetch_read(addrs, r * ROW + 4 * level + AHEAD);
                if level == 0 {
                    prefetch_read(addrs, r * ROW + 4 * LEVELS + AHEAD);
                }
                // SAFETY: see above.
                let (was, read) =
                    unsafe { (words.get(r, any), read_row(any, table, from.places(r))) };
                let now = read.if_top(was, was);
                words.put(r, now);
                if level < LEVELS - 1 {
                    // SAFETY: see above.
                    unsafe { step(any, &mut keys, now, to, r) };
                } else {
                    // A constant is compared with a record without keys.
                    let records = record.if_below(now, record, now);
                    // SAFETY: see above.
                    let key = unsafe { keys.get(r, any) };
                    let (unit, key) = unit_and_key::<C, _, ROW>(records, key);
                    keys.put(r, key);
                    to.put(r, unit);
                }
            }
            black_box((&mut keys, &mut words, &mut *to));
        }
        for r in 0..rows {
            let verdicts = verdicts[r].write(Default::default());
            // SAFETY: see above.
            unsafe { C::Unit::below_rows(simd, units, to.places(r), keys.get(r, any), verdicts) };
        }
        black_box(&mut verdicts);
        for r in 0..rows {
            // SAFETY: see above; the stage before wrote the verdicts.
            let (now, verdicts) = unsafe { (words.get(r, any), verdicts[r].assume_init_ref()) };
            let records = record.if_below(now, record, now);
            let at = code_places::<C, _, ROW>(records, C::Unit::verdicts(any, verdicts));
            keys.put(r, at);
            from.put(r, at.and(any.splat(!3)));
        }
        black_box((&mut keys, &mut *from));
        let mut deep = 0;
        for r in 0..rows {
            // SAFETY: see above.
            let (now, at, read) = unsafe {
                let read = read_row(any, units.cast(), from.places(r));
                (words.get(r, any), keys.get(r, any), read)
            };
            let codes = now.if_below(now, record, code_words::<C, _, ROW>(read, at));
            let hops = hops[start[r]..].first_chunk_mut().expect("a row of hops");
            deep |= self.store_hops::<_, ROW>(hops, codes);
        }
        deep != 0
    }
}

/// The places of the next words of a row, counted in bytes, and the keys that remain. Words that name no table get the
/// first place.
///
/// # Safety
/// The row of keys was put.
#[inline(always)]
unsafe fn step<R: Row>(any: R, keys: &mut Rows, words: R, to: &mut Rows, row: usize) {
    // SAFETY: the caller's.
    let key = unsafe { keys.get(row, any) };
    let place = places(key, words).shl(any.splat(2)).and(any.splat(BASE << 2));
    to.put(row, place.if_top(words, any.splat(0)));
    keys.put(row, shorten(key, words));
}

/// The comparison of a row of keys, each with a unit of its own.
pub(super) trait UnitRows: Sized {
    /// A bit for each key of a unit.
    type Verdict: Copy + Default;

    /// [`Unit::below`] for the units at these places, with the key of the same number.
    ///
    /// # Safety
    /// The places, counted in bytes from `units`, are those of units, which can be read.
    unsafe fn below_rows<S: Simd>(
        simd: S,
        units: *const Self,
        places: &RowOffsets,
        keys: S::Row,
        verdicts: &mut [Self::Verdict; ROW],
    );

    /// The same for half a row, whose places are taken as they are.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    unsafe fn below_half_row<S: Simd>(
        simd: S,
        units: *const Self,
        places: [u32; HALF_ROW],
        keys: S::HalfRow,
        verdicts: &mut [Self::Verdict; HALF_ROW],
    ) where
        Self: Unit,
    {
        // SAFETY: the caller's.
        unsafe { one_by_one(simd, units, places, keys.words(), verdicts) };
    }
}

impl UnitRows for Half {
    type Verdict = u16;

    #[inline(always)]
    unsafe fn below_half_row<S: Simd>(
        simd: S,
        units: *const Self,
        places: [u32; HALF_ROW],
        keys: S::HalfRow,
        verdicts: &mut [u16; HALF_ROW],
    ) {
        // SAFETY: the caller's.
        unsafe { simd.below16_half_row(units, places, keys, verdicts) };
    }

    #[inline(always)]
    unsafe fn below_rows<S: Simd>(
        simd: S,
        units: *const Self,
        places: &RowOffsets,
        keys: S::Row,
        verdicts: &mut [u16; ROW],
    ) {
        // SAFETY: the caller's.
        unsafe { simd.below16_rows(units, places, keys, verdicts) };
    }
}

impl UnitRows for Line {
    type Verdict = u32;

    #[inline(always)]
    unsafe fn below_rows<S: Simd>(
        simd: S,
        units: *const Self,
        places: &RowOffsets,
        keys: S::Row,
        verdicts: &mut [u32; ROW],
    ) {
        // SAFETY: the caller's.
        unsafe { one_by_one(simd, units, places.0, keys.words(), verdicts) };
    }
}

/// # Safety
/// As of [`UnitRows::below_rows`].
#[inline(always)]
unsafe fn one_by_one<S: Simd, U: Unit, const N: usize>(
    simd: S,
    units: *const U,
    places: [u32; N],
    keys: [u32; N],
    verdicts: &mut [U::Verdict; N],
) {
    for ((to, place), key) in verdicts.iter_mut().zip(places).zip(keys) {
        // SAFETY: the caller's. The write is volatile because otherwise the compiler moves each mask to a register of
        // its own.
        unsafe {
            let unit = &*units.byte_add(place as usize);
            (&raw mut *to).write_volatile(unit.below(simd, key));
        }
    }
}
