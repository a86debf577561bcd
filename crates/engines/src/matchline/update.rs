use std::cmp::Reverse;
use std::collections::BTreeMap;

use bytemuck::Pod;
use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::{Scalar, Table};

use super::build::{Block, Builder};
use super::line::{Code, Item};
use super::pack::Packer;
use super::site::{SITES_MAX, Site, Sites};
use super::word::{Entry, WIDTH_STEP, WORDS_MAX};
use super::{NAME, Tables, items};
use crate::common::Long;

// Why lines may be shared, and are still changed in place: a prefix matters for the addresses that it covers, and for
// no others. All words to which addresses of a changed prefix are led are compiled again. So whatever other words lead
// to the same line, none of their addresses is covered by a prefix that is removed from it or has another code, and
// each prefix that is added is a route, which is true for all addresses.

/// This many bytes of growth are ignored, because a few changes alter much of a small table.
const SLACK: usize = 1 << 18;

/// There are no codes for more blocks.
struct Full;

/// The blocks of [`Long`] that a patch changes.
struct Blocks {
    /// Their intervals: last addresses and codes.
    changed: BTreeMap<usize, Vec<(u64, u32)>>,
    /// Blocks without a network.
    free: Vec<usize>,
    /// The number of the next new block.
    next: usize,
}

/// The surroundings of a block.
struct Around<'a> {
    /// The prefixes that cover it.
    covering: &'a [Item],
    /// The address bits that index the root and the tables above.
    seen: u64,
    /// The code of addresses without a prefix.
    rest: u32,
}

impl<C: Code> Tables<C> {
    /// Compiles the smallest blocks around the changed prefixes that have their own words. Lines with room are changed
    /// in place, other lines and tables are appended; then the new words are stored. The replaced parts become garbage.
    /// A table that has grown by half, by garbage or new routes, is built anew.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        let rest = items::rest(routes).0;
        // The code of ::/0 is in every line.
        let is_same_rest = self.words[self.shape.entries as usize] == Entry::Code(rest).word();
        if self.is_outgrown || !is_same_rest || !self.has_codes(routes.hop_count()) {
            return Ok(Patched::Rebuild);
        }
        let mut sites = Sites::new();
        for &prefix in changed.iter().filter(|prefix| prefix.len() > 0) {
            // All addresses outside of the root have the same answer.
            if self.shape.is_outside(prefix) && code_of(routes, prefix) != rest {
                return Ok(Patched::Rebuild);
            }
            self.add_sites(routes, prefix, &mut sites);
            if sites.len() > SITES_MAX {
                return Ok(Patched::Rebuild);
            }
        }
        let first = self.words_used.next_multiple_of(1 << WIDTH_STEP);
        let lines = Packer::after(self.lines_used, rest);
        let mut builder = Builder::<C> { first, words: Vec::new(), lines, rest };
        let mut blocks = Blocks {
            changed: BTreeMap::new(),
            free: self.free_blocks(routes, changed),
            next: self.long_blocks(),
        };
        let mut done = None::<Prefix<u128>>;
        let mut stored: Vec<(usize, u32)> = Vec::new();
        for (block, site) in sites {
            // A block is sorted before the blocks within it.
            if done.is_some_and(|done| done.covers(block)) {
                continue;
            }
            match self.compile(routes, block, &site, &mut builder, &mut blocks) {
                Ok(word) => stored.extend(word.map(|word| (site.place, word))),
                Err(Full) => return Ok(Patched::Rebuild),
            }
            done = Some(block);
        }
        let Builder { words, lines, .. } = builder;
        if first + words.len() > WORDS_MAX {
            return Ok(Patched::Rebuild);
        }
        if !words.is_empty() {
            append(&mut self.words, first, &words);
            self.words_used = first + words.len();
        }
        let all = self.words.to_mut();
        stored.iter().for_each(|&(place, word)| all[place] = word);
        let lines = lines.finish();
        if !lines.is_empty() {
            append(&mut self.lines, self.lines_used, &lines);
            self.lines_used += lines.len();
        }
        if !blocks.changed.is_empty() {
            self.long = Long::with_blocks(self.long.as_ref(), &blocks.changed, NAME)?;
        }
        self.free = blocks.free;
        self.is_outgrown = self.used() > self.built + self.built / 2 + SLACK;
        Ok(Patched::Applied)
    }

    /// Copies the tables to new memory with room for patches.
    pub(super) fn own(&mut self) {
        self.words = with_room(&self.words[..self.words_used]);
        self.lines = with_room(&self.lines[..self.lines_used]);
    }

    /// Whether there are codes for so many hops. The first code of blocks is fixed only by the first block.
    fn has_codes(&mut self, hop_count: u32) -> bool {
        if hop_count >= self.shape.blocks_from && self.long.is_none() && hop_count <= C::TOP_CODE {
            self.shape.blocks_from = hop_count + 1 + (C::TOP_CODE - hop_count) / 2;
        }
        hop_count < self.shape.blocks_from
    }

    /// Compiles the word of a block; `None` if it stays, because its line was changed in place.
    fn compile(
        &mut self,
        routes: &Routes<u128>,
        block: Prefix<u128>,
        site: &Site,
        builder: &mut Builder<C>,
        blocks: &mut Blocks,
    ) -> Result<Option<u32>, Full> {
        let (key, from) = ((block.addr() >> 64) as u64, block.len());
        let covering = items::covering(routes, block, builder.rest);
        let outer = covering.last().map_or(builder.rest, |item| item.code);
        let (carried, mut nearest) = site.around(&covering, key);
        let within = routes.within(block);
        // The block's own prefix is among those that cover it, except that of a network.
        let own = within.first().is_some_and(|route| route.prefix == block) && from < 64;
        let inside = items::items(&within[usize::from(own)..], outer, |network| {
            self.long_code(routes, network, blocks)
        })?;
        let mut inside = &inside[..];
        if from == 64
            && let [network, ..] = inside
        {
            (nearest, inside) = (Some(*network), &[]);
        }
        let (has_skipped, depth) = (site.has_skipped(), site.depth);
        let compiled = Block { from, inside, carried, nearest, has_skipped, depth };
        if let Entry::Line(number) = Entry::of(self.words[site.place]) {
            let is_line = compiled.code(builder.rest).is_none() && compiled.len() <= C::ITEMS;
            let needed = if is_line { compiled.items() } else { Vec::new() };
            let block = Item { key, len: from, code: 0 };
            let around = Around { covering: &covering, seen: site.seen, rest: builder.rest };
            if self.change_line(number, block, around, needed, routes) {
                return Ok(None);
            }
        }
        Ok(Some(builder.word(compiled)))
    }

    /// Puts the prefixes that a block needs into its line, if there are any and the line has room. Otherwise the block
    /// leaves the line, and the prefixes in the block with it, of which no other block has addresses.
    fn change_line(
        &mut self,
        number: usize,
        block: Item,
        Around { covering, seen, rest }: Around<'_>,
        mut needed: Vec<Item>,
        routes: &Routes<u128>,
    ) -> bool {
        let all = C::items(&self.lines[number], block.key);
        let others: Vec<Item> = all.iter().copied().filter(|item| !block.covers(item)).collect();
        // Those of other blocks, unless they are routes no more and would be found here.
        let is_kept = |item: &&Item| {
            let is_true = |item: &Item| {
                if item.covers(&block) {
                    let before = covering.partition_point(|other| other.len <= item.len);
                    let outer = covering[..before].last().map_or(rest, |outer| outer.code);
                    return outer == item.code;
                }
                let prefix = Prefix::masked(u128::from(item.key) << 64, item.len);
                prefix.is_ok_and(|prefix| code_of(routes, prefix) == item.code)
            };
            !needed.iter().any(|own| own.is_prefix(item))
                && (!item.meets(block.key, seen) || is_true(item))
        };
        let kept: Vec<Item> = others.iter().filter(is_kept).copied().collect();
        let stays = !needed.is_empty() && needed.len() + kept.len() <= C::ITEMS;
        let mut items = others;
        if stays {
            needed.extend(kept);
            items = needed;
        }
        if !items.is_empty() && (stays || items.len() < all.len()) {
            items.sort_by_key(|item| Reverse(item.len));
            self.lines.to_mut()[number] = C::line(&items, rest);
        }
        stays
    }

    /// The blocks of networks (/64) that longer routes divide no more, and those left by earlier patches.
    fn free_blocks(&self, routes: &Routes<u128>, changed: &[Prefix<u128>]) -> Vec<usize> {
        let mut free = self.free.clone();
        for prefix in changed.iter().filter(|prefix| prefix.len() > 64) {
            let network = Prefix::masked(prefix.addr(), 64).expect("a length");
            let is_divided = || routes.within(network).iter().any(|r| r.prefix.len() > 64);
            if let Some(block) = self.block_of(network)
                && !is_divided()
            {
                free.push(block);
            }
        }
        free.sort_unstable();
        free.dedup();
        free
    }

    /// The block of a network, if longer routes divided it before.
    fn block_of(&self, network: Prefix<u128>) -> Option<usize> {
        let code = self.code(Scalar, (network.addr() >> 64) as u64);
        let block = code.checked_sub(self.shape.blocks_from)? as usize;
        (block < self.long_blocks()).then_some(block)
    }

    /// The code of a network that longer routes divide: that of its block, whose intervals may be others now, or of a
    /// new one.
    fn long_code(
        &self,
        routes: &Routes<u128>,
        network: Prefix<u128>,
        blocks: &mut Blocks,
    ) -> Result<u32, Full> {
        let known = self.block_of(network);
        let block = known.or_else(|| blocks.free.pop()).unwrap_or_else(|| {
            blocks.next += 1;
            blocks.next - 1
        });
        let code = self.shape.blocks_from.saturating_add(block as u32);
        if code > C::TOP_CODE {
            return Err(Full);
        }
        let intervals = routes.ranges_within(network);
        let intervals: Vec<(u64, u32)> =
            intervals.map(|range| (range.last as u64, items::code(range.hop))).collect();
        let is_same = |long: &Long| known.is_some() && long.is_block(block, &intervals);
        if !self.long.as_ref().is_some_and(is_same) {
            blocks.changed.insert(block, intervals);
        }
        Ok(code)
    }
}

/// The code of the addresses of a prefix that no longer one covers.
fn code_of(routes: &Routes<u128>, prefix: Prefix<u128>) -> u32 {
    items::code(routes.get(prefix).unwrap_or_else(|| routes.around(prefix)))
}

/// Writes the elements from place `at` on. If there is no room, the table is copied with room for an eighth more.
fn append<T: Pod>(table: &mut Table<T>, at: usize, elements: &[T]) {
    let end = at + elements.len();
    if end > table.len() {
        *table = Table::with_room(table, end + end / 8);
    }
    table.to_mut()[at..end].copy_from_slice(elements);
}

/// Copies the elements to a table with room for an eighth more, for patches.
fn with_room<T: Pod>(elements: &[T]) -> Table<T> {
    Table::with_room(elements, elements.len() + elements.len() / 8)
}
