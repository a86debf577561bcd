use fibula_core::{BuildError, Routes};
use fibula_simd::Table;

use super::line::{Code, Item};
use super::pack::Packer;
use super::word::{Entry, LOW, WIDTH_MAX, WIDTH_STEP, WORDS_MAX};
use super::{Form, NAME, RootShape, Tables, items};
use crate::common::{Long, LongBuilder};

/// Root entries for each prefix, on average, as a shift: one for four.
const PREFIXES_AN_ENTRY: u32 = 2;
/// The least and the most root entries, as powers of two. Blocks of root entries are longer than [`TOP_BITS`].
const ROOT_BITS: (u32, u32) = (9, 18);
/// The bytes that a prefix may cost in tables if it is then not below one more of them, and by which factor this grows
/// with each table.
const STEP_BYTES: (f32, f32) = (32.0, 1.5);
/// The number of bits that a table is assumed to distinguish, for the estimate of the number of tables below.
const STEP_BITS: f32 = 4.0;
/// The most prefixes that every line below a table contains because the table skips bits.
pub(super) const CARRIED_MAX: usize = 3;

pub(super) fn build(routes: &Routes<u128>) -> Result<Form, BuildError> {
    let all = All::new(routes)?;
    let top = all.top();
    Ok(if top <= u8::TOP {
        Form::Byte(tables(all)?)
    } else if top <= u16::TOP {
        Form::Narrow(tables(all)?)
    } else {
        Form::Wide(tables(all)?)
    })
}

/// The prefixes of a table as lines hold them, and the code of all other addresses.
struct All {
    items: Vec<Item>,
    rest: u32,
    long: Option<Long>,
    blocks_from: u32,
}

impl All {
    fn new(routes: &Routes<u128>) -> Result<Self, BuildError> {
        let limit = |needed: u64| {
            let what = "hops and networks with routes longer than /64";
            BuildError::Limit { engine: NAME, what, limit: (LOW - 1).into(), needed }
        };
        let blocks_from = routes.hop_count().checked_add(1).filter(|&from| from <= LOW);
        let blocks_from = blocks_from.ok_or_else(|| limit(routes.hop_count().into()))?;
        let (rest, inside) = items::rest(routes);
        let mut long = LongBuilder::default();
        let (mut near, mut next) = (0, blocks_from);
        let items = items::items(inside, rest, |network| {
            let code = next;
            if code == LOW {
                return Err(limit(code.into()));
            }
            next += 1;
            long.begin();
            for range in routes.ranges_within_near(network, &mut near) {
                long.push(range.last as u64, items::code(range.hop));
            }
            Ok(code)
        })?;
        Ok(Self { items, rest, long: long.finish(NAME)?, blocks_from })
    }

    /// The largest code, if the blocks' codes follow those of the hops.
    fn top(&self) -> u32 {
        self.blocks_from - 1 + self.long.as_ref().map_or(0, Long::blocks) as u32
    }

    /// Leaves half of the free codes to new hops, the other half to new blocks.
    fn spread<C: Code>(&mut self) {
        let free = (C::TOP_CODE - self.top()) / 2;
        for item in &mut self.items {
            item.code += if item.code >= self.blocks_from { free } else { 0 };
        }
        self.blocks_from += free;
    }
}

fn tables<C: Code>(mut all: All) -> Result<Tables<C>, BuildError> {
    all.spread::<C>();
    let All { items, rest, long, blocks_from } = all;
    let (shape, len) = root_shape(&items, blocks_from);
    let words = vec![Entry::Code(rest).word(); shape.entries as usize + 1];
    let mut builder = Builder::<C> { first: 0, words, lines: Packer::new(rest), rest };
    let entry_of = |key| u64::from(((key >> 32) as u32 - shape.low) >> shape.shift);
    let mut left = &items[..];
    let mut around: Vec<Item> = Vec::new();
    for entry in 0..shape.entries {
        let key = (u64::from(shape.low) + (u64::from(entry) << shape.shift)) << 32;
        let block = Item { key, len, code: 0 };
        while around.last().is_some_and(|outer| !outer.covers(&block)) {
            around.pop();
        }
        while let Some((first, others)) = left.split_first().filter(|(it, _)| it.covers(&block)) {
            around.push(*first);
            left = others;
        }
        let inside;
        (inside, left) =
            left.split_at(left.partition_point(|item| entry_of(item.key) == entry.into()));
        let nearest = around.last().map(|outer| outer.above(key));
        let block =
            Block { from: len, inside, carried: Vec::new(), nearest, has_skipped: false, depth: 0 };
        builder.words[entry as usize] = builder.word(block);
    }
    let Builder { words, lines, .. } = builder;
    let needed = words.len() as u64;
    if words.len() > WORDS_MAX {
        return Err(BuildError::Limit {
            engine: NAME,
            what: "words of tables",
            limit: WORDS_MAX as u64,
            needed,
        });
    }
    let lines = Table::from_vec(lines.finish());
    Ok(Tables::new(Table::from_vec(words), lines, shape, long))
}

/// The root for these prefixes, and how many address bits a root entry stands for: the prefix's and those before.
fn root_shape(items: &[Item], blocks_from: u32) -> (RootShape, u8) {
    let Some(first) = items.first().map(|first| (first.key >> 32) as u32) else {
        return (RootShape { low: 0, shift: 0, entries: 0, blocks_from }, 32);
    };
    let last_of = |item: &Item| item.key | u64::MAX.checked_shr(item.len.into()).unwrap_or(0);
    let last = items.iter().map(last_of).max().unwrap_or(u64::MAX);
    let last = (last >> 32) as u32;
    let bits = (items.len() as u32).ilog2().saturating_sub(PREFIXES_AN_ENTRY - 1);
    let most = 1u32 << bits.clamp(ROOT_BITS.0, ROOT_BITS.1);
    let mut shift = 0;
    while (last >> shift) - (first >> shift) >= most {
        shift += 1;
    }
    let entries = (last >> shift) - (first >> shift) + 1;
    (RootShape { low: first >> shift << shift, shift, entries, blocks_from }, 32 - shift as u8)
}

/// Addresses that have their first `from` bits in common, except perhaps those that a table skips.
pub(super) struct Block<'a> {
    pub(super) from: u8,
    /// The prefixes in the block that are longer than `from`, in ascending order.
    pub(super) inside: &'a [Item],
    /// Prefixes that may be an address's longest one because bits were skipped.
    pub(super) carried: Vec<Item>,
    /// The longest prefix, longer than all carried ones, that covers the block's addresses unless skipped bits differ.
    pub(super) nearest: Option<Item>,
    /// Whether a table above skips bits: nobody has looked at these.
    pub(super) has_skipped: bool,
    /// The number of tables above.
    pub(super) depth: i32,
}

/// Compiles blocks.
pub(super) struct Builder<C> {
    /// The place of the first word, a multiple of the least tables' size.
    pub(super) first: usize,
    pub(super) words: Vec<u32>,
    pub(super) lines: Packer<C>,
    /// The code of addresses without a prefix.
    pub(super) rest: u32,
}

impl<C: Code> Builder<C> {
    /// The word of a block.
    pub(super) fn word(&mut self, mut block: Block<'_>) -> u32 {
        if let Some(code) = block.code(self.rest) {
            return Entry::Code(code).word();
        }
        if block.len() <= C::ITEMS {
            block.carried.extend(block.nearest);
            return Entry::Line(self.lines.place(&block.carried, block.inside)).word();
        }
        block.skip();
        let bits = block.width::<C>();
        // At the last bit, a table begins one bit before the block.
        let at = block.from.min(64 - bits as u8);
        let shift = 64 - u32::from(at) - bits;
        let base = self.words.len().next_multiple_of(1 << WIDTH_STEP);
        self.words.resize(base + (1 << bits), 0);
        self.table(&block, base, bits, shift);
        Entry::Table { base: self.first + base, bits, shift }.word()
    }

    /// Writes the words of a table that indexes by `bits` bits from `shift` on.
    fn table(&mut self, block: &Block<'_>, base: usize, bits: u32, shift: u32) {
        let from = (64 - shift) as u8;
        let index = |item: &Item| item.key >> shift & ((1 << bits) - 1);
        let mut left = block.inside;
        // The prefixes that cover whole words, with the words behind them.
        let mut around: Vec<(Item, u64)> = Vec::new();
        for at in 0..1u64 << bits {
            while around.last().is_some_and(|&(_, end)| end <= at) {
                around.pop();
            }
            while let Some((first, others)) =
                left.split_first().filter(|(item, _)| index(item) == at && item.len <= from)
            {
                around.push((*first, at + (1 << (from - first.len))));
                left = others;
            }
            let inside;
            (inside, left) = left.split_at(left.partition_point(|item| index(item) == at));
            let word = self.word(Block {
                from,
                inside,
                carried: block.carried.clone(),
                nearest: around.last().map(|&(item, _)| item).or(block.nearest),
                has_skipped: block.has_skipped,
                depth: block.depth + 1,
            });
            self.words[base + at as usize] = word;
        }
    }
}

impl Block<'_> {
    /// The code of all its addresses, if they have the same one.
    pub(super) fn code(&self, rest: u32) -> Option<u32> {
        let is_certain = !self.has_skipped || self.nearest.is_none();
        let is_constant = self.inside.is_empty() && self.carried.is_empty() && is_certain;
        is_constant.then(|| self.nearest.map_or(rest, |nearest| nearest.code))
    }

    /// The prefixes that a line of the block has.
    pub(super) fn items(&self) -> Vec<Item> {
        self.carried.iter().chain(&self.nearest).chain(self.inside).copied().collect()
    }

    /// Their number.
    pub(super) fn len(&self) -> usize {
        self.inside.len() + self.around()
    }

    /// Number of prefixes outside the block that a line of it has.
    fn around(&self) -> usize {
        self.carried.len() + usize::from(self.nearest.is_some())
    }

    /// Skips the bits that all prefixes have in common, except those that cover all others. The prefixes that cover
    /// them are carried along: no table tests the skipped bits, so an address may differ in them, and only a shorter
    /// prefix may cover it.
    fn skip(&mut self) {
        let [.., last] = self.inside else { return };
        let chain = self.inside.iter().take_while(|item| item.covers(last)).count();
        // Only the last one covers itself: then it is the end of the chain, and nothing has a bit in common with it.
        let chain = chain.min(self.inside.len() - 1);
        let (chain, others) = self.inside.split_at(chain);
        let [first, _, ..] = others else { return };
        let common = (first.key ^ last.key).leading_zeros() as u8;
        if common > self.from && self.around() + chain.len() <= CARRIED_MAX {
            self.carried.extend(self.nearest.take());
            self.carried.extend_from_slice(chain);
            self.inside = others;
            self.from = common;
            self.has_skipped = true;
        }
    }

    /// The width of the table for the block: its words, and prefixes below more tables, cost least. How many tables a
    /// prefix will be below is estimated from the number of those that share its word. If it counted as one, all widths
    /// of a table of large blocks would cost the same but for the words, and the narrowest would be taken.
    fn width<C: Code>(&self) -> u32 {
        let room = C::ITEMS.saturating_sub(self.around()).max(1);
        let price = STEP_BYTES.0 * STEP_BYTES.1.powi(self.depth);
        let mut best = (f32::MAX, WIDTH_STEP);
        for bits in (WIDTH_STEP..=WIDTH_MAX).step_by(WIDTH_STEP as usize) {
            let from = u32::from(self.from) + bits;
            if from > 64 || 1usize << bits > 8 * self.inside.len() + 8 {
                break;
            }
            let shift = 64 - from;
            let chunks = self.inside.chunk_by(|a, b| a.key >> shift == b.key >> shift);
            let longer =
                chunks.map(|items| items.iter().filter(|i| u32::from(i.len) > from).count());
            let tables = |items: usize| 1.0 + (items as f32 / room as f32).log2() / STEP_BITS;
            let deep = longer.filter(|&items| items > room);
            let steps = deep.map(|items| items as f32 * tables(items)).sum::<f32>();
            let cost = (4u32 << bits) as f32 + steps * price;
            if cost < best.0 {
                best = (cost, bits);
            }
        }
        best.1
    }
}
