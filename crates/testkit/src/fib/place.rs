//! Where the prefixes lie.
//!
//! Addresses in use cluster at every scale, which a multiplicative cascade imitates (Kohler, Li,
//! Paxson, Shenker: Observed structure of addresses in IP traffic, 2002): a block and the prefixes
//! that it shall hold are halved again and again, each half getting an uneven part of every length,
//! until a prefix falls on the block itself. The counts are divided, never drawn, so the histogram
//! comes out exactly; whether everything fits is known at each step by counting free places, so
//! nothing is tried twice; and the prefixes come out sorted.
//!
//! There are two kinds of block. An *open* one lies in no prefix: it holds roots, which are disjoint,
//! and the more-specifics that go with them. Where a root falls the block becomes *covered*: it holds
//! more-specifics only, which may nest, so that each length has its places for itself.

use fibula_core::{Addr, Family, Prefix};

use super::plan::{Cell, size};
use super::space::Block;
use crate::Rng;

/// Lengths that a plan can have; the longest profile has 54.
const SLOTS: usize = 64;

type Counts = [u32; SLOTS];

/// The planned number of prefixes of a block, by slot (position of the length in the plan).
struct Mix {
    roots: Counts,
    inner: Counts,
}

impl Mix {
    const EMPTY: Self = Self { roots: [0; SLOTS], inner: [0; SLOTS] };
}

struct Placer<A> {
    lens: Vec<u8>,
    /// By slot: a prefix's share of the space, and how many more-specifics a root attracts.
    sizes: Vec<f64>,
    weights: Vec<f64>,
    style: Style,
    rng: Rng,
    out: Vec<Prefix<A>>,
}

/// How uneven the halves are. The numbers were fitted by hand until generated tables resembled those
/// counted for the profiles: depth of nesting, elementary intervals and gaps a prefix, how many roots
/// have more-specifics, how many prefixes lie next to their brother.
struct Style {
    /// How often one half of an open block takes as many roots as it can, for blocks shorter than
    /// `.0` bits and for others.
    lopsided: (u8, f64, f64),
    /// How far from even the other open blocks are divided, 0 to 1.
    spread: f64,
    /// Whether each length of roots is divided on its own. Then /48s and /32s gather in different
    /// places, as they do where registries hand them out from different blocks. Where space is short
    /// the lengths have to share it.
    apart: bool,
    /// How often one half of an open block attracts nearly all more-specifics, and how far from even
    /// they are divided otherwise.
    attraction: (f64, f64),
    /// By how much a root one bit shorter attracts more more-specifics.
    per_bit: f64,
    /// How often one half of a covered block takes as many prefixes of a length as it can: runs of
    /// equal neighbours come of it.
    runs: f64,
}

const V4: Style = Style {
    lopsided: (0, 0.0, 0.3),
    spread: 0.5,
    apart: false,
    attraction: (0.0, 0.8),
    per_bit: 1.6,
    runs: 0.92,
};

const V6: Style = Style {
    lopsided: (31, 0.3, 0.78),
    spread: 1.0,
    apart: true,
    attraction: (0.12, 0.95),
    per_bit: 1.35,
    runs: 0.87,
};

/// The part of their roots' space that more-specifics may fill, counted as if they were disjoint, as
/// long as there is a choice. Without this bound the uneven halving would heap them several deep.
const CROWDED: f64 = 0.45;

/// The prefixes of the plan in ascending order.
pub(super) fn place<A: Addr>(plan: &[Cell], blocks: &[Block<A>], seed: u64) -> Vec<Prefix<A>> {
    let mut rest = Mix::EMPTY;
    for (slot, cell) in plan.iter().enumerate() {
        (rest.roots[slot], rest.inner[slot]) = (cell.roots, cell.inner);
    }
    let mut placer = Placer::new(plan, seed);
    // The blocks in use are cut off one after the other; each gets its share of the remaining prefixes.
    for (i, block) in blocks.iter().enumerate() {
        let (this, later) = (&blocks[i..=i], &blocks[i + 1..]);
        let weight = |blocks: &[Block<A>]| blocks.iter().map(|b| f64::from(b.weight)).sum::<f64>();
        let parts = [weight(this) / weight(&blocks[i..]); SLOTS];
        let (mix, others) =
            placer.divide(&rest, &parts, &|len| places(this, len), &|len| places(later, len));
        placer.open(block.prefix.addr().to_u128(), block.prefix.len(), &mix);
        rest = others;
    }
    placer.out
}

/// Places of length `len` in the blocks.
fn places<A: Addr>(blocks: &[Block<A>], len: u8) -> u128 {
    blocks.iter().map(|block| places_in(block.prefix.len(), len)).sum()
}

/// Places of length `len` in a block of length `block`, which is at least 1.
fn places_in(block: u8, len: u8) -> u128 {
    len.checked_sub(block).map_or(0, |bits| 1 << bits)
}

impl<A: Addr> Placer<A> {
    fn new(plan: &[Cell], seed: u64) -> Self {
        let style = if A::FAMILY == Family::V4 { V4 } else { V6 };
        let total: u32 = plan.iter().map(|cell| cell.roots + cell.inner).sum();
        let weight = |len| (len..A::BITS).fold(1.0, |weight, _| weight * style.per_bit);
        Self {
            lens: plan.iter().map(|cell| cell.len).collect(),
            sizes: plan.iter().map(|cell| size(cell.len)).collect(),
            weights: plan.iter().map(|cell| weight(cell.len)).collect(),
            style,
            rng: Rng::new(seed),
            out: Vec::with_capacity(total as usize),
        }
    }

    fn push(&mut self, addr: u128, len: u8) {
        let prefix = Prefix::masked(A::from_u128(addr), len);
        self.out.push(prefix.expect("a length of the plan is one of the family"));
    }

    /// An address inside the block `addr/from`, random in the bits from `from` to `to`.
    fn inside(&mut self, addr: u128, from: u8, to: u8) -> u128 {
        let bits = self.rng.addr::<A>().and(A::netmask(from).xor(A::netmask(to)));
        addr | bits.to_u128()
    }

    /// The address of the upper half of the block.
    fn upper(addr: u128, depth: u8) -> u128 {
        addr | 1 << (A::BITS - 1 - depth)
    }

    /// Fills a block that no prefix covers.
    fn open(&mut self, addr: u128, depth: u8, mix: &Mix) {
        match mix.roots.iter().sum::<u32>() {
            0 => {}
            1 => {
                let slot = mix.roots.iter().position(|count| *count > 0).unwrap_or(0);
                let len = self.lens[slot];
                let addr = self.inside(addr, depth, len);
                self.push(addr, len);
                self.covered(addr, len, &mix.inner);
            }
            _ => {
                let parts = self.parts(depth, &mix.roots);
                let half = |len| places_in(depth + 1, len);
                let (low, high) = self.divide(mix, &parts, &half, &half);
                self.open(addr, depth + 1, &low);
                self.open(Self::upper(addr, depth), depth + 1, &high);
            }
        }
    }

    /// The part of an open block's roots that its lower half shall get, by slot.
    fn parts(&mut self, depth: u8, roots: &Counts) -> [f64; SLOTS] {
        let filled = self.space(roots) / size(depth);
        // A half cannot hold more than itself.
        let most = if filled > 0.5 { 0.5 / filled } else { 1.0 };
        let (from, shallow, deep) = self.style.lopsided;
        let lopsided = if depth < from { shallow } else { deep };
        let mut parts = [self.uneven(lopsided, self.style.spread, most); SLOTS];
        if self.style.apart {
            for (part, _) in parts.iter_mut().zip(roots).filter(|(_, count)| **count > 0) {
                *part = self.uneven(lopsided, self.style.spread, most);
            }
        }
        parts
    }

    /// A part of at most `most` and at least `1 - most`: one of these two in `lopsided` of all cases,
    /// else around the middle, as far off as `spread` says.
    fn uneven(&mut self, lopsided: f64, spread: f64, most: f64) -> f64 {
        if self.rng.chance(lopsided) {
            if self.rng.chance(0.5) { most } else { 1.0 - most }
        } else {
            0.5 + (most - 0.5) * spread * (2.0 * self.rng.unit() - 1.0)
        }
    }

    /// About `part` of `count`, by chance rounded up or down.
    fn share(&mut self, count: u32, part: f64) -> u32 {
        if count == 0 { 0 } else { (f64::from(count) * part + self.rng.unit()) as u32 }
    }

    /// The share of the space that prefixes fill, counted as if they were disjoint.
    fn space(&self, counts: &Counts) -> f64 {
        counts.iter().zip(&self.sizes).map(|(count, size)| f64::from(*count) * size).sum()
    }

    /// How many more-specifics the roots attract.
    fn attraction(&self, roots: &Counts) -> f64 {
        roots.iter().zip(&self.weights).map(|(count, weight)| f64::from(*count) * weight).sum()
    }

    /// Divides the planned prefixes of an open block between two sides with these numbers of places.
    fn divide(
        &mut self,
        mix: &Mix,
        parts: &[f64; SLOTS],
        places: &dyn Fn(u8) -> u128,
        other_places: &dyn Fn(u8) -> u128,
    ) -> (Mix, Mix) {
        let (mut one, mut other) = (Mix::EMPTY, Mix::EMPTY);
        let (mut taken, mut other_taken) = (Taken::default(), Taken::default());
        for (slot, &part) in parts.iter().enumerate().take(self.lens.len()) {
            let (len, count) = (self.lens[slot], mix.roots[slot]);
            let here = places(len) - taken.at(len);
            let there = other_places(len) - other_taken.at(len);
            let given = clamp(self.share(count, part), count, here, there);
            one.roots[slot] = given;
            other.roots[slot] = count - given;
            taken.take(given);
            other_taken.take(count - given);
        }
        let part = self.part_inner(mix, &one, &other);
        let (mut room, mut other_room) = (Taken::default(), Taken::default());
        for slot in 0..self.lens.len() {
            let (len, count) = (self.lens[slot], mix.inner[slot]);
            // Strictly shorter roots make room: those of this length are added after.
            let (here, there) = (room.at(len), other_room.at(len));
            let given = clamp(self.share(count, part), count, here, there);
            one.inner[slot] = given;
            other.inner[slot] = count - given;
            room.take(one.roots[slot]);
            other_room.take(other.roots[slot]);
        }
        (one, other)
    }

    /// The part of the more-specifics that goes with the roots of `one`: by their number and size,
    /// unevenly, and so that neither side is crowded if that can be helped.
    fn part_inner(&mut self, mix: &Mix, one: &Mix, other: &Mix) -> f64 {
        let (lopsided, spread) = self.style.attraction;
        let tilt = self.uneven(lopsided, spread, 0.97);
        let here = self.attraction(&one.roots) * tilt;
        let there = self.attraction(&other.roots) * (1.0 - tilt);
        let inner = self.space(&mix.inner);
        if inner == 0.0 || here + there == 0.0 {
            return 0.5;
        }
        let (room, other_room) = (self.space(&one.roots), self.space(&other.roots));
        let most = (CROWDED * room / inner).min(1.0);
        let least = (1.0 - CROWDED * other_room / inner).max(0.0);
        if least <= most {
            (here / (here + there)).clamp(least, most)
        } else {
            room / (room + other_room)
        }
    }

    /// Fills a block that a prefix covers.
    fn covered(&mut self, addr: u128, depth: u8, inner: &Counts) {
        let total: u32 = inner.iter().sum();
        let Some(first) = inner.iter().position(|count| *count > 0) else { return };
        let len = self.lens[first];
        if total == 1 {
            let addr = self.inside(addr, depth, len);
            return self.push(addr, len);
        }
        let mut from = first;
        if len == depth {
            self.push(addr, depth);
            from += 1;
        }
        let (mut low, mut high) = ([0; SLOTS], [0; SLOTS]);
        for slot in from..self.lens.len() {
            let count = inner[slot];
            if count > 0 {
                // Each length separately, because prefixes in different places do not nest.
                let part = self.uneven(self.style.runs, 1.0, 1.0);
                let half = places_in(depth + 1, self.lens[slot]);
                low[slot] = clamp(self.share(count, part), count, half, half);
                high[slot] = count - low[slot];
            }
        }
        self.covered(addr, depth + 1, &low);
        self.covered(Self::upper(addr, depth), depth + 1, &high);
    }
}

/// As near to `wanted` as the places on both sides allow for `count` in all.
fn clamp(wanted: u32, count: u32, here: u128, there: u128) -> u32 {
    debug_assert!(here + there >= count.into(), "the plan has more than fits");
    let cut = |places: u128| u32::try_from(places).unwrap_or(u32::MAX);
    wanted.clamp(count.saturating_sub(cut(there)), count.min(cut(here)))
}

/// Counts the places of growing length that prefixes of shorter or equal length take up.
#[derive(Default)]
struct Taken {
    len: u8,
    places: u128,
}

impl Taken {
    /// Places of length `len` taken so far; `len` never falls.
    fn at(&mut self, len: u8) -> u128 {
        self.places <<= len - self.len;
        self.len = len;
        self.places
    }

    /// Takes `count` places of the current length.
    fn take(&mut self, count: u32) {
        self.places += u128::from(count);
    }
}
