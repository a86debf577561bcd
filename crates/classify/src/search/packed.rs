//! Our form: packets in the lanes of a vector while there are many, subtables when few are left.

use std::hint::black_box;

use fibula_simd::{Kernel, Lanes, Simd};

use super::{Exact, Ranked, Search};
use crate::WORDS;
use crate::batch::{Batch, STRIDE};
use crate::cache::Cache;
use crate::hash::{Hashed, Keys, mix, product};
use crate::subtable::{Subtable, filter_bits};

/// Subtables of a group: one vector of them, or several.
const GROUP: usize = 8;
/// Packets up to which the lanes have subtables, not packets, where a large part of them has its megaflow in the
/// next subtable.
const FEW: usize = 8;

/// The same elsewhere, by the subtables that are left. With packets in the lanes a subtable takes some 50 ns, and
/// 0.8 more for each of the packets, which grow fewer; with subtables in the lanes a packet takes 20 ns for each
/// group of eight, and half of the groups (measured on Zen 4). This is where the two are the same.
const fn few(subtables: usize) -> usize {
    800 * subtables / (7 * subtables + 160)
}
/// Vectors of packets that are hashed at a time.
const UNROLL: usize = 4;

/// A word of a group: of each subtable its mask.
type Lane = [u64; GROUP];

/// The subtables in the order of search, in groups, one subtable a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The words that some mask has.
    words: Vec<usize>,
    keys: Vec<u64>,
    /// For each group and word the masks.
    masks: Vec<Lane>,
    groups: Vec<Group>,
    /// The first so many subtables have each a quarter or more of the hits from there on.
    dense: usize,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    /// What words add to the sum that the subtable's mask does not have, less than nothing.
    base: Lane,
    /// Where the filter begins; without a subtable at the word that lets nothing pass.
    start: Lane,
    /// The words of the filter.
    len: Lane,
}

impl Plan {
    pub(crate) fn new(cache: &Cache, order: &[Ranked]) -> Self {
        let tables: Vec<&Subtable> =
            order.iter().filter_map(|rank| cache.subtables.get(rank.at as usize)).collect();
        let all = tables.iter().fold([0; WORDS], |all: [u64; WORDS], table| {
            std::array::from_fn(|word| all[word] | table.mask.words()[word])
        });
        let words: Vec<usize> = (0..WORDS).filter(|word| all[*word] != 0).collect();
        let keys: &Keys = &cache.keys;
        let mut plan =
            Self { keys: words.iter().map(|word| keys[*word]).collect(), ..Self::default() };
        for tables in tables.chunks(GROUP) {
            let of = |each: &dyn Fn(&Subtable) -> u64| -> Lane {
                std::array::from_fn(|lane| tables.get(lane).map_or(0, |table| each(table)))
            };
            for word in &words {
                plan.masks.push(of(&|table| table.mask.words()[*word]));
            }
            let nothing = |word: &usize| (keys[*word] & 0xffff_ffff) * (keys[*word] >> 32);
            plan.groups.push(Group {
                base: of(&|table| {
                    let others = words.iter().filter(|word| table.mask.words()[**word] == 0);
                    others.fold(0, |sum: u64, word| sum.wrapping_sub(nothing(word)))
                }),
                start: of(&|table| table.filter.start as u64),
                len: of(&|table| table.filter.len as u64),
            });
        }
        plan.words = words;
        let mut rest: u64 = order.iter().map(|rank| rank.hits).sum();
        plan.dense = order
            .iter()
            .take_while(|rank| {
                let is_dense = 4 * rank.hits >= rest;
                rest -= rank.hits;
                is_dense
            })
            .count();
        plan
    }
}

/// Room for what is computed on the way.
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

/// The numbers 0, 1, 2 and so on: the rows of a batch.
static ROWS: [u64; STRIDE] = {
    let (mut rows, mut at) = ([0; STRIDE], 0);
    while at < STRIDE {
        rows[at] = at as u64;
        at += 1;
    }
    rows
};

/// A set of rows.
#[derive(Clone, Copy)]
struct Live([u64; Batch::MAX / 64 + 1]);

impl Live {
    fn first(n: usize) -> Self {
        Self(std::array::from_fn(|i| match n.saturating_sub(64 * i) {
            64.. => u64::MAX,
            n => (1 << n) - 1,
        }))
    }
    #[inline(always)]
    fn remove(&mut self, row: usize) {
        self.0[row / 64] &= !(1 << (row % 64));
    }
    /// Sixteen rows, of which the first is a multiple of the lanes.
    #[inline(always)]
    fn from(&self, row: usize) -> u16 {
        (self.0[row / 64] >> (row % 64)) as u16
    }
    /// Of so many words.
    fn iter(self) -> impl Iterator<Item = usize> {
        (0..).step_by(64).zip(self.0).flat_map(|(first, mut word)| {
            std::iter::from_fn(move || {
                let row = (word != 0).then(|| first + word.trailing_zeros() as usize);
                word &= word.wrapping_sub(1);
                row
            })
        })
    }
}

/// The search of this form.
pub(crate) struct Packed<'a> {
    pub(crate) search: Search<'a>,
    pub(crate) plan: &'a Plan,
    pub(crate) scratch: &'a mut Scratch,
}

impl Kernel for Packed<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { search, plan, scratch } = self;
        let mut run = Run {
            simd,
            rows: search.batch.len(),
            left: search.batch.len(),
            live: Live::first(search.batch.len()),
            is_packed: false,
            pending: 0,
            search,
            plan,
            scratch,
        };
        run.exact();
        let mut rank = 0;
        let tables = run.search.order.len();
        let few = |rank| if rank < plan.dense { FEW } else { few(tables - rank) };
        while rank < tables && run.left > few(rank) {
            run.table(rank);
            rank += 1;
        }
        run.last(rank);
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

    /// A filter let a packet pass: its bucket is asked for.
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

    /// Has the exact-match cache learn what it did not know.
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
        if 2 * ranked.found > ranked.tried {
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

    /// The live rows that a subtable's filter lets pass; their hashes stay where they are.
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
        if 4 * vectors(self.left) > 3 * vectors(self.rows) {
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

    /// Searches for all live rows from a subtable on, a group of them at once, until a filter lets them pass. No
    /// branch depends on a packet.
    #[inline(always)]
    fn last(&mut self, from: usize) {
        let mut rest = 0;
        for row in self.live.iter() {
            self.scratch.rest[rest % Batch::MAX] = self.packet(row) as u32;
            rest += 1;
        }
        for g in from / GROUP..self.plan.groups.len() {
            let first = (g * GROUP).max(from);
            let (begin, mut left) = (self.pending, 0);
            for i in 0..rest {
                let packet = self.scratch.rest[i % Batch::MAX];
                let (pass, hashes) = self.group(packet as usize, g);
                let pass = pass >> (first % GROUP) << (first % GROUP);
                let lane = pass.trailing_zeros() as usize % GROUP;
                let rank = (g * GROUP + lane) as u32;
                if let Some(to) = self.scratch.pending.get_mut(self.pending) {
                    *to = Pending { packet, rank, hash: hashes[lane] };
                }
                self.pending += usize::from(pass != 0);
                self.scratch.rest[left % Batch::MAX] = packet;
                left += usize::from(pass == 0);
            }
            for i in begin..self.pending {
                let Pending { rank, hash, .. } = self.scratch.pending[i];
                self.search.counts.subtables += u64::from(rank) + 1 - first as u64;
                if let Some(table) = self.ranked(rank as usize) {
                    table.prefetch(hash as u32);
                }
            }
            let tables = self.search.order.len().min((g + 1) * GROUP) - first;
            self.search.counts.subtables += (left * tables) as u64;
            rest = left;
            if rest == 0 {
                break;
            }
        }
    }

    /// Searches for a packet from a subtable on, until a filter lets it pass.
    #[inline(always)]
    fn packet_from(&mut self, packet: usize, from: usize) {
        for g in from / GROUP..self.plan.groups.len() {
            let skip = from.saturating_sub(g * GROUP);
            let (pass, hashes) = self.group(packet, g);
            let pass = pass >> skip << skip;
            if pass != 0 {
                let lane = pass.trailing_zeros() as usize % GROUP;
                let rank = g * GROUP + lane;
                self.search.counts.subtables += (rank + 1 - from) as u64;
                if let Some(table) = self.ranked(rank) {
                    self.pend(table, packet, rank, hashes[lane]);
                }
                return;
            }
        }
        self.search.counts.subtables += self.search.order.len().saturating_sub(from) as u64;
    }

    /// Which filters of a group let a packet pass, and its hashes for them.
    #[inline(always)]
    fn group(&self, packet: usize, g: usize) -> (u32, Lane) {
        let (simd, plan) = (self.simd, self.plan);
        let filters = &self.search.cache.filters[..];
        let columns = &self.search.batch.columns[..WORDS * STRIDE];
        let group = &plan.groups[g];
        let masks = &plan.masks[g * plan.words.len()..][..plan.words.len()];
        let (mut pass, mut hashes) = (0u32, [0; GROUP]);
        for at in (0..GROUP).step_by(Self::N) {
            let mut sum = S::Lanes::load(simd, &group.base, at);
            for ((word, key), masks) in plan.words.iter().zip(&plan.keys).zip(masks) {
                let value = S::Lanes::splat(simd, columns[word * STRIDE + packet]);
                let masked = value.and(S::Lanes::load(simd, masks, at));
                sum = sum.add64(product(masked, S::Lanes::splat(simd, *key)));
            }
            let hash = mix(sum);
            hash.store(&mut hashes, at);
            let start = S::Lanes::load(simd, &group.start, at);
            let len = S::Lanes::load(simd, &group.len, at);
            let lanes = u32::from(passes(hash, start, len, filters)) & ((1 << Self::N) - 1);
            pass |= lanes << at;
        }
        (pass, hashes)
    }
}

/// Which lanes' hashes a filter lets pass.
#[inline(always)]
fn passes<V: Lanes<Word = u64>>(hash: V, start: V, len: V, filters: &[u64]) -> u16 {
    let bits = filter_bits(hash);
    let words = start.add64(hash.mul_low(len).srl64(32)).pick(filters);
    words.and(bits).equal(bits)
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

/// Hashes the rows under a subtable's mask.
#[inline(always)]
fn hash_all<S: Simd>(simd: S, table: &Subtable, columns: &[u64], rows: usize, to: &mut [u64]) {
    let lanes = S::Lanes::<u64>::N;
    let mut at = 0;
    while at + UNROLL * lanes <= rows {
        hash::<S, UNROLL>(simd, table, columns, at, to);
        at += UNROLL * lanes;
    }
    while at < rows {
        hash::<S, 1>(simd, table, columns, at, to);
        at += lanes;
    }
}

/// Hashes some vectors of rows.
#[inline(always)]
fn hash<S: Simd, const U: usize>(
    simd: S,
    table: &Subtable,
    columns: &[u64],
    at: usize,
    to: &mut [u64],
) {
    let lanes = S::Lanes::<u64>::N;
    let mut sums = [S::Lanes::splat(simd, 0u64); U];
    for (word, mask, key) in table.words.with_keys() {
        let column = &columns[word * STRIDE..][..STRIDE];
        // One by one: what arrays have for it is not always inlined.
        let (mask, key) = (S::Lanes::splat(simd, mask), S::Lanes::splat(simd, key));
        for (i, sum) in sums.iter_mut().enumerate() {
            let words = S::Lanes::load(simd, column, at + i * lanes);
            *sum = sum.add64(product(words.and(mask), key));
        }
    }
    for (i, sum) in sums.into_iter().enumerate() {
        mix(sum).store(to, at + i * lanes);
    }
}

/// The hashes alone, again and again: what [`steps`](crate::steps) measures.
pub(crate) struct Hashes<'a> {
    pub(crate) cache: &'a Cache,
    pub(crate) batch: &'a Batch,
    pub(crate) visits: &'a [(usize, u32)],
    pub(crate) times: usize,
}

impl Kernel for Hashes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut hashes = [0; STRIDE];
        for _ in 0..self.times {
            for (at, live) in self.visits {
                let Some(table) = self.cache.subtables.get(*at) else { continue };
                let (columns, rows) = (&self.batch.columns, live.count_ones() as usize);
                hash_all(simd, table, columns, rows, &mut hashes);
                black_box(&mut hashes);
            }
        }
    }
}
