//! Many lookups at once: direct entries in a first pass, without a branch; then the addresses whose
//! chunks have to be searched, side by side.
//!
//! A bisection branch that random keys decide is mispredicted half of the time, at some 15 cycles a
//! time, and one search alone waits for each of its loads. Side by side, with conditional moves, 8 or
//! 48 searches share the waiting.

use core::hint::select_unpredictable;

use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::format::{Chunk, Entry, LONG_CODE_MAX, SHORT_CODE_MAX, WideEntry, hop};
use super::{Compact, Form, Wide};

/// The batch lookup as a [`Kernel`].
pub(super) struct Batch<'a> {
    pub(super) form: &'a Form,
    pub(super) shift: u32,
    pub(super) addrs: &'a [u32],
    /// As long as `addrs`.
    pub(super) hops: &'a mut [Hop],
}

impl Kernel for Batch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let Self { form, shift, addrs, hops } = self;
        match form {
            Form::Compact(tables) => {
                #[cfg(target_arch = "x86_64")]
                if S::ISA == fibula_simd::Isa::Avx512 {
                    // SAFETY: a value of a `Simd` type proves that the machine has its instruction
                    // set, here AVX-512 with POPCNT.
                    return unsafe { avx512::lookup_batch(tables, shift, addrs, hops) };
                }
                lookup_batch(&CompactRanges { tables, shift }, addrs, hops);
            }
            Form::Wide(tables) => lookup_batch(&WideRanges { tables, shift }, addrs, hops),
        }
    }
}

/// Addresses that are taken through a pass together.
const BLOCK: usize = 256;
/// Searches side by side.
const LANES: usize = 8;

/// The two steps of a lookup, over either form of the tables.
trait Ranges {
    /// Whether the chunk of the address is direct, and if so its hop.
    fn direct(&self, addr: u32) -> (bool, Hop);
    /// Begins the search of a chunk that is not direct.
    fn begin(&self, addr: u32) -> Lane;
    /// The word that starts at a place of the range table.
    fn load(&self, at: usize) -> u32;
    /// The hop of the range that a search has ended on.
    fn hop(&self, lane: &Lane) -> Hop;
}

/// A search under way: the answer is one of the `size` ranges from the place `at`.
#[derive(Clone, Copy)]
struct Lane {
    at: usize,
    size: usize,
    /// log2 of the places that a range takes.
    scale: u32,
    /// The bits of a range in a loaded word.
    bits: u32,
    key: u32,
}

/// The portable form.
#[inline(always)]
fn lookup_batch<T: Ranges>(tables: &T, addrs: &[u32], hops: &mut [Hop]) {
    let mut searched = [0u8; BLOCK];
    for (addrs, hops) in addrs.chunks(BLOCK).zip(hops.chunks_mut(BLOCK)) {
        let mut count = 0;
        for (i, (&addr, hop)) in addrs.iter().zip(hops.iter_mut()).enumerate() {
            let (direct, answer) = tables.direct(addr);
            *hop = answer;
            // Written in any case, kept if the count moves on.
            searched[count] = i as u8;
            count += usize::from(!direct);
        }
        for group in searched[..count].chunks(LANES) {
            search(tables, group, addrs, hops);
        }
    }
}

#[inline(always)]
fn search<T: Ranges>(tables: &T, group: &[u8], addrs: &[u32], hops: &mut [Hop]) {
    // Lanes without a search repeat the last one.
    let last = group.len() - 1;
    let mut lanes: [Lane; LANES] =
        core::array::from_fn(|i| tables.begin(addrs[usize::from(group[i.min(last)])]));
    let mut left = lanes.iter().map(|lane| lane.size).max().unwrap_or(0);
    while left > 1 {
        for lane in &mut lanes {
            // A lane of size 1 is done: it compares its range once more and stays.
            let half = lane.size / 2;
            let middle = lane.at + (half << lane.scale);
            let before = tables.load(middle) & lane.bits <= lane.key;
            lane.at = select_unpredictable(before, middle, lane.at);
            lane.size -= half;
        }
        left -= left / 2;
    }
    for (lane, &i) in lanes.iter().zip(group) {
        hops[usize::from(i)] = tables.hop(lane);
    }
}

struct CompactRanges<'a> {
    tables: &'a Compact,
    shift: u32,
}

/// Places are half words: a short range takes one, a long one two.
impl Ranges for CompactRanges<'_> {
    #[inline(always)]
    fn direct(&self, addr: u32) -> (bool, Hop) {
        let entry = self.tables.lookup[(addr >> self.shift) as usize];
        (entry < Entry::DIRECT_END, hop(entry))
    }

    #[inline(always)]
    fn begin(&self, addr: u32) -> Lane {
        let entry = Entry(self.tables.lookup[(addr >> self.shift) as usize]);
        let Chunk { word, size, long } = Chunk::new(entry, self.tables.grain);
        let local = addr & ((1 << self.shift) - 1);
        let (short_key, long_key) = (local | SHORT_CODE_MAX, local << 16 | LONG_CODE_MAX);
        Lane {
            at: 2 * word,
            size,
            scale: long.into(),
            bits: select_unpredictable(long, u32::MAX, 0xffff),
            key: select_unpredictable(long, long_key, short_key),
        }
    }

    #[inline(always)]
    fn load(&self, at: usize) -> u32 {
        self.tables.ranges[at / 2] >> (16 * (at & 1))
    }

    #[inline(always)]
    fn hop(&self, lane: &Lane) -> Hop {
        hop(self.load(lane.at) & lane.bits & (0xff << (8 * lane.scale) | 0xff))
    }
}

struct WideRanges<'a> {
    tables: &'a Wide,
    shift: u32,
}

impl Ranges for WideRanges<'_> {
    #[inline(always)]
    fn direct(&self, addr: u32) -> (bool, Hop) {
        let entry = WideEntry(self.tables.lookup[(addr >> self.shift) as usize]);
        (entry.size() == 0, hop(entry.position()))
    }

    #[inline(always)]
    fn begin(&self, addr: u32) -> Lane {
        let entry = WideEntry(self.tables.lookup[(addr >> self.shift) as usize]);
        let key = addr & ((1 << self.shift) - 1);
        let (at, size) = (entry.position() as usize, entry.size() as usize);
        Lane { at, size, scale: 0, bits: 0xffff, key }
    }

    #[inline(always)]
    fn load(&self, at: usize) -> u32 {
        self.tables.starts[at].into()
    }

    #[inline(always)]
    fn hop(&self, lane: &Lane) -> Hop {
        hop(self.tables.codes[lane.at])
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use core::arch::x86_64::*;

    use fibula_core::Hop;

    use super::super::Compact;
    use super::super::format::{Entry, LONG_CODE_MAX, POSITION_BITS, SHORT_CODE_MAX, SIZE_BITS};

    /// Keys of a vector.
    const WIDTH: usize = 16;
    /// Vectors of searches side by side: one alone would wait for its gathers, and more than three
    /// gain nothing more.
    const VECTORS: usize = 3;
    const GROUP: usize = WIDTH * VECTORS;

    /// Addresses that wait to be searched, with their entries and their places in the batch.
    struct Pending {
        count: usize,
        addrs: [u32; GROUP + WIDTH],
        entries: [u32; GROUP + WIDTH],
        places: [u32; GROUP + WIDTH],
    }

    #[target_feature(enable = "avx512f,popcnt")]
    pub(super) fn lookup_batch(tables: &Compact, shift: u32, addrs: &[u32], hops: &mut [Hop]) {
        // Places are 32 bits wide.
        for (addrs, hops) in addrs.chunks(1 << 20).zip(hops.chunks_mut(1 << 20)) {
            block(tables, shift, addrs, hops);
        }
    }

    #[target_feature(enable = "avx512f,popcnt")]
    fn block(tables: &Compact, shift: u32, addrs: &[u32], hops: &mut [Hop]) {
        let hops = &mut hops[..addrs.len()];
        let waiting = [0; GROUP + WIDTH];
        let mut pending = Pending { count: 0, addrs: waiting, entries: waiting, places: waiting };
        let mut place = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        for begin in (0..addrs.len()).step_by(WIDTH) {
            let (addrs, out) = (&addrs[begin..], &mut hops[begin..]);
            let mask = mask_of(addrs.len());
            // SAFETY: the mask covers no more than the elements that are left in `addrs`.
            let addr = unsafe { _mm512_maskz_loadu_epi32(mask, addrs.as_ptr().cast()) };
            let chunk = shift_right(addr, shift);
            // SAFETY: the lookup table has 2^k entries, and `chunk` is the first k bits of an address.
            let entry =
                unsafe { _mm512_i32gather_epi32::<4>(chunk, tables.lookup.as_ptr().cast()) };
            let hop = _mm512_sub_epi32(entry, splat(1));
            // SAFETY: `out` is as long as `addrs`; a `Hop` is a `u32`.
            unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr().cast(), mask, hop) };
            let waits = _mm512_mask_cmpge_epu32_mask(mask, entry, splat(Entry::DIRECT_END));
            let at = pending.count;
            store(&mut pending.addrs[at..], _mm512_maskz_compress_epi32(waits, addr));
            store(&mut pending.entries[at..], _mm512_maskz_compress_epi32(waits, entry));
            store(&mut pending.places[at..], _mm512_maskz_compress_epi32(waits, place));
            place = _mm512_add_epi32(place, splat(WIDTH as u32));
            pending.count += waits.count_ones() as usize;
            if pending.count >= GROUP {
                search::<VECTORS>(tables, shift, &pending, hops);
                pending.count -= GROUP;
                pending.addrs.copy_within(GROUP.., 0);
                pending.entries.copy_within(GROUP.., 0);
                pending.places.copy_within(GROUP.., 0);
            }
        }
        match pending.count.div_ceil(WIDTH) {
            0 => {}
            1 => search::<1>(tables, shift, &pending, hops),
            2 => search::<2>(tables, shift, &pending, hops),
            _ => search::<VECTORS>(tables, shift, &pending, hops),
        }
    }

    /// Searches the chunks of the first `V` vectors of addresses that wait. Lanes beyond those that wait hold addresses
    /// of an earlier group, or nothing (an entry of zeros); their answers are dropped.
    #[target_feature(enable = "avx512f")]
    fn search<const V: usize>(tables: &Compact, shift: u32, pending: &Pending, hops: &mut [Hop]) {
        let mut lanes: [Lanes; V] = core::array::from_fn(|v| {
            let addr = load(&pending.addrs[v * WIDTH..]);
            let entry = load(&pending.entries[v * WIDTH..]);
            Lanes::begin(addr, entry, shift, tables.grain)
        });
        while lanes.iter().any(|lane| lane.searching()) {
            for lane in &mut lanes {
                lane.step(&tables.ranges);
            }
        }
        let mut answers = [[0; WIDTH]; V];
        for (lane, answers) in lanes.iter().zip(&mut answers) {
            store(answers, lane.hops(&tables.ranges));
        }
        let answers = answers.as_flattened();
        for (&place, &answer) in pending.places.iter().zip(answers).take(pending.count) {
            hops[place as usize] = Hop::from_bits(answer);
        }
    }

    /// Sixteen searches under way.
    struct Lanes {
        /// Byte offset, in the range table, of the entry that is the best so far.
        at: __m512i,
        /// How many entries from there the answer is among.
        size: __m512i,
        /// log2 of the bytes of an entry.
        scale: __m512i,
        /// The bits of an entry in a loaded word.
        bits: __m512i,
        key: __m512i,
    }

    impl Lanes {
        #[target_feature(enable = "avx512f")]
        fn begin(addr: __m512i, entry: __m512i, shift: u32, grain: u32) -> Self {
            let long = _mm512_cmplt_epi32_mask(entry, _mm512_setzero_si512());
            let local = _mm512_and_si512(addr, splat((1 << shift) - 1));
            let short_key = _mm512_or_si512(local, splat(SHORT_CODE_MAX));
            let long_key = _mm512_or_si512(_mm512_slli_epi32::<16>(local), splat(LONG_CODE_MAX));
            let position = _mm512_and_si512(entry, splat(Entry::DIRECT_END - 1));
            let size = _mm512_srli_epi32::<POSITION_BITS>(entry);
            let size = _mm512_and_si512(size, splat((1 << SIZE_BITS) - 1));
            Self {
                at: shift_left(position, grain + 2),
                size: shift_left(size, grain),
                scale: _mm512_mask_blend_epi32(long, splat(1), splat(2)),
                bits: _mm512_mask_blend_epi32(long, splat(0xffff), splat(u32::MAX)),
                key: _mm512_mask_blend_epi32(long, short_key, long_key),
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn searching(&self) -> bool {
            _mm512_cmpgt_epu32_mask(self.size, splat(1)) != 0
        }

        /// One step of bisection; a lane that is done compares its entry once more and stays.
        #[inline]
        #[target_feature(enable = "avx512f")]
        fn step(&mut self, ranges: &[u32]) {
            let half = _mm512_srli_epi32::<1>(self.size);
            let middle = _mm512_add_epi32(self.at, _mm512_sllv_epi32(half, self.scale));
            let entry = _mm512_and_si512(self.gather(ranges, middle), self.bits);
            let before = _mm512_cmple_epu32_mask(entry, self.key);
            self.at = _mm512_mask_mov_epi32(self.at, before, middle);
            self.size = _mm512_sub_epi32(self.size, half);
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn hops(&self, ranges: &[u32]) -> __m512i {
            let entry = self.gather(ranges, self.at);
            // The hop is the low 8 bits of a 2-byte entry, the low 16 of a 4-byte one.
            let code = _mm512_and_si512(
                entry,
                _mm512_srlv_epi32(self.bits, _mm512_sllv_epi32(splat(4), self.scale)),
            );
            _mm512_sub_epi32(code, splat(1))
        }

        #[inline]
        #[target_feature(enable = "avx512f")]
        fn gather(&self, ranges: &[u32], at: __m512i) -> __m512i {
            // SAFETY: `at` lies in the lane's chunk, which `build` placed, or `load` found to lie,
            // inside the range table and before its guard word; so the 4 bytes that are read, 2 of
            // them maybe beyond a short entry, lie in the table. A lane of zeros reads word 0, which
            // is there: it is the guard if nothing else.
            unsafe { _mm512_i32gather_epi32::<1>(at, ranges.as_ptr().cast()) }
        }
    }

    /// The first `len` lanes, 16 at most.
    fn mask_of(len: usize) -> __mmask16 {
        if len >= WIDTH { !0 } else { (1 << len) - 1 }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn splat(value: u32) -> __m512i {
        _mm512_set1_epi32(value.cast_signed())
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shift_right(vector: __m512i, bits: u32) -> __m512i {
        _mm512_srl_epi32(vector, _mm_cvtsi32_si128(bits.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn shift_left(vector: __m512i, bits: u32) -> __m512i {
        _mm512_sll_epi32(vector, _mm_cvtsi32_si128(bits.cast_signed()))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn load(from: &[u32]) -> __m512i {
        let from: &[u32; WIDTH] = from[..WIDTH].try_into().expect("sixteen elements");
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn store(to: &mut [u32], vector: __m512i) {
        let to: &mut [u32; WIDTH] = (&mut to[..WIDTH]).try_into().expect("sixteen elements");
        // SAFETY: the array has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) };
    }
}
