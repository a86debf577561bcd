//! Our form: packets in the lanes of a vector while there are many, subtables when few are left.

use fibula_simd::{Kernel, Lanes, Simd};

use super::{Exact, Ranked, Search};
use crate::WORDS;
use crate::batch::{Batch, STRIDE};
use crate::cache::Cache;
use crate::hash::{Hashed, Keys, mix, product};
use crate::miniflow::bits;
use crate::subtable::{Subtable, filter_bits};

/// Subtables of a group: one vector of them, or several.
const GROUP: usize = 8;
/// Packets up to which the lanes have subtables.
const FEW: usize = 8;
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
    /// Hashes and rows that passed the filter.
    passed: [Vec<u64>; 2],
    whole: Vec<u64>,
}

impl Default for Scratch {
    fn default() -> Self {
        let room = || vec![0; STRIDE + 8 * UNROLL];
        Self {
            columns: vec![0; WORDS * STRIDE],
            packets: room(),
            hashes: room(),
            passed: [room(), room()],
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
            search,
            plan,
            scratch,
        };
        run.exact();
        let mut rank = 0;
        while run.left > FEW && rank < run.search.order.len() {
            run.table(rank);
            rank += 1;
        }
        if run.left > 0 {
            run.last(rank);
        }
        run.learn();
    }
}

/// A search on its way.
struct Run<'a, S> {
    simd: S,
    search: Search<'a>,
    plan: &'a Plan,
    scratch: &'a mut Scratch,
    /// Rows in the columns.
    rows: usize,
    /// Those of them that are searched for.
    live: Live,
    /// How many these are.
    left: usize,
    /// The columns are the scratch's, not the batch's.
    is_packed: bool,
}

impl<S: Simd> Run<'_, S> {
    const N: usize = S::Lanes::<u64>::N;

    #[inline(always)]
    fn columns(&self) -> &[u64] {
        let columns =
            if self.is_packed { &self.scratch.columns } else { &self.search.batch.columns };
        &columns[..WORDS * STRIDE]
    }

    /// The packet in a row.
    #[inline(always)]
    fn packet(&self, row: usize) -> usize {
        if self.is_packed { self.scratch.packets[row] as usize } else { row }
    }

    /// A row has its number.
    #[inline(always)]
    fn found(&mut self, row: usize, number: u32) {
        let packet = self.packet(row);
        self.search.numbers[packet] = number;
        self.live.remove(row);
        self.left -= 1;
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
        let mut at = 0;
        while at + UNROLL * Self::N <= self.rows {
            self.hash::<UNROLL>(table, at);
            at += UNROLL * Self::N;
        }
        while at < self.rows {
            self.hash::<1>(table, at);
            at += Self::N;
        }
        let tried = self.left;
        // Where most packets have their megaflow the filter would let them pass.
        let passed = match 2 * ranked.found > ranked.tried {
            true => self.all(),
            false => self.filter(table),
        };
        for i in 0..passed {
            table.prefetch(self.scratch.passed[0][i] as u32);
        }
        for i in 0..passed {
            let (hash, row) = (self.scratch.passed[0][i], self.scratch.passed[1][i] as usize);
            if let Some(number) = find(self.simd, table, hash, self.columns(), row) {
                self.found(row, number);
            }
        }
        let hits = (tried - self.left) as u64;
        let rank = &mut self.search.order[rank];
        rank.hits += hits;
        (rank.found, rank.tried) = (rank.found + hits, rank.tried + tried as u64);
        self.search.counts.hits += hits;
        self.search.counts.subtables += tried as u64;
        if hits > 0 {
            self.pack();
        }
    }

    /// Hashes some vectors of rows.
    #[inline(always)]
    fn hash<const U: usize>(&mut self, table: &Subtable, at: usize) {
        let mut sums = [S::Lanes::splat(self.simd, 0u64); U];
        let columns = self.columns();
        for (word, mask, key) in table.words.with_keys() {
            let column = &columns[word * STRIDE..][..STRIDE];
            let [mask, key] = [mask, key].map(|number| S::Lanes::splat(self.simd, number));
            for (i, sum) in sums.iter_mut().enumerate() {
                let words = S::Lanes::load(self.simd, column, at + i * Self::N);
                *sum = sum.add64(product(words.and(mask), key));
            }
        }
        for (i, sum) in sums.into_iter().enumerate() {
            mix(sum).store(&mut self.scratch.hashes, at + i * Self::N);
        }
    }

    /// The live rows and their hashes that a subtable's filter lets pass: how many.
    #[inline(always)]
    fn filter(&mut self, table: &Subtable) -> usize {
        let simd = self.simd;
        let [start, len] = [table.filter.start, table.filter.len]
            .map(|number| S::Lanes::splat(simd, number as u64));
        let filters = &self.search.cache.filters[..];
        let mut n = 0;
        for at in (0..self.rows).step_by(Self::N) {
            let hashes = S::Lanes::load(simd, &self.scratch.hashes, at);
            let pass = passes(hashes, start, len, filters) & self.live.from(at);
            n = self.keep(hashes, at, pass, n);
        }
        n
    }

    /// The live rows and their hashes: how many.
    #[inline(always)]
    fn all(&mut self) -> usize {
        let mut n = 0;
        for at in (0..self.rows).step_by(Self::N) {
            let hashes = S::Lanes::load(self.simd, &self.scratch.hashes, at);
            n = self.keep(hashes, at, self.live.from(at), n);
        }
        n
    }

    #[inline(always)]
    fn keep(&mut self, hashes: S::Lanes<u64>, at: usize, chosen: u16, n: usize) -> usize {
        let count = S::Lanes::<u64>::count(chosen);
        if count > 0 {
            let [to_hashes, to_rows] = &mut self.scratch.passed;
            hashes.pack(chosen).store(to_hashes, n);
            S::Lanes::load(self.simd, &ROWS, at).pack(chosen).store(to_rows, n);
        }
        n + count
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

    /// Searches for each row that is left in a group of subtables at once.
    #[inline(always)]
    fn last(&mut self, from: usize) {
        for row in self.live.iter() {
            let tried = self.row(row, from);
            self.search.counts.subtables += tried as u64;
        }
    }

    /// Searches for a row from a subtable on: in how many.
    #[inline(always)]
    fn row(&mut self, row: usize, from: usize) -> usize {
        let (simd, plan) = (self.simd, self.plan);
        let filters = &self.search.cache.filters[..];
        let mut hashes = [0; GROUP];
        let mut tried = 0;
        for g in from / GROUP..plan.groups.len() {
            let group = &plan.groups[g];
            let masks = &plan.masks[g * plan.words.len()..][..plan.words.len()];
            let mut pass = 0u32;
            for at in (0..GROUP).step_by(Self::N) {
                let mut sum = S::Lanes::load(simd, &group.base, at);
                for ((word, key), masks) in plan.words.iter().zip(&plan.keys).zip(masks) {
                    let value = self.columns()[word * STRIDE + row];
                    let [value, key] = [value, *key].map(|number| S::Lanes::splat(simd, number));
                    let masked = value.and(S::Lanes::load(simd, masks, at));
                    sum = sum.add64(product(masked, key));
                }
                let hash = mix(sum);
                hash.store(&mut hashes, at);
                let [start, len] =
                    [&group.start, &group.len].map(|lane| S::Lanes::load(simd, lane, at));
                let lanes = u32::from(passes(hash, start, len, filters)) & ((1 << Self::N) - 1);
                pass |= lanes << at;
            }
            let skip = from.saturating_sub(g * GROUP);
            let tables = GROUP.min(self.search.order.len() - g * GROUP);
            for lane in bits(pass >> skip << skip) {
                let ranked = self.search.order[g * GROUP + lane];
                let Some(table) = self.search.cache.subtables.get(ranked.at as usize) else {
                    continue;
                };
                if let Some(number) = find(simd, table, hashes[lane], self.columns(), row) {
                    self.found(row, number);
                    self.search.order[g * GROUP + lane].hits += 1;
                    self.search.counts.hits += 1;
                    return tried + lane + 1 - skip;
                }
            }
            tried += tables - skip;
        }
        tried
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
