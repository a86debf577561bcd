//! Batch lookups of addresses whose value is an escape.

use fibula_simd::{Kernel, Simd, prefetch_read};

use super::Tables;
use super::batch::Answer;
use super::record::{LONG_HEAD, LONG_MAP, Leaf, MAP, ROOT_BITS, ROOT_WORDS};

/// Finishes the escaped lookups of a stage in a separate loop, because it would slow the main loop down.
/// Each step is executed for all of them before the next one.
pub(super) struct Escaped<'a, V: Leaf, A> {
    pub(super) tables: &'a Tables<V>,
    pub(super) addrs: &'a [u32],
    pub(super) hops: &'a mut [A],
}

/// The most lookups of one stage of these kernels.
pub(super) const MOST: usize = 64;

impl<V: Leaf, A: Answer> Kernel for Escaped<'_, V, A> {
    type Output = ();

    // Vector code would gather; see `batch.rs`.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { tables, addrs, hops } = self;
        assert!(addrs.len() <= MOST && addrs.len() == hops.len());
        let root: &[u32; ROOT_WORDS] = tables.root().first_chunk().expect("a word for each block");
        let bytes = &tables.records[..];
        let mut which = [0u8; MOST];
        let mut count = 0;
        for (i, &hop) in hops.iter().enumerate() {
            which[count & (MOST - 1)] = i as u8;
            count += usize::from(hop.is_escape::<V>());
        }
        let which = &which[..count];
        // SAFETY: the lookups in `which` are among the addresses.
        let addr = |i: u8| unsafe { *addrs.get_unchecked(usize::from(i)) };
        let mut places = [0u32; MOST];
        for at in 0..count {
            let addr = addr(which[at]);
            let record = root[(addr >> (32 - ROOT_BITS)) as usize] as usize;
            // SAFETY: as for `addr`; there are as many hops.
            let hop = unsafe { *hops.get_unchecked(usize::from(which[at])) };
            let number = (hop.code() - V::ESCAPE) as usize;
            // SAFETY: this escape is a value of the record, so the places of at least as many network records as its
            // number, and one more, precede the record (invariant of the module; `load` checks it).
            let place = unsafe {
                let front = bytes.as_ptr().add(record).cast::<u32>();
                front.sub(number + 1).read_unaligned()
            };
            prefetch_read(bytes, place as usize);
            places[at] = place;
        }
        for at in 0..count {
            let addr = addr(which[at]);
            // SAFETY: the place belongs to an escape of a record.
            let code = unsafe { network_code(bytes, &places[at], addr) };
            // SAFETY: as for `addr`; there are as many hops.
            unsafe { *hops.get_unchecked_mut(usize::from(which[at])) = A::of(code) };
        }
        hops.iter_mut().for_each(|hop| *hop = hop.hop());
    }
}

/// Batches on tables with many escapes: all lookups of a stage read a network record; those without an escape read
/// the root instead, and ignore the result. No branch depends on the addresses.
pub(super) struct MostlyLong<'a, V: Leaf, A> {
    pub(super) tables: &'a Tables<V>,
    pub(super) addrs: &'a [u32],
    pub(super) hops: &'a mut [A],
}

impl<V: Leaf, A: Answer> Kernel for MostlyLong<'_, V, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let root: &[u32; ROOT_WORDS] =
            self.tables.root().first_chunk().expect("a word for each block");
        let bytes = &self.tables.records[..];
        let (mut places, mut next_places) = ([0u32; MOST], [0u32; MOST]);
        let ask = |addr: u32| {
            let place = root[(addr >> (32 - ROOT_BITS)) as usize];
            prefetch_read(bytes, place as usize);
            place
        };
        let first = &self.addrs[..self.addrs.len().min(MOST)];
        first.iter().zip(&mut next_places).for_each(|(&addr, place)| *place = ask(addr));
        for (at, hops) in self.hops.chunks_mut(MOST).enumerate() {
            let (addrs, next) = self.addrs[at * MOST..].split_at(hops.len());
            for (i, hop) in hops.iter_mut().enumerate() {
                let place = &mut next_places[i];
                // SAFETY: the place is a root word.
                let code = unsafe { code_of::<V>(bytes, place, addrs[i]) };
                *hop = A::of(code);
                // All ones for an escape, else 0. Without an escape the network record's place becomes 0, the start of
                // the root.
                let escape = 0u32.wrapping_sub(u32::from(code >= V::ESCAPE));
                let back = code.wrapping_sub(V::ESCAPE - 1).wrapping_mul(4) & escape;
                // SAFETY: a record with an escape is preceded by as many places as the escape's number, and one more.
                // Without an escape this reads the record's bitmap.
                let network = unsafe {
                    bytes.as_ptr().add((*place - back) as usize).cast::<u32>().read_unaligned()
                };
                places[i] = network & escape;
                prefetch_read(bytes, places[i] as usize);
                if let Some(&addr) = next.get(i) {
                    *place = ask(addr);
                }
            }
            for ((&addr, place), hop) in addrs.iter().zip(&places).zip(hops) {
                // SAFETY: the place belongs to an escape of a record, or is 0, where all reads stay in the root with
                // any words.
                let code = unsafe { network_code(bytes, place, addr) };
                *hop = A::of(if *place == 0 { hop.code() } else { code }).hop();
            }
        }
    }
}

/// The code of an address in the record at this place.
///
/// # Safety
/// The place is the root word of the address.
#[inline(always)]
pub(super) unsafe fn code_of<V: Leaf>(bytes: &[u8], place: &u32, addr: u32) -> u32 {
    // SAFETY: a reference is readable. The read is volatile so that the surrounding loop stays scalar.
    // Otherwise the compiler gathers the bitmaps, counts their bits by shuffles, and extracts the
    // counts again to read the values, at half the rate.
    let at = unsafe { std::ptr::from_ref(place).read_volatile() } as usize;
    let bytes = bytes.as_ptr();
    // SAFETY: a root word is the place of a record, which lies in the table with its bitmap and
    // a value for each set bit (invariant of the module; `load` checks it). The last bit is
    // always set, so the count is at least 1 and at most the number of values.
    unsafe {
        let map = bytes.add(at).cast::<u64>().read_unaligned();
        let count = map.wrapping_shr(addr >> 8).count_ones() as usize;
        let values = bytes.add(at + MAP).wrapping_sub(size_of::<V>()).cast::<V>();
        values.wrapping_add(count).read_unaligned().into()
    }
}

/// The code of an address in the network record at this place.
///
/// # Safety
/// A network record lies at the place with all its codes, or so many bytes of the table follow the place that a record
/// with 256 codes more than its bitmap has bits would fit.
#[inline(always)]
unsafe fn network_code(bytes: &[u8], place: &u32, addr: u32) -> u32 {
    // SAFETY: the record has a code for each set bit, and its last bit is set, so the count is at least 1 (invariant of
    // the module; `load` checks it). The read of the place is volatile for the same reason as above.
    unsafe {
        let place = std::ptr::from_ref(place).read_volatile() as usize;
        let record = bytes.as_ptr().add(place);
        let word = (addr >> 6 & 3) as usize;
        let map = record.cast::<u64>().add(word).read_unaligned();
        let behind = usize::from(record.add(LONG_MAP + word).read());
        let count = map.wrapping_shr(addr).count_ones() as usize + behind;
        record.add(LONG_HEAD - 4).cast::<u32>().add(count).read_unaligned()
    }
}
