//! The search: packets in the lanes of a vector while there are many, subtables when few are left.

mod groups;
mod lanes;
mod live;
mod plan;

use fibula_simd::{Kernel, Lanes, Simd};

use super::{Exact, Parts, Search};
use crate::WORDS;
use crate::batch::{Batch, STRIDE};
use crate::hash::Hashed;
use crate::subtable::{Subtable, filter_bits};
use lanes::{UNROLL, hash_all};
use live::{Live, ROWS};
use plan::{FEW, few};

pub(crate) use lanes::Hashes;
pub(crate) use plan::Plan;

/// Buffers for intermediate results.
#[derive(Clone, Debug)]
pub(crate) struct Scratch {
    /// The columns of packets that were packed.
    columns: Vec<u64>,
    /// The packets in them.
    packets: Vec<u64>,
    hashes: Vec<u64>,
    /// For each row the place of its word in the filters, and its bits there.
    tests: [Vec<u64>; 2],
    /// Packets that subtables in the lanes are searched for.
    rest: [u32; Batch::MAX],
    /// Packets to be compared at the end.
    pending: Vec<Pending>,
    whole: Vec<u64>,
}

impl Default for Scratch {
    fn default() -> Self {
        let room = || vec![0; STRIDE + 8 * UNROLL];
        Self {
            columns: vec![0; WORDS * STRIDE],
            packets: room(),
            hashes: room(),
            tests: [room(), room()],
            rest: [0; Batch::MAX],
            pending: vec![Pending::default(); 2 * Batch::MAX],
            whole: room(),
        }
    }
}

/// The search of a batch.
pub(crate) struct Packed<'a> {
    pub(crate) search: Search<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) parts: Parts,
    pub(crate) scratch: &'a mut Scratch,
}

impl Kernel for Packed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { search, plan, parts, scratch } = self;
        let mut run = Run {
            simd,
            rows: search.batch.len(),
            left: search.batch.len(),
            live: Live::first(search.batch.len()),
            is_packed: false,
            pending: 0,
            search,
            plan,
            parts,
            scratch,
        };
        run.exact();
        let mut rank = 0;
        let tables = run.search.order.len();
        let few = |rank| match parts.lanes {
            true if rank < plan.dense => FEW,
            true => few(tables - rank),
            false => 0,
        };
        while rank < tables && run.left > few(rank) {
            run.table(rank);
            rank += 1;
        }
        if parts.lanes {
            run.last(rank);
        }
        run.settle();
        run.learn();
    }
}

/// A packet that a subtable's filter let pass: it is compared at the end, with all others.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    packet: u32,
    rank: u32,
    hash: u64,
}

/// A search on its way.
struct Run<'a, S> {
    simd: S,
    search: Search<'a>,
    plan: &'a Plan,
    parts: Parts,
    scratch: &'a mut Scratch,
    /// Rows in the columns.
    rows: usize,
    /// Those of them that no filter let pass yet.
    live: Live,
    /// How many these are.
    left: usize,
    /// The columns are the scratch's, not the batch's.
    is_packed: bool,
    /// Packets in the scratch's list.
    pending: usize,
}

impl<'a, S: Simd> Run<'a, S> {
    const N: usize = S::Lanes::<u64>::N;

    /// The packet in a row.
    #[inline(always)]
    fn packet(&self, row: usize) -> usize {
        if self.is_packed { self.scratch.packets[row] as usize } else { row }
    }

    /// The subtable of a rank.
    #[inline(always)]
    fn ranked(&self, rank: usize) -> Option<&'a Subtable> {
        self.search.cache.subtables.get(self.search.order.get(rank)?.at as usize)
    }

    /// A packet passed a filter: prefetches its bucket.
    #[inline(always)]
    fn pend(&mut self, table: &Subtable, packet: usize, rank: usize, hash: u64) {
        table.prefetch(hash as u32);
        if let Some(to) = self.scratch.pending.get_mut(self.pending) {
            *to = Pending { packet: packet as u32, rank: rank as u32, hash };
            self.pending += 1;
        }
    }

    /// Compares all that pend. The few that a filter should not have let pass are searched for behind it.
    #[inline(always)]
    fn settle(&mut self) {
        while self.pending > 0 {
            // In two passes, so that the records of many are on their way together.
            let end = self.pending;
            for i in 0..end {
                let Pending { rank, hash, .. } = self.scratch.pending[i];
                if let Some(table) = self.ranked(rank as usize) {
                    table.prefetch_record(self.simd, Hashed::of_long(hash));
                }
            }
            for i in 0..end {
                let Pending { packet, rank, hash } = self.scratch.pending[i];
                let (packet, rank) = (packet as usize, rank as usize);
                let Some(table) = self.ranked(rank) else { continue };
                match find(self.simd, table, hash, &self.search.batch.columns, packet) {
                    Some(number) => {
                        self.search.numbers[packet] = number;
                        self.search.order[rank].hits += 1;
                        self.search.counts.hits += 1;
                    }
                    None => self.packet_from(packet, rank + 1),
                }
            }
            // A packet pends once at a time: twice the packets have room.
            self.scratch.pending.copy_within(end..self.pending, 0);
            self.pending -= end;
        }
    }

    /// Whole flows.
    #[inline(always)]
    fn exact(&mut self) {
        let Some(exact) = self.search.exact.as_deref() else { return };
        let (cache, batch) = (self.search.cache, self.search.batch);
        let mut hits = 0;
        for packet in 0..batch.len() {
            let hash = Exact::hash(cache, batch, packet);
            self.scratch.whole[packet] = hash.into();
            if let Some(number) = exact.find(batch, packet, hash) {
                self.search.numbers[packet] = number;
                self.live.remove(packet);
                hits += 1;
            }
        }
        self.left -= hits;
        self.search.counts.exact_hits += hits as u64;
        self.pack();
    }

    /// Adds packets to the exact-match cache that it did not have.
    #[inline(always)]
    fn learn(&mut self) {
        let Some(exact) = self.search.exact.as_deref_mut() else { return };
        let (batch, numbers) = (self.search.batch, &*self.search.numbers);
        for (packet, number) in numbers.iter().enumerate() {
            let hash = self.scratch.whole[packet] as u32;
            if *number != crate::MISS && exact.find(batch, packet, hash).is_none() {
                exact.insert(batch, packet, hash, *number);
            }
        }
    }

    /// Searches for all rows in a subtable.
    #[inline(always)]
    fn table(&mut self, rank: usize) {
        let ranked = self.search.order[rank];
        let Some(table) = self.search.cache.subtables.get(ranked.at as usize) else { return };
        let columns =
            if self.is_packed { &self.scratch.columns } else { &self.search.batch.columns };
        hash_all(self.simd, table, &columns[..WORDS * STRIDE], self.rows, &mut self.scratch.hashes);
        let tried = self.left;
        // Where most packets have their megaflow the filter would let them pass.
        if 2 * ranked.found > ranked.tried || !self.parts.filters {
            self.compare_all(table, rank);
        } else {
            for row in self.filter(table).iter() {
                self.pend(table, self.packet(row), rank, self.scratch.hashes[row]);
                self.live.remove(row);
                self.left -= 1;
            }
        }
        let gone = (tried - self.left) as u64;
        let rank = &mut self.search.order[rank];
        (rank.found, rank.tried) = (rank.found + gone, rank.tried + tried as u64);
        self.search.counts.subtables += tried as u64;
        if gone > 0 {
            self.pack();
        }
    }

    /// Compares all live rows with the megaflows of a subtable.
    #[inline(always)]
    fn compare_all(&mut self, table: &Subtable, rank: usize) {
        for row in self.live.iter() {
            table.prefetch(self.scratch.hashes[row] as u32);
        }
        let tried = self.left;
        for row in self.live.iter() {
            let (hash, packet) = (self.scratch.hashes[row], self.packet(row));
            if let Some(number) = find(self.simd, table, hash, &self.search.batch.columns, packet) {
                self.search.numbers[packet] = number;
                self.live.remove(row);
                self.left -= 1;
            }
        }
        let hits = (tried - self.left) as u64;
        self.search.order[rank].hits += hits;
        self.search.counts.hits += hits;
    }

    /// The live rows that pass a subtable's filter; their hashes are not moved.
    #[inline(always)]
    fn filter(&mut self, table: &Subtable) -> Live {
        let (simd, filters) = (self.simd, &self.search.cache.filters[..]);
        let start = S::Lanes::splat(simd, table.filter.start as u64);
        let len = S::Lanes::splat(simd, table.filter.len as u64);
        let [places, bits] = &mut self.scratch.tests;
        for at in (0..self.rows).step_by(Self::N) {
            let hashes = S::Lanes::load(simd, &self.scratch.hashes, at);
            start.add64(hashes.mul_low(len).srl64(32)).store(places, at);
            filter_bits(hashes).store(bits, at);
        }
        let mut live = self.live;
        let last = filters.len() - 1;
        for (word, from) in live.0.iter_mut().zip((0..self.rows).step_by(64)) {
            let rows = from..self.rows.min(from + 64);
            let tests = places[rows.clone()].iter().zip(&bits[rows]);
            let pass = tests.enumerate().fold(0, |pass, (row, (place, bits))| {
                pass | u64::from(filters[*place as usize & last] & bits == *bits) << row
            });
            *word &= pass;
        }
        live
    }

    /// Moves the rows that are left together, if that saves a quarter of the vectors.
    #[inline(always)]
    fn pack(&mut self) {
        let vectors = |rows: usize| rows.div_ceil(Self::N);
        if 4 * vectors(self.left) > 3 * vectors(self.rows) || !self.parts.packing {
            return;
        }
        let (simd, rows, live) = (self.simd, self.rows, self.live);
        let used = self.search.batch.used;
        let scratch = &mut *self.scratch;
        // Packed in place a vector is written over none that is still to be read.
        let mut n = 0;
        for at in (0..rows).step_by(Self::N) {
            let chosen = live.from(at);
            let from = if self.is_packed { &scratch.packets[..] } else { &ROWS };
            let packets = S::Lanes::load(simd, from, at).pack(chosen);
            packets.store(&mut scratch.packets, n);
            n += S::Lanes::<u64>::count(chosen);
        }
        for word in self.plan.words.iter().copied() {
            let to = &mut scratch.columns[word * STRIDE..][..STRIDE];
            if used >> word & 1 == 0 {
                to[..self.left].fill(0);
                continue;
            }
            let mut n = 0;
            for at in (0..rows).step_by(Self::N) {
                let chosen = live.from(at);
                let words = match self.is_packed {
                    true => S::Lanes::load(simd, to, at),
                    false => S::Lanes::load(simd, &self.search.batch.columns[word * STRIDE..], at),
                };
                words.pack(chosen).store(to, n);
                n += S::Lanes::<u64>::count(chosen);
            }
        }
        self.is_packed = true;
        self.rows = self.left;
        self.live = Live::first(self.left);
    }
}

/// The megaflow of a row in a subtable.
#[inline(always)]
fn find<S: Simd>(simd: S, table: &Subtable, hash: u64, columns: &[u64], row: usize) -> Option<u32> {
    table.find(simd, Hashed::of_long(hash), |record| {
        let words = table.words.iter().zip(record);
        let differ = |differ, ((at, mask), word): ((usize, u64), &u64)| {
            differ | word ^ columns[at * STRIDE + row] & mask
        };
        words.fold(0, differ) == 0
    })
}
