use fibula_core::Hop;
use fibula_simd::{Kernel, Level, Simd, prefetch_read};

use super::Tables;
use super::record::{
    Leaf, MAP, ROOT_BITS, ROOT_WORDS, long_code, long_of, read, root_word, run_of, value,
};
use crate::common::hop as hop_of;

// How the loop is shaped, and what was measured on the way (Zen 4, 3.65 GHz, 900,000 prefixes,
// 256 hops, 16-bit values, 3.8 MiB, Mlps for RND / PFX / ZIPF; `docs/adr/0005-runmap.md` has more):
//
// - Stages of 64 lookups: all root words and requests for records, then all records: 470 / 418 / 477.
//   A stage of requests next to one of arithmetic: each of them leaves half of the core idle.
// - The records of one stage together with the root words of the next, lookup by lookup:
//   518 / 451 / 473. Stages of 128: 488 / 377 / 444.
// - The loops must stay scalar: gathers are slow on this machine, and LLVM would use them.
// - Codes become hops, and escapes are looked for, a stage later: a vector load of what was stored in
//   pieces just now waits until all of it has reached the cache.

/// Lookups an iteration.
const WIDTH: usize = 4;
/// Iterations whose lookups pass through the stages together.
const STAGE: usize = 16;
/// Iterations whose answers are looked through together for escapes.
const GROUP: usize = 4;
/// How far ahead keys are asked for. Batches are most often parts of a longer array, so it does not
/// stop at the batch's end; asking for what is not there is harmless.
const AHEAD: usize = 4096 / size_of::<u32>();

pub(super) fn lookup_batch<V: Leaf>(
    tables: &Tables<V>,
    level: Level,
    addrs: &[u32],
    hops: &mut [Hop],
) {
    level.run(Batch { tables, level, addrs, hops });
}

struct Batch<'a, V: Leaf> {
    tables: &'a Tables<V>,
    level: Level,
    addrs: &'a [u32],
    hops: &'a mut [Hop],
}

impl<V: Leaf> Kernel for Batch<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let search = RunSearch::new(self.tables, self.level);
        let mut places = [[0; WIDTH]; STAGE];
        let (addrs, addrs_rest) = self.addrs.as_chunks::<WIDTH>();
        let (hops, hops_rest) = self.hops.as_chunks_mut::<WIDTH>();
        let (stages, addrs) = addrs.as_chunks::<STAGE>();
        let (hop_stages, hops) = hops.as_chunks_mut::<STAGE>();
        if let Some(first) = stages.first() {
            search.ask(first, &mut places);
        }
        for (at, addrs) in stages.iter().enumerate() {
            match stages.get(at + 1) {
                Some(next) => search.turn(addrs, next, &mut places, &mut hop_stages[at]),
                None => search.answer(addrs, &places, &mut hop_stages[at]),
            }
            if at > 0 {
                search.finish_all(&stages[at - 1], &mut hop_stages[at - 1]);
            }
        }
        if let (Some(addrs), Some(hops)) = (stages.last(), hop_stages.last_mut()) {
            search.finish_all(addrs, hops);
        }
        if !addrs.is_empty() {
            search.stage(addrs, &mut places, hops);
        }
        if !addrs_rest.is_empty() {
            let (mut addrs, mut hops) = ([[0; WIDTH]], [[Hop::NONE; WIDTH]]);
            addrs[0][..addrs_rest.len()].copy_from_slice(addrs_rest);
            search.stage(&addrs, &mut places, &mut hops);
            hops_rest.copy_from_slice(&hops[0][..hops_rest.len()]);
        }
    }
}

/// The places of the records of a stage.
type Places = [[u32; WIDTH]; STAGE];

struct RunSearch<'a, V: Leaf> {
    tables: &'a Tables<V>,
    level: Level,
    root: &'a [u32; ROOT_WORDS],
    records: &'a [u8],
}

impl<'a, V: Leaf> RunSearch<'a, V> {
    #[inline(always)]
    fn new(tables: &'a Tables<V>, level: Level) -> Self {
        let root = tables.root().first_chunk().expect("a word for each block");
        Self { tables, level, root, records: &tables.records }
    }

    /// Looks up as many as go through the stages together, or fewer.
    #[inline(always)]
    fn stage(&self, addrs: &[[u32; WIDTH]], places: &mut Places, hops: &mut [[Hop; WIDTH]]) {
        self.ask(addrs, places);
        self.answer(addrs, places, hops);
        self.finish_all(addrs, hops);
    }

    /// Answers a stage while asking for the records of the next.
    #[inline(always)]
    fn turn(
        &self,
        addrs: &[[u32; WIDTH]; STAGE],
        next: &[[u32; WIDTH]; STAGE],
        places: &mut Places,
        hops: &mut [[Hop; WIDTH]; STAGE],
    ) {
        for addrs in next.chunks(GROUP) {
            prefetch_read(addrs, AHEAD / WIDTH);
        }
        for (((addrs, next), places), hops) in addrs.iter().zip(next).zip(places).zip(hops) {
            for (((&addr, next), place), hop) in addrs.iter().zip(next).zip(places).zip(hops) {
                *hop = Hop::from_bits(self.code(addr, place));
                *place = self.root[(next >> (32 - ROOT_BITS)) as usize];
                prefetch_read(self.records, *place as usize);
            }
        }
    }

    #[inline(always)]
    fn finish_all(&self, addrs: &[[u32; WIDTH]], hops: &mut [[Hop; WIDTH]]) {
        let (groups, addrs) = addrs.as_chunks::<GROUP>();
        let (hop_groups, hops) = hops.as_chunks_mut::<GROUP>();
        for (addrs, hops) in groups.iter().zip(hop_groups) {
            self.finish(addrs.as_flattened(), hops.as_flattened_mut());
        }
        for (addrs, hops) in addrs.iter().zip(hops) {
            self.finish(addrs, hops);
        }
    }

    /// Reads the root and asks for the records.
    #[inline(always)]
    fn ask(&self, addrs: &[[u32; WIDTH]], places: &mut Places) {
        for addrs in addrs.chunks(GROUP) {
            prefetch_read(addrs, AHEAD / WIDTH);
        }
        for (addrs, places) in addrs.iter().zip(places) {
            for (addr, place) in addrs.iter().zip(places) {
                *place = self.root[(addr >> (32 - ROOT_BITS)) as usize];
                prefetch_read(self.records, *place as usize);
            }
        }
    }

    /// Reads the records: codes, which [`finish`](Self::finish) turns into hops.
    #[inline(always)]
    fn answer(&self, addrs: &[[u32; WIDTH]], places: &Places, hops: &mut [[Hop; WIDTH]]) {
        for ((addrs, places), hops) in addrs.iter().zip(places).zip(hops) {
            for ((&addr, place), hop) in addrs.iter().zip(places).zip(hops) {
                *hop = Hop::from_bits(self.code(addr, place));
            }
        }
    }

    #[inline(always)]
    fn code(&self, addr: u32, place: &u32) -> u32 {
        // SAFETY: a reference is readable. The read is volatile so that the loop around stays scalar:
        // left to itself the compiler gathers the bitmaps, counts their bits by shuffles and takes
        // the sums apart again for the values, at half the rate.
        let at = unsafe { std::ptr::from_ref(place).read_volatile() } as usize;
        let bytes = self.records.as_ptr();
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

    /// Turns codes into hops, and looks up the escaped ones singly. They are looked at together, so
    /// that there is one branch for all, seldom taken.
    #[inline(always)]
    fn finish(&self, addrs: &[u32], hops: &mut [Hop]) {
        // With 32-bit codes it may be a hop's too.
        let escaped = hop_of(V::ESCAPE);
        let mut any = false;
        for hop in &mut *hops {
            *hop = hop_of(hop.to_bits());
            any |= *hop == escaped;
        }
        if any {
            self.escaped(addrs, hops);
        }
    }

    #[cold]
    fn escaped(&self, addrs: &[u32], hops: &mut [Hop]) {
        self.level.run(Escaped { tables: self.tables, addrs, hops });
    }
}

/// Looks up those that are escaped among some lookups that have been finished: a loop of its own, away
/// from the one that it would slow down.
struct Escaped<'a, V: Leaf> {
    tables: &'a Tables<V>,
    addrs: &'a [u32],
    hops: &'a mut [Hop],
}

impl<V: Leaf> Kernel for Escaped<'_, V> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let bytes = &self.tables.records[..];
        let mut places = [(0, 0); GROUP * WIDTH];
        let mut escapes = 0;
        for (i, (&addr, hop)) in self.addrs.iter().zip(&*self.hops).enumerate() {
            if *hop == hop_of(V::ESCAPE) {
                let at = root_word(bytes, addr);
                let run = run_of(read(bytes, at), addr);
                // The hop may be a real one.
                if value::<V>(bytes, at, run) == V::ESCAPE {
                    let place = long_of::<V>(bytes, at, run);
                    prefetch_read(bytes, place);
                    places[escapes] = (i, place);
                    escapes += 1;
                }
            }
        }
        for &(i, place) in &places[..escapes] {
            self.hops[i] = hop_of(long_code(bytes, place, self.addrs[i]));
        }
    }
}
