//! The subtables in lanes.

use crate::WORDS;
use crate::cache::Cache;
use crate::hash::Keys;
use crate::search::Ranked;
use crate::subtable::Subtable;

/// Subtables of a group: one vector of them, or several.
pub(super) const GROUP: usize = 8;
/// Packets up to which the lanes have subtables, not packets, where a large part of them has its megaflow in the
/// next subtable.
pub(super) const FEW: usize = 8;

/// The same elsewhere, by the subtables that are left. With packets in the lanes a subtable takes some 50 ns, and
/// 0.8 more for each of the packets, which grow fewer; with subtables in the lanes a packet takes 20 ns for each
/// group of eight, and half of the groups (measured on Zen 4). This is where the two are the same.
pub(super) const fn few(subtables: usize) -> usize {
    800 * subtables / (7 * subtables + 160)
}

/// A word of a group: of each subtable its mask.
pub(super) type Lane = [u64; GROUP];

/// The subtables in the order of search, in groups, one subtable a lane.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    /// The words that some mask has.
    pub(super) words: Vec<usize>,
    pub(super) groups: Vec<Group>,
    /// For each group the words that its masks have.
    masks: Vec<Masks>,
    /// The first so many subtables have each a quarter or more of the hits from there on.
    pub(super) dense: usize,
}

/// A word of the masks of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Masks {
    /// The word of the flow.
    pub(super) word: usize,
    pub(super) key: u64,
    pub(super) masks: Lane,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Its words among the plan's.
    from: usize,
    to: usize,
    /// The negative sum of the words that the subtable's mask does not have.
    pub(super) base: Lane,
    /// The beginning of the filter; without a subtable, the word that no packet passes.
    pub(super) start: Lane,
    /// The words of the filter.
    pub(super) len: Lane,
}

/// The words that some mask has.
fn words(tables: &[&Subtable]) -> Vec<usize> {
    let has = |word: &usize| tables.iter().any(|table| table.mask.words()[*word] != 0);
    (0..WORDS).filter(has).collect()
}

impl Plan {
    pub(crate) fn new(cache: &Cache, order: &[Ranked]) -> Self {
        let tables: Vec<&Subtable> =
            order.iter().filter_map(|rank| cache.subtables.get(rank.at as usize)).collect();
        let keys: &Keys = &cache.keys;
        let nothing = |word: usize| (keys[word] & 0xffff_ffff) * (keys[word] >> 32);
        let mut plan = Self { words: words(&tables), ..Self::default() };
        for tables in tables.chunks(GROUP) {
            let of = |each: &dyn Fn(&Subtable) -> u64| -> Lane {
                std::array::from_fn(|lane| tables.get(lane).map_or(0, |table| each(table)))
            };
            let (from, words) = (plan.masks.len(), words(tables));
            plan.masks.extend(words.iter().map(|word| Masks {
                word: *word,
                key: keys[*word],
                masks: of(&|table| table.mask.words()[*word]),
            }));
            plan.groups.push(Group {
                from,
                to: plan.masks.len(),
                base: of(&|table| {
                    let others = words.iter().filter(|word| table.mask.words()[**word] == 0);
                    others.fold(0, |sum: u64, word| sum.wrapping_sub(nothing(*word)))
                }),
                start: of(&|table| table.filter.start as u64),
                len: of(&|table| table.filter.len as u64),
            });
        }
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

    /// The words of a group's masks.
    #[inline(always)]
    pub(super) fn masks(&self, group: &Group) -> &[Masks] {
        &self.masks[group.from..group.to]
    }
}
