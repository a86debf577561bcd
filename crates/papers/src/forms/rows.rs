//! The forms of Open vSwitch and of the paper: packets one by one, except for their hashes.

use fibula_classify::WORDS;
use fibula_simd::{Kernel, Lanes, Simd};

use super::batch::{BURST, PAIRS, Rows};
use super::hash;
use super::miniflow::{Miniflow, bits, place};
use super::table::{Table, Words};

/// Packets up to which they are hashed one by one: the paper's number.
const THRESHOLD: u32 = 8;

/// How the packets of a burst are hashed.
pub(super) trait Hasher {
    /// Before a burst.
    #[inline(always)]
    fn begin(&mut self, _miniflows: &[Miniflow]) {}

    /// The hashes of the live packets, under a subtable's mask.
    fn hash<S: Simd>(&self, simd: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]);
}

/// Up to 32 packets of a batch.
#[derive(Clone, Copy)]
pub(super) struct Burst<'a> {
    pub(super) miniflows: &'a [Miniflow],
    pub(super) pairs: &'a [u32],
    pub(super) halves: &'a [u32],
    /// A bit for each packet that is still searched for.
    pub(super) live: u32,
}

/// Packet by packet, MurmurHash3.
#[derive(Clone, Copy)]
pub(super) struct Murmur;
/// Packet by packet, CRC32C.
#[derive(Clone, Copy)]
pub(super) struct Crc;
/// A vector of packets, their words gathered from the miniflows.
#[derive(Clone, Copy)]
pub(super) struct Gather;
/// The paper's form.
#[derive(Clone, Copy, Default)]
pub(super) struct Transposed {
    /// The bitmap that most packets of the burst have.
    majority: u16,
    /// The packets with another.
    others: u32,
}

/// The paper's, but columns are those of the flow's words, so that all packets are hashed together.
#[derive(Clone, Copy)]
pub(super) struct Columns;

#[inline(always)]
fn murmur(words: &Words, miniflow: &Miniflow) -> u32 {
    let add = |hash, (at, mask)| hash::murmur_add64(hash, miniflow.get(at) & mask);
    hash::murmur_finish(words.iter().fold(0, add), words.len())
}

impl Hasher for Murmur {
    #[inline(always)]
    fn hash<S: Simd>(&self, _: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]) {
        for packet in bits(burst.live) {
            to[packet] = murmur(words, &burst.miniflows[packet]);
        }
    }
}

impl Hasher for Crc {
    #[inline(always)]
    fn hash<S: Simd>(&self, simd: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]) {
        for packet in bits(burst.live) {
            let miniflow = &burst.miniflows[packet];
            let add = |crc, (at, mask)| simd.crc32c(crc, miniflow.get(at) & mask);
            to[packet] = hash::crc32_finish(simd, words.iter().fold(0, add), words.len());
        }
    }
}

/// The halves of a mask in every lane.
#[inline(always)]
fn masks<S: Simd>(simd: S, mask: u64) -> [S::Lanes<u32>; 2] {
    // One by one: `array::from_fn` and `map` are not always inlined.
    [S::Lanes::splat(simd, mask as u32), S::Lanes::splat(simd, (mask >> 32) as u32)]
}

impl Hasher for Gather {
    #[inline(always)]
    fn hash<S: Simd>(&self, simd: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]) {
        let one = S::Lanes::splat(simd, 1u32);
        for at in (0..burst.miniflows.len()).step_by(S::Lanes::<u32>::N) {
            let mut hash = S::Lanes::splat(simd, 0u32);
            for (word, mask) in words.iter() {
                // Where the packets have the word: each somewhere else.
                let mut places = [0; BURST];
                let packets = burst.miniflows.iter().enumerate().skip(at);
                for (packet, miniflow) in packets.take(S::Lanes::<u32>::N) {
                    let is_there = miniflow.bitmap() >> word & 1 == 1;
                    let place = 2 * place(miniflow.bitmap(), word);
                    let place = if is_there { place } else { PAIRS - 2 };
                    places[packet] = (packet * PAIRS + place) as u32;
                }
                let (places, [low, high]) = (S::Lanes::load(simd, &places, at), masks(simd, mask));
                let first = places.pick(burst.pairs).and(low);
                let second = places.add(one).pick(burst.pairs).and(high);
                hash = hash::murmur_lanes(hash, first, second);
            }
            hash::murmur_lanes_finish(hash, words.len()).store(to, at);
        }
    }
}

impl Hasher for Transposed {
    /// The bitmap of most packets, by counting. A burst has few different ones.
    #[inline(always)]
    fn begin(&mut self, miniflows: &[Miniflow]) {
        let mut rest = u32::MAX >> (BURST - miniflows.len());
        let (mut most, mut majority) = (0, 0);
        while rest.count_ones() > most {
            let bitmap = miniflows[rest.trailing_zeros() as usize].bitmap();
            let same = (0..).zip(miniflows).filter(|(_, miniflow)| miniflow.bitmap() == bitmap);
            let same = same.fold(0u32, |same, (packet, _)| same | 1 << packet);
            if same.count_ones() > most {
                (most, majority, self.others) = (same.count_ones(), bitmap, !same);
            }
            rest &= !same;
        }
        self.majority = majority;
    }

    #[inline(always)]
    fn hash<S: Simd>(&self, simd: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]) {
        if burst.live.count_ones() <= THRESHOLD {
            return Murmur.hash(simd, words, burst, to);
        }
        for at in (0..BURST).step_by(S::Lanes::<u32>::N) {
            let mut hash = S::Lanes::splat(simd, 0u32);
            for (word, mask) in words.iter() {
                let zero = S::Lanes::splat(simd, 0u32);
                let mut halves = [zero; 2];
                if self.majority >> word & 1 == 1 {
                    let start = place(self.majority, word) * 2 * BURST;
                    let column = &burst.halves[start..start + 2 * BURST];
                    let [low, high] = masks(simd, mask);
                    halves = [
                        S::Lanes::load(simd, column, at).and(low),
                        S::Lanes::load(simd, column, BURST + at).and(high),
                    ];
                }
                hash = hash::murmur_lanes(hash, halves[0], halves[1]);
            }
            hash::murmur_lanes_finish(hash, words.len()).store(to, at);
        }
        let others = Burst { live: burst.live & self.others, ..burst };
        Murmur.hash(simd, words, others, to);
    }
}

impl Hasher for Columns {
    #[inline(always)]
    fn hash<S: Simd>(&self, simd: S, words: &Words, burst: Burst<'_>, to: &mut [u32; BURST]) {
        if burst.live.count_ones() <= THRESHOLD {
            return Murmur.hash(simd, words, burst, to);
        }
        for at in (0..BURST).step_by(S::Lanes::<u32>::N) {
            let mut hash = S::Lanes::splat(simd, 0u32);
            for (word, mask) in words.iter() {
                let column = &burst.halves[word * 2 * BURST..][..2 * BURST];
                let [low, high] = masks(simd, mask);
                let low = S::Lanes::load(simd, column, at).and(low);
                let high = S::Lanes::load(simd, column, BURST + at).and(high);
                hash = hash::murmur_lanes(hash, low, high);
            }
            hash::murmur_lanes_finish(hash, words.len()).store(to, at);
        }
    }
}

/// A subtable in the order of search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    /// Its place in the cache.
    pub(super) at: usize,
    /// The recent packets with a megaflow in it.
    pub(super) hits: u64,
}

/// The search of these forms, and its counters.
pub(super) struct Search<'a, H> {
    pub(super) tables: &'a [Table],
    pub(super) batch: &'a Rows,
    pub(super) numbers: &'a mut [u32],
    pub(super) order: &'a mut [Ranked],
    pub(super) hasher: H,
}

impl<'a> Burst<'a> {
    /// The packets of a batch from `first` on.
    #[inline(always)]
    pub(super) fn of(batch: &'a Rows, first: usize, live: u32) -> Self {
        let len = (batch.miniflows.len() - first).min(BURST);
        Self {
            miniflows: &batch.miniflows[first..first + len],
            pairs: batch.pairs.get(first * PAIRS..(first + BURST) * PAIRS).unwrap_or_default(),
            halves: batch.halves.get(first * 2 * WORDS..).unwrap_or_default(),
            live,
        }
    }
}

impl<H: Hasher> Kernel for Search<'_, H> {
    /// Packets with a megaflow, and lookups in subtables.
    type Output = (u64, u64);

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) -> (u64, u64) {
        let mut counts = (0, 0);
        for first in (0..self.batch.miniflows.len()).step_by(BURST) {
            let mut burst = Burst::of(self.batch, first, 0);
            burst.live = u32::MAX >> (BURST - burst.miniflows.len());
            self.hasher.begin(burst.miniflows);
            let (hits, tried) = self.burst(simd, burst, first);
            counts = (counts.0 + hits, counts.1 + tried);
        }
        counts
    }
}

impl<H: Hasher> Search<'_, H> {
    /// Searches for a burst in one subtable after the other, as long as packets are left.
    #[inline(always)]
    fn burst<S: Simd>(&mut self, simd: S, burst: Burst<'_>, first: usize) -> (u64, u64) {
        let mut live = burst.live;
        let mut hashes = [0; BURST];
        let mut counts = (0, 0);
        for rank in self.order.iter_mut() {
            if live == 0 {
                break;
            }
            let Some(table) = self.tables.get(rank.at) else { continue };
            let tried = u64::from(live.count_ones());
            self.hasher.hash(simd, &table.words, Burst { live, ..burst }, &mut hashes);
            for packet in bits(live) {
                let found = find(simd, table, hashes[packet], &burst.miniflows[packet]);
                if let Some(number) = found {
                    self.numbers[first + packet] = number;
                    live &= !(1 << packet);
                }
            }
            let hits = tried - u64::from(live.count_ones());
            rank.hits += hits;
            counts = (counts.0 + hits, counts.1 + tried);
        }
        counts
    }
}

/// The megaflow of a packet in a subtable.
#[inline(always)]
pub(super) fn find<S: Simd>(simd: S, table: &Table, hash: u32, miniflow: &Miniflow) -> Option<u32> {
    table.find(simd, hash, |record| {
        let words = table.words.iter().zip(record);
        words.fold(0, |differ, ((at, mask), word)| differ | word ^ miniflow.get(at) & mask) == 0
    })
}
