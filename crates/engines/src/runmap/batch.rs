use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Level, Simd, prefetch_read, prefetch_read_l2};

use super::long::{Escaped, MOST, MostlyLong, code_of};
use super::lookup::One;
use super::record::{Leaf, ROOT_BITS, ROOT_WORDS};
use super::{Tables, trains};
use crate::common::hop as hop_of;

// The shape of the loop, and the alternatives that were measured (Zen 4, 3.65 GHz, 900,000 prefixes,
// 256 hops, 16-bit values, 3.8 MiB, Mlps for RND / PFX / ZIPF; `docs/engines/runmap-notes.md` has more):
//
// - Stages of 64 lookups: first all root words and prefetches of records, then all records: 470 / 418 / 477.
//   A stage of prefetches followed by one of arithmetic: each leaves half of the core idle.
// - Reading the records of one stage together with the root words of the next, lookup by lookup:
//   518 / 451 / 473. Stages of 128: 488 / 377 / 444.
// - The loops must stay scalar: gathers are slow on this machine, and LLVM would use them.
// - Codes become hops, and escapes are detected, one stage later: a vector load of values that were just
//   stored one by one has to wait until all of them have reached the cache.

/// Fewer addresses are looked up one after the other: the machine overlaps them.
const ALONE: usize = 8;
/// Lookups per iteration.
const WIDTH: usize = 4;
/// Iterations of a stage.
const STAGE: usize = 16;
/// The same for large tables, whose records take longer to arrive.
const FAR_STAGE: usize = 32;
/// From this size on a table is large, and the second lines of its records are prefetched, too.
const FAR: usize = 8 << 20;
/// Iterations whose keys share a cache line, which is prefetched once.
const GROUP: usize = 4;
/// How far ahead keys are prefetched. Most batches are parts of a longer array, so prefetching continues
/// beyond the end of the batch; prefetching memory that is not mapped is harmless.
const AHEAD: usize = 4096 / size_of::<u32>();

/// The elements that lookups write: first the stored code, later the hop.
pub(super) trait Answer: Copy {
    /// Converts a code to this type, and back.
    fn of(code: u32) -> Self;
    fn code(self) -> u32;
    /// The hop of a code.
    fn hop(self) -> Self;

    /// Whether this is the hop of an escape.
    #[inline(always)]
    fn is_escape<V: Leaf>(self) -> bool {
        self.code() >= V::ESCAPE
    }
}

impl Answer for Hop {
    #[inline(always)]
    fn of(code: u32) -> Self {
        Self::from_bits(code)
    }
    #[inline(always)]
    fn code(self) -> u32 {
        self.to_bits()
    }
    #[inline(always)]
    fn hop(self) -> Self {
        hop_of(self.to_bits())
    }
}

/// For hops below 65,535: [`Lookup::lookup_batch16`](fibula_core::Lookup::lookup_batch16).
impl Answer for u16 {
    #[inline(always)]
    fn of(code: u32) -> Self {
        code as Self
    }
    #[inline(always)]
    fn code(self) -> u32 {
        self.into()
    }
    #[inline(always)]
    fn hop(self) -> Self {
        self.wrapping_sub(1)
    }
}

pub(super) fn lookup_batch<V: Leaf, A: Answer>(
    tables: &Tables<V>,
    level: Level,
    addrs: &[u32],
    hops: &mut [A],
) {
    if level.isa() == Isa::Avx512 && trains::come(addrs) {
        trains::look_up(level, addrs, hops, |addrs, hops| look_up(tables, level, addrs, hops));
    } else {
        look_up(tables, level, addrs, hops);
    }
}

fn look_up<V: Leaf, A: Answer>(tables: &Tables<V>, level: Level, addrs: &[u32], hops: &mut [A]) {
    if addrs.len() < ALONE {
        level.run(Few { tables, addrs, hops });
    } else if tables.mostly_long {
        level.run(MostlyLong { tables, addrs, hops });
    } else if tables.records.len() < FAR {
        level.run(Batch::<V, A, STAGE> { tables, level, addrs, hops });
    } else {
        level.run(Batch::<V, A, FAR_STAGE> { tables, level, addrs, hops });
    }
}

/// Looks up addresses one after the other.
struct Few<'a, V: Leaf, A> {
    tables: &'a Tables<V>,
    addrs: &'a [u32],
    hops: &'a mut [A],
}

impl<V: Leaf, A: Answer> Kernel for Few<'_, V, A> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (&addr, hop) in self.addrs.iter().zip(self.hops) {
            *hop = A::of(One { tables: self.tables, addr }.run(simd).to_bits());
        }
    }
}

struct Batch<'a, V: Leaf, A, const N: usize> {
    tables: &'a Tables<V>,
    level: Level,
    addrs: &'a [u32],
    hops: &'a mut [A],
}

impl<V: Leaf, A: Answer, const N: usize> Kernel for Batch<'_, V, A, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let search = RunSearch::<V, N>::new(self.tables, self.level);
        let mut places = [[0; WIDTH]; N];
        let (addrs, addrs_rest) = self.addrs.as_chunks::<WIDTH>();
        let (hops, hops_rest) = self.hops.as_chunks_mut::<WIDTH>();
        let (stages, addrs) = addrs.as_chunks::<N>();
        let (hop_stages, hops) = hops.as_chunks_mut::<N>();
        if let Some(first) = stages.first() {
            search.ask(first, &mut places);
        }
        for (at, addrs) in stages.iter().enumerate() {
            match stages.get(at + 1) {
                Some(next) => search.turn(addrs, next, &mut places, &mut hop_stages[at]),
                None => search.answer(addrs, &places, &mut hop_stages[at]),
            }
            if at > 0 {
                search.finish(&stages[at - 1], &mut hop_stages[at - 1]);
            }
        }
        if let (Some(addrs), Some(hops)) = (stages.last(), hop_stages.last_mut()) {
            search.finish(addrs, hops);
        }
        if !addrs.is_empty() {
            search.stage(addrs, &mut places, hops);
        }
        Few { tables: self.tables, addrs: addrs_rest, hops: hops_rest }.run(simd);
    }
}

/// The places of the records of a stage.
type RecordOffsets<const N: usize> = [[u32; WIDTH]; N];

struct RunSearch<'a, V: Leaf, const N: usize> {
    tables: &'a Tables<V>,
    level: Level,
    root: &'a [u32; ROOT_WORDS],
    records: &'a [u8],
}

impl<'a, V: Leaf, const N: usize> RunSearch<'a, V, N> {
    #[inline(always)]
    fn new(tables: &'a Tables<V>, level: Level) -> Self {
        let root = tables.root().first_chunk().expect("a word for each block");
        Self { tables, level, root, records: &tables.records }
    }

    /// Looks up the addresses of one stage, or fewer.
    #[inline(always)]
    fn stage<A: Answer>(
        &self,
        addrs: &[[u32; WIDTH]],
        places: &mut RecordOffsets<N>,
        hops: &mut [[A; WIDTH]],
    ) {
        self.ask(addrs, places);
        self.answer(addrs, places, hops);
        self.finish(addrs, hops);
    }

    /// Reads the records of a stage and prefetches those of the next one.
    #[inline(always)]
    fn turn<A: Answer>(
        &self,
        addrs: &[[u32; WIDTH]; N],
        next: &[[u32; WIDTH]; N],
        places: &mut RecordOffsets<N>,
        hops: &mut [[A; WIDTH]; N],
    ) {
        for addrs in next.chunks(GROUP) {
            prefetch_read(addrs, AHEAD / WIDTH);
        }
        for (((addrs, next), places), hops) in addrs.iter().zip(next).zip(places).zip(hops) {
            for (((&addr, next), place), hop) in addrs.iter().zip(next).zip(places).zip(hops) {
                *hop = A::of(self.code(addr, place));
                *place = self.locate(*next);
            }
        }
    }

    /// Reads the root words and prefetches the records.
    #[inline(always)]
    fn ask(&self, addrs: &[[u32; WIDTH]], places: &mut RecordOffsets<N>) {
        for addrs in addrs.chunks(GROUP) {
            prefetch_read(addrs, AHEAD / WIDTH);
        }
        for (addrs, places) in addrs.iter().zip(places) {
            for (&addr, place) in addrs.iter().zip(places) {
                *place = self.locate(addr);
            }
        }
    }

    /// Returns the place of an address's record, and prefetches the record.
    #[inline(always)]
    fn locate(&self, addr: u32) -> u32 {
        let place = self.root[(addr >> (32 - ROOT_BITS)) as usize];
        if N == FAR_STAGE {
            // For one lookup in five, the value lies in the second line.
            prefetch_read_l2(self.records, place as usize);
            prefetch_read_l2(self.records, place as usize + 64);
        } else {
            prefetch_read(self.records, place as usize);
        }
        place
    }

    /// Reads the codes from the records; [`finish`](Self::finish) turns them into hops.
    #[inline(always)]
    fn answer<A: Answer>(
        &self,
        addrs: &[[u32; WIDTH]],
        places: &RecordOffsets<N>,
        hops: &mut [[A; WIDTH]],
    ) {
        for ((addrs, places), hops) in addrs.iter().zip(places).zip(hops) {
            for ((&addr, place), hop) in addrs.iter().zip(places).zip(hops) {
                *hop = A::of(self.code(addr, place));
            }
        }
    }

    #[inline(always)]
    fn code(&self, addr: u32, place: &u32) -> u32 {
        // SAFETY: the place is a root word.
        unsafe { code_of::<V>(self.records, place, addr) }
    }

    /// Turns the codes of a stage into hops. One branch decides for the whole stage whether there are escapes; these
    /// are looked up in stages of their own.
    #[inline(always)]
    fn finish<A: Answer>(&self, addrs: &[[u32; WIDTH]], hops: &mut [[A; WIDTH]]) {
        let hops = hops.as_flattened_mut();
        if hops.iter().fold(false, |any, hop| any | hop.is_escape::<V>()) {
            self.escaped(addrs.as_flattened(), hops);
        } else {
            hops.iter_mut().for_each(|hop| *hop = hop.hop());
        }
    }

    #[cold]
    fn escaped<A: Answer>(&self, addrs: &[u32], hops: &mut [A]) {
        for (addrs, hops) in addrs.chunks(MOST).zip(hops.chunks_mut(MOST)) {
            self.level.run(Escaped { tables: self.tables, addrs, hops });
        }
    }
}
