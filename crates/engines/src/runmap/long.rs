//! Lookups in batches of addresses whose value is the escape.

use fibula_simd::{Kernel, Simd, prefetch_read};

use super::Tables;
use super::batch::Answer;
use super::record::{LONG_HEAD, LONG_MAP, Leaf, ROOT_BITS, ROOT_WORDS};

/// Looks up those that are escaped among some lookups that have been finished: a loop of its own, away
/// from the one that it would slow down. Each step is done for all of them before the next.
pub(super) struct Escaped<'a, V: Leaf, A> {
    pub(super) tables: &'a Tables<V>,
    pub(super) addrs: &'a [u32],
    pub(super) hops: &'a mut [A],
}

/// Lookups among which escaped ones are looked for, at most.
pub(super) const MOST: usize = 64;

impl<V: Leaf, A: Answer> Kernel for Escaped<'_, V, A> {
    type Output = ();

    // SIMD would gather; see `batch.rs`.
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
            // SAFETY: this escape is a value of the record, so in front of the record lie the places of as many
            // network records and one more (invariant of the module; `load` checks it).
            let place = unsafe {
                let front = bytes.as_ptr().add(record).cast::<u32>();
                front.sub(number + 1).read_unaligned()
            };
            prefetch_read(bytes, place as usize);
            places[at] = place;
        }
        for at in 0..count {
            let addr = addr(which[at]);
            let word = (addr >> 6 & 3) as usize;
            // SAFETY: a network's record lies at the place with its bitmap, the counts behind it, and a code for each
            // set bit (invariant of the module). Its last bit is set, so the count is 1 at least. The
            // read of the place is volatile as in `batch.rs`.
            let code = unsafe {
                let place = std::ptr::from_ref(&places[at]).read_volatile() as usize;
                let record = bytes.as_ptr().add(place);
                let map = record.cast::<u64>().add(word).read_unaligned();
                let behind = usize::from(record.add(LONG_MAP + word).read());
                let count = map.wrapping_shr(addr).count_ones() as usize + behind;
                record.add(LONG_HEAD - 4).cast::<u32>().add(count).read_unaligned()
            };
            // SAFETY: as for `addr`; there are as many hops.
            unsafe { *hops.get_unchecked_mut(usize::from(which[at])) = A::of(code) };
        }
        hops.iter_mut().for_each(|hop| *hop = hop.hop());
    }
}
