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

use super::plan::Cell;
use super::space::Block;
use crate::Rng;

/// Lengths that a plan can have; the longest profile has 54.
const SLOTS: usize = 64;

type Counts = [u32; SLOTS];

/// What a block shall hold, by slot (position of the length in the plan).
#[derive(Clone)]
struct Mix {
    roots: Counts,
    inner: Counts,
}

pub(super) struct Placer<A> {
    lens: Vec<u8>,
    rng: Rng,
    style: Style,
    out: Vec<Prefix<A>>,
}

/// How uneven the halves are.
struct Style {
    /// How often one half of an open block of this length takes as much as it can.
    lopsided: fn(u8) -> f64,
    /// The same for covered blocks.
    lopsided_inside: f64,
    /// By how much a root one bit shorter has more more-specifics.
    per_bit: f64,
}

const V4: Style = Style { lopsided: |_| 0.5, lopsided_inside: 0.5, per_bit: 1.7 };

const V6: Style = Style {
    lopsided: |depth| if depth < 24 { 0.1 } else { 0.6 },
    lopsided_inside: 0.6,
    per_bit: 1.3,
};

/// The prefixes of the plan in ascending order.
pub(super) fn place<A: Addr>(plan: &[Cell], blocks: &[Block<A>], seed: u64) -> Vec<Prefix<A>> {
    assert!(plan.len() <= SLOTS);
    let mut rest = Mix { roots: [0; SLOTS], inner: [0; SLOTS] };
    for (slot, cell) in plan.iter().enumerate() {
        (rest.roots[slot], rest.inner[slot]) = (cell.roots, cell.inner);
    }
    let total: u32 = plan.iter().map(|cell| cell.roots + cell.inner).sum();
    let mut placer = Placer {
        lens: plan.iter().map(|cell| cell.len).collect(),
        rng: Rng::new(seed),
        style: if A::FAMILY == Family::V4 { V4 } else { V6 },
        out: Vec::with_capacity(total as usize),
    };
    // The blocks in use are cut off one after the other; each gets its part of what is left.
    for (i, block) in blocks.iter().enumerate() {
        let (this, later) = (&blocks[i..=i], &blocks[i + 1..]);
        let weight = |blocks: &[Block<A>]| blocks.iter().map(|b| f64::from(b.weight)).sum::<f64>();
        let part = weight(this) / weight(&blocks[i..]);
        let (mix, others) =
            placer.divide_open(&rest, part, &|len| places(this, len), &|len| places(later, len));
        placer.open(block.prefix.addr().to_u128(), block.prefix.len(), &mix);
        rest = others;
    }
    debug_assert_eq!(placer.out.len(), total as usize);
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
        let used = self.lens.len();
        let total: u32 = mix.roots[..used].iter().sum();
        if total == 0 {
            return;
        }
        if total == 1 {
            let slot = mix.roots.iter().position(|count| *count > 0).unwrap_or(0);
            let len = self.lens[slot];
            let addr = self.inside(addr, depth, len);
            self.push(addr, len);
            self.covered(addr, len, &mix.inner);
            return;
        }
        let part = self.part_open(depth, mix);
        let half = |len| places_in(depth + 1, len);
        let (low, high) = self.divide_open(mix, part, &half, &half);
        self.open(addr, depth + 1, &low);
        self.open(Self::upper(addr, depth), depth + 1, &high);
    }

    /// The part of an open block's roots that its lower half shall get.
    fn part_open(&mut self, depth: u8, mix: &Mix) -> f64 {
        let mut filled = 0.0;
        let mut size = 1.0;
        let mut at = depth;
        for (slot, &len) in self.lens.iter().enumerate() {
            while at < len {
                size *= 0.5;
                at += 1;
            }
            filled += f64::from(mix.roots[slot]) * size;
        }
        // A half cannot hold more than itself.
        let most = if filled > 0.5 { 0.5 / filled } else { 1.0 };
        self.uneven((self.style.lopsided)(depth), most)
    }

    /// A part between `1 - most` and `most`: one of the two with this chance, or between them.
    fn uneven(&mut self, lopsided: f64, most: f64) -> f64 {
        let draw = self.rng.unit();
        if draw < lopsided {
            if self.rng.chance(0.5) { most } else { 1.0 - most }
        } else {
            1.0 - most + (2.0 * most - 1.0) * self.rng.unit()
        }
    }

    /// About `part` of `count`, by chance rounded up or down.
    fn share(&mut self, count: u32, part: f64) -> u32 {
        if count == 0 { 0 } else { (f64::from(count) * part + self.rng.unit()) as u32 }
    }

    /// Divides what an open block shall hold between two sides with these numbers of places.
    fn divide_open(
        &mut self,
        mix: &Mix,
        part: f64,
        places: &dyn Fn(u8) -> u128,
        other_places: &dyn Fn(u8) -> u128,
    ) -> (Mix, Mix) {
        let mut one = Mix { roots: [0; SLOTS], inner: [0; SLOTS] };
        let mut other = one.clone();
        let (mut taken, mut other_taken) = (Taken::default(), Taken::default());
        for slot in 0..self.lens.len() {
            let (len, count) = (self.lens[slot], mix.roots[slot]);
            let here = places(len).saturating_sub(taken.at(len));
            let there = other_places(len).saturating_sub(other_taken.at(len));
            let given = clamp(self.share(count, part), count, here, there);
            one.roots[slot] = given;
            other.roots[slot] = count - given;
            taken.take(given);
            other_taken.take(count - given);
        }
        self.divide_inner_by_roots(mix, &mut one, &mut other);
        (one, other)
    }

    /// Gives each side more-specifics by the number and size of its roots, unevenly.
    fn divide_inner_by_roots(&mut self, mix: &Mix, one: &mut Mix, other: &mut Mix) {
        let (weight, other_weight) = (self.weight(&one.roots), self.weight(&other.roots));
        let tilt = self.uneven(0.0, 1.0);
        let part = weight * tilt;
        let part = part / (part + other_weight * (1.0 - tilt)).max(f64::MIN_POSITIVE);
        let (mut room, mut other_room) = (Taken::default(), Taken::default());
        for slot in 0..self.lens.len() {
            let (len, count) = (self.lens[slot], mix.inner[slot]);
            // Strictly shorter roots only: those of this length are added after.
            let (here, there) = (room.at(len), other_room.at(len));
            let given = clamp(self.share(count, part), count, here, there);
            one.inner[slot] = given;
            other.inner[slot] = count - given;
            room.take(one.roots[slot]);
            other_room.take(other.roots[slot]);
        }
    }

    /// How many more-specifics the roots attract.
    fn weight(&self, roots: &Counts) -> f64 {
        let mut weight = 0.0;
        let mut each = 1.0;
        let mut at = self.lens.last().copied().unwrap_or(0);
        for (slot, &len) in self.lens.iter().enumerate().rev() {
            while at > len {
                each *= self.style.per_bit;
                at -= 1;
            }
            weight += f64::from(roots[slot]) * each;
        }
        weight
    }

    /// Fills a block that a prefix covers.
    fn covered(&mut self, addr: u128, depth: u8, inner: &Counts) {
        let used = self.lens.len();
        let total: u32 = inner[..used].iter().sum();
        if total == 0 {
            return;
        }
        let first = inner.iter().position(|count| *count > 0).unwrap_or(0);
        if total == 1 {
            let len = self.lens[first];
            let addr = self.inside(addr, depth, len);
            return self.push(addr, len);
        }
        let mut inner = *inner;
        if self.lens[first] == depth {
            self.push(addr, depth);
            inner[first] = 0;
        }
        let part = self.uneven(self.style.lopsided_inside, 1.0);
        let mut low = [0; SLOTS];
        let mut high = [0; SLOTS];
        for slot in first..used {
            let half = places_in(depth + 1, self.lens[slot]);
            low[slot] = clamp(self.share(inner[slot], part), inner[slot], half, half);
            high[slot] = inner[slot] - low[slot];
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
