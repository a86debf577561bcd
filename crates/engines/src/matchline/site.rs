use std::collections::BTreeMap;

use fibula_core::{Prefix, Route, Routes};

use super::build::CARRIED_MAX;
use super::line::{Code, Item};
use super::word::Entry;
use super::{Tables, items};

/// The most words that a patch compiles; for more, a build is faster.
pub(super) const SITES_MAX: usize = 1 << 14;
/// If a changed prefix covers more words of a table than this, the whole table is compiled again.
const CHILDREN_MAX: usize = 64;
/// A table with so few routes is compiled again: it may have become a line.
const FEW: usize = 2;
/// The most routes that differ from a changed prefix in bits that a table skips; if there are more, the table is
/// compiled again.
const STRAYS_MAX: usize = 16;

/// The word of a block that a patch compiles again. The block is a prefix: the one in which the table's routes lie, if
/// words above it skip bits. Addresses that differ in these are led to the word, too.
#[derive(Clone)]
pub(super) struct Site {
    pub(super) place: usize,
    /// The number of tables above.
    pub(super) depth: i32,
    /// The address bits that index the root and the tables above.
    pub(super) seen: u64,
    /// The skipped bits above, from the first number to the second one.
    skips: Vec<(u8, u8)>,
}

/// Words to be compiled, by the prefix of their blocks.
pub(super) type Sites = BTreeMap<Prefix<u128>, Site>;

impl Site {
    pub(super) fn has_skipped(&self) -> bool {
        !self.skips.is_empty()
    }

    /// The prefixes around the site's block that its lines need: those that tables carry because of the skipped bits,
    /// and the nearest one behind these. `covering` are all that cover the block, in ascending order.
    pub(super) fn around(&self, covering: &[Item], key: u64) -> (Vec<Item>, Option<Item>) {
        let until = |len| covering.partition_point(|item| item.len <= len);
        let (mut carried, mut done) = (Vec::new(), 0);
        for &(from, to) in &self.skips {
            let (before, inside) = (until(from), until(to));
            carried.extend(covering[done..before].last());
            carried.extend(&covering[before..inside]);
            done = inside;
        }
        let nearest = covering[done..].last().copied();
        let above = |item: Item| item.above(key);
        (carried.into_iter().map(above).collect(), nearest.map(above))
    }
}

impl<C: Code> Tables<C> {
    /// Adds the words to be compiled because this prefix, which is not ::/0, has changed: those of the smallest blocks
    /// around it, or of the few neighbouring blocks of a table that it covers. All addresses of the prefix are led to
    /// these words.
    pub(super) fn add_sites(
        &self,
        routes: &Routes<u128>,
        changed: Prefix<u128>,
        sites: &mut Sites,
    ) {
        let entry_len = 32 - self.shape.shift as u8;
        let root_site = |place| {
            let seen = u64::MAX << (64 - entry_len);
            Site { place, depth: 0, seen, skips: Vec::new() }
        };
        let (first, last) = (high(changed.first()), high(changed.last()));
        if changed.len() <= entry_len {
            let from = first.max(u64::from(self.shape.low) << 32);
            if last < from {
                return;
            }
            let places = self.shape.entry(from)..=self.shape.entry(last);
            for place in places.take(SITES_MAX + 1) {
                if let Some(key) = self.shape.key(place) {
                    sites.insert(block(key, entry_len), root_site(place));
                }
            }
            return;
        }
        let place = self.shape.entry(first);
        if self.shape.key(place).is_none() {
            return;
        }
        let (mut site, mut from) = (root_site(place), entry_len);
        let len = changed.len().min(64);
        while let Entry::Table { base, bits, shift } = Entry::of(self.words[site.place]) {
            let to = 64 - shift as u8;
            let at = to.saturating_sub(bits as u8);
            let children = 1usize << to.saturating_sub(len);
            if len <= from.max(at)
                || children > CHILDREN_MAX
                || routes.within(block(first, from)).len() <= FEW
                || at > from && !self.is_skipped(routes, first, (from, at), &mut site)
            {
                break;
            }
            let mask = (1 << bits) - 1;
            site.place = base + (first >> shift & mask) as usize;
            site.seen |= mask << shift;
            site.depth += 1;
            from = to;
            if children > 1 {
                for i in 0..children {
                    let key = first | (i as u64) << shift;
                    sites.insert(block(key, to), Site { place: site.place + i, ..site.clone() });
                }
                return;
            }
        }
        sites.insert(block(first, from), site);
    }

    /// Whether a table below the site's word may still skip these bits, if the routes in it have those of `key`: then
    /// the site skips them. Only routes around the skipped bits may have others, or such as do not count.
    fn is_skipped(
        &self,
        routes: &Routes<u128>,
        key: u64,
        (from, at): (u8, u8),
        site: &mut Site,
    ) -> bool {
        let inner = block(key, at);
        let all = routes.within(block(key, from));
        let (before, others) = all.split_at(all.partition_point(|route| route.prefix < inner));
        let inside = others.partition_point(|route| inner.covers(route.prefix));
        let after = &others[inside..];
        if inside == 0 || before.len() + after.len() > STRAYS_MAX {
            return false;
        }
        // A route with the hop of the route around it is in no line.
        let is_harmless = |Route { prefix, hop }: &Route<u128>| {
            prefix.covers(inner) || prefix.len() <= 64 && *hop == routes.around(*prefix)
        };
        if !before.iter().chain(after).all(is_harmless) {
            return false;
        }
        site.skips.push((from, at));
        let covering = items::covering(routes, inner, items::rest(routes).0);
        let fits = site.around(&covering, key).0.len() <= CARRIED_MAX;
        if !fits {
            site.skips.pop();
        }
        fits
    }
}

/// The upper half of an address.
fn high(addr: u128) -> u64 {
    (addr >> 64) as u64
}

/// The prefix of this length, at most 64, with the bits of `key`.
fn block(key: u64, len: u8) -> Prefix<u128> {
    Prefix::masked(u128::from(key) << 64, len).expect("a length of at most 64")
}
