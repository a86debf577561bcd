use fibula_core::Hop;
use fibula_simd::{Kernel, Level, Simd, prefetch_read};

use super::Tables;
use super::lookup::One;
use super::record::{ESCAPED, Leaf, MAP, ROOT_BITS, ROOT_WORDS};

/// Lookups that pass through the stages together.
const STAGE: usize = 64;
/// Lookups an iteration.
const WIDTH: usize = 4;
/// Answers that are looked through together for escapes.
const GROUP: usize = 16;
/// How far ahead keys are asked for. Batches are most often parts of a longer array, so it does not
/// stop at the batch's end; asking for what is not there is harmless.
const AHEAD: usize = 4096 / size_of::<u32>();

pub(super) fn lookup_batch<V: Leaf>(
    tables: &Tables<V>,
    level: Level,
    addrs: &[u32],
    hops: &mut [Hop],
) {
    if V::TRANSLATED && !tables.is_identity {
        level.run(Batch::<V, true> { tables, addrs, hops });
    } else {
        level.run(Batch::<V, false> { tables, addrs, hops });
    }
}

struct Batch<'a, V: Leaf, const TRANSLATED: bool> {
    tables: &'a Tables<V>,
    addrs: &'a [u32],
    hops: &'a mut [Hop],
}

impl<V: Leaf, const TRANSLATED: bool> Kernel for Batch<'_, V, TRANSLATED> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let search = Search::<V, S, TRANSLATED>::new(self.tables, simd);
        for (addrs, hops) in self.addrs.chunks(STAGE).zip(self.hops.chunks_mut(STAGE)) {
            search.stage(addrs, hops);
        }
    }
}

struct Search<'a, V: Leaf, S, const TRANSLATED: bool> {
    tables: &'a Tables<V>,
    simd: S,
    root: &'a [u32; ROOT_WORDS],
    hops: &'a [u32; 256],
}

impl<'a, V: Leaf, S: Simd, const TRANSLATED: bool> Search<'a, V, S, TRANSLATED> {
    #[inline(always)]
    fn new(tables: &'a Tables<V>, simd: S) -> Self {
        let root = tables.root().first_chunk().expect("a word for each block");
        let hops = if TRANSLATED {
            tables.hops.first_chunk().expect("a hop for each code")
        } else {
            &[0; 256]
        };
        Self { tables, simd, root, hops }
    }

    #[inline(always)]
    fn stage(&self, addrs: &[u32], hops: &mut [Hop]) {
        let mut places = [0u32; STAGE];
        let places = &mut places[..addrs.len()];
        for addrs in addrs.chunks(GROUP) {
            prefetch_read(addrs, AHEAD);
        }
        self.ask(addrs, places);
        self.answer(addrs, places, hops);
        for (addrs, hops) in addrs.chunks(GROUP).zip(hops.chunks_mut(GROUP)) {
            self.finish(addrs, hops);
        }
    }

    /// Reads the root and asks for the records.
    #[inline(always)]
    fn ask(&self, addrs: &[u32], places: &mut [u32]) {
        let one = |addr: u32, place: &mut u32| {
            *place = self.root[(addr >> (32 - ROOT_BITS)) as usize];
            prefetch_read(&self.tables.records, *place as usize);
        };
        let (places, places_rest) = places.as_chunks_mut::<WIDTH>();
        let (addrs, addrs_rest) = addrs.as_chunks::<WIDTH>();
        for (addrs, places) in addrs.iter().zip(places) {
            addrs.iter().zip(places).for_each(|(&addr, place)| one(addr, place));
        }
        addrs_rest.iter().zip(places_rest).for_each(|(&addr, place)| one(addr, place));
    }

    /// Reads the records: answers, or codes that [`finish`](Self::finish) turns into answers.
    #[inline(always)]
    fn answer(&self, addrs: &[u32], places: &[u32], hops: &mut [Hop]) {
        let one = |addr: u32, place: &u32, hop: &mut Hop| {
            let code = self.code(addr, place);
            *hop = Hop::from_bits(if TRANSLATED { self.hops[code as u8 as usize] } else { code });
        };
        let (addrs, addrs_rest) = addrs.as_chunks::<WIDTH>();
        let (places, places_rest) = places.as_chunks::<WIDTH>();
        let (hops, hops_rest) = hops.as_chunks_mut::<WIDTH>();
        for ((addrs, places), hops) in addrs.iter().zip(places).zip(hops) {
            for ((&addr, place), hop) in addrs.iter().zip(places).zip(hops) {
                one(addr, place, hop);
            }
        }
        for ((&addr, place), hop) in addrs_rest.iter().zip(places_rest).zip(hops_rest) {
            one(addr, place, hop);
        }
    }

    #[inline(always)]
    fn code(&self, addr: u32, place: &u32) -> u32 {
        // SAFETY: a reference is readable. The read is volatile so that the loop around stays scalar:
        // left to itself the compiler gathers the bitmaps, counts their bits by shuffles and takes
        // the sums apart again for the values, at half the rate.
        let at = unsafe { std::ptr::from_ref(place).read_volatile() } as usize;
        let bytes = self.tables.records.as_ptr();
        // SAFETY: a root word is the place of a record, which lies in the table with its bitmap and
        // a value for each set bit (invariant of the module; `load` checks it). The last bit is
        // always set, so the count is 1 at least and the number of values at most.
        unsafe {
            let map = bytes.add(at).cast::<u64>().read_unaligned();
            let count = map.wrapping_shr(addr >> 8).count_ones() as usize;
            let values = bytes.add(at + MAP).wrapping_sub(size_of::<V>()).cast::<V>();
            values.wrapping_add(count).read_unaligned().into()
        }
    }

    /// Turns codes into hops, and looks up the escaped ones singly. Answers are looked at in groups,
    /// so that there is one branch for each, seldom taken.
    #[inline(always)]
    fn finish(&self, addrs: &[u32], hops: &mut [Hop]) {
        let escaped = Hop::from_bits(if TRANSLATED { ESCAPED } else { V::ESCAPE - 1 });
        let mut any = false;
        for hop in &mut *hops {
            if !TRANSLATED {
                *hop = Hop::from_bits(hop.to_bits().wrapping_sub(1));
            }
            any |= *hop == escaped;
        }
        if any {
            for (&addr, hop) in addrs.iter().zip(hops) {
                if *hop == escaped {
                    *hop = One { tables: self.tables, addr }.run(self.simd);
                }
            }
        }
    }
}
