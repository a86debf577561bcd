use std::marker::PhantomData;

use fibula_core::{BuildError, Hop, Prefix, Range, Routes};
use fibula_simd::{Isa, Table};

use super::deep::DeepBuilder;
use super::leaf::{Leaf, Line, NO_KEY, Narrow, Wide, lines};
use super::plan::{Plan, low, plan};
use super::word::{BASES_MAX, Entry, LINES_MAX};
use super::{CELL_BITS, Form, GRAINS, LEVELS, NAME, ROOT_BITS, Tables, Wideleaf};

pub(super) fn build(routes: &Routes<u128>, isa: Isa) -> Result<Wideleaf, BuildError> {
    let cells = Cells::new(routes.ranges());
    let form = match build_as::<Narrow>(routes, &cells)? {
        Some(tables) => Form::Narrow(tables),
        None => match build_as::<Wide>(routes, &cells)? {
            Some(tables) => Form::Wide(tables),
            None => return Err(too_large(routes)),
        },
    };
    Ok(Wideleaf { form, level: isa.level() })
}

fn too_large(routes: &Routes<u128>) -> BuildError {
    BuildError::Limit {
        engine: NAME,
        what: "hops and blocks that leaves do not tell apart, or tables",
        limit: Wide::TOP.into(),
        needed: u64::from(routes.hop_count()),
    }
}

/// The tables, `None` if codes or places do not fit.
fn build_as<L: Leaf>(
    routes: &Routes<u128>,
    cells: &Cells,
) -> Result<Option<Tables<L>>, BuildError> {
    for grain in GRAINS {
        let mut parts = Parts::<L>::new(routes, grain, DeepBuilder::new(), 1 << ROOT_BITS, 1);
        let mut at = 0;
        let root: Vec<u32> =
            (0..1 << ROOT_BITS).map(|entry| parts.root_word(cells, entry, &mut at)).collect();
        if parts.codes_overflow {
            return Ok(None);
        }
        if parts.places_overflow {
            continue;
        }
        debug_assert_eq!(parts.words_at(), root.len());
        let words = Table::with(root.len() + parts.words.len(), |words| {
            let (head, tail) = words.split_at_mut(root.len());
            head.copy_from_slice(&root);
            tail.copy_from_slice(&parts.words);
        });
        let lines = Table::with(1 + parts.lines.len(), |lines| {
            lines[0] = [NO_KEY; 16];
            lines[1..].copy_from_slice(&parts.lines);
        });
        let deep = parts.deep.finish()?;
        return Ok(Some(Tables::new(words, lines, deep, grain)));
    }
    Ok(None)
}

/// The table cut into cells, the blocks of the first [`CELL_BITS`] address bits: intervals of cells
/// with one code each.
pub(super) struct Cells {
    /// The last cells, ascending.
    lasts: Vec<u64>,
    /// Hops plus one, or [`DIVIDED`].
    codes: Vec<u32>,
}

/// The code of a cell that longer routes divide.
const DIVIDED: u32 = u32::MAX;

impl Cells {
    /// The intervals of the ranges, which begin and end with a cell.
    pub(super) fn new(ranges: impl Iterator<Item = Range<u128>>) -> Self {
        let mut cells = Self { lasts: Vec::new(), codes: Vec::new() };
        let cell = |addr: u128| (addr >> (128 - CELL_BITS)) as u64;
        let low = u128::MAX >> CELL_BITS;
        for Range { first, last, hop } in ranges {
            // A cell that an earlier range has begun is divided, and pushed already.
            let from = cell(first) + u64::from(first & low != 0);
            let whole = if last & low == low { cell(last) + 1 } else { cell(last) };
            if from < whole {
                cells.push(whole - 1, hop.to_bits().wrapping_add(1));
            }
            if last & low != low && from <= cell(last) {
                cells.push(cell(last), DIVIDED);
            }
        }
        cells
    }

    fn push(&mut self, last: u64, code: u32) {
        self.lasts.push(last);
        self.codes.push(code);
    }
}

/// What is built: tables and leaves that go behind `words_base` words and `lines_base` leaves.
pub(super) struct Parts<'a, L> {
    form: PhantomData<L>,
    routes: &'a Routes<u128>,
    grain: u32,
    words_base: usize,
    lines_base: usize,
    pub(super) words: Vec<u32>,
    pub(super) lines: Vec<Line>,
    pub(super) deep: DeepBuilder,
    /// Hops and deep blocks do not fit into codes.
    codes_overflow: bool,
    /// Tables or leaves are too many for an entry to name.
    places_overflow: bool,
}

/// Intervals `from..=to` of cells, that is a block beginning with cell `first`.
#[derive(Clone, Copy)]
struct Block {
    first: u64,
    from: usize,
    to: usize,
    depth: u32,
}

impl<'a, L: Leaf> Parts<'a, L> {
    pub(super) fn new(
        routes: &'a Routes<u128>,
        grain: u32,
        deep: DeepBuilder,
        words_base: usize,
        lines_base: usize,
    ) -> Self {
        Self {
            form: PhantomData,
            routes,
            grain,
            words_base: words_base.next_multiple_of(1 << grain),
            lines_base,
            words: Vec::new(),
            lines: Vec::new(),
            deep,
            codes_overflow: routes.hop_count() > L::TOP,
            places_overflow: false,
        }
    }

    /// Whether something does not fit: then the words and lines are good for nothing.
    pub(super) fn overflows(&self) -> bool {
        let room = L::TOP.saturating_sub(self.routes.hop_count()) as usize;
        self.codes_overflow || self.places_overflow || self.deep.blocks() > room
    }

    /// Where the words go.
    pub(super) fn words_at(&self) -> usize {
        self.words_base
    }

    /// The word of a root entry; `at` is the interval where it begins, and afterwards the one where
    /// the next one does.
    pub(super) fn root_word(&mut self, cells: &Cells, entry: u64, at: &mut usize) -> u32 {
        self.child(cells, entry << (CELL_BITS - ROOT_BITS), ROOT_BITS, LEVELS, at)
    }

    fn child(
        &mut self,
        cells: &Cells,
        first: u64,
        depth: u32,
        levels: usize,
        at: &mut usize,
    ) -> u32 {
        let last = first | low(CELL_BITS - depth);
        let from = *at;
        while cells.lasts[*at] < last {
            *at += 1;
        }
        let to = *at;
        *at += usize::from(cells.lasts[to] == last);
        self.block(cells, Block { first, from, to, depth }, levels)
    }

    fn block(&mut self, cells: &Cells, block: Block, levels: usize) -> u32 {
        let Block { first, from, to, depth } = block;
        let ends = &cells.lasts[from..to];
        let entry = match plan::<L>(ends, depth, levels) {
            Plan::Constant => Entry::Constant(self.code(cells, from)),
            Plan::Lines => self.lines(cells, block),
            Plan::Deep => {
                let addr = u128::from(first) << (128 - CELL_BITS);
                Entry::Constant(self.deep_code(addr, depth))
            }
            Plan::Table(bits) => {
                let grain = 1usize << self.grain;
                let start = self.words.len();
                self.words.resize(start + (1usize << bits).next_multiple_of(grain), 0);
                let mut at = from;
                for child in 0..1 << bits {
                    let first = first + ((child as u64) << (CELL_BITS - depth - bits));
                    let word = self.child(cells, first, depth + bits, levels - 1, &mut at);
                    self.words[start + child] = word;
                }
                let base = (self.words_base + start) >> self.grain;
                self.places_overflow |= base >= BASES_MAX;
                Entry::Table { base, from: depth - ROOT_BITS, down: 32 - bits }
            }
        };
        if self.codes_overflow || self.places_overflow {
            Entry::Constant(0).word()
        } else {
            entry.word()
        }
    }

    fn lines(&mut self, cells: &Cells, Block { from, to, .. }: Block) -> Entry {
        let line = self.lines_base + self.lines.len();
        let needed = lines::<L>(to - from).expect("planned so");
        self.places_overflow |= line + needed > LINES_MAX;
        if needed == 1 {
            self.leaf(cells, from, to);
            return Entry::Leaf(line);
        }
        // As full as can be: the last leaf takes what is left.
        let firsts = (from..=to).step_by(L::KEYS + 1);
        let mut node = [NO_KEY; 16];
        for (key, next) in node.iter_mut().zip(firsts.clone().skip(1)) {
            *key = cells.lasts[next - 1] as u32;
        }
        self.lines.push(node);
        for first in firsts {
            self.leaf(cells, first, to.min(first + L::KEYS));
        }
        Entry::Node(line)
    }

    /// A leaf of the intervals `from..=to`.
    fn leaf(&mut self, cells: &Cells, from: usize, to: usize) {
        let mut keys = [NO_KEY; 16];
        for (key, &last) in keys.iter_mut().zip(&cells.lasts[from..to]) {
            *key = last as u32;
        }
        let codes: [u32; 16] =
            std::array::from_fn(|i| if from + i <= to { self.code(cells, from + i) } else { 0 });
        self.lines.push(L::line(&keys[..to - from], codes.into_iter().take(to - from + 1)));
    }

    fn code(&mut self, cells: &Cells, interval: usize) -> u32 {
        match cells.codes[interval] {
            DIVIDED => {
                let addr = u128::from(cells.lasts[interval]) << (128 - CELL_BITS);
                self.deep_code(addr, CELL_BITS)
            }
            code => code,
        }
    }

    /// The code of a new deep block.
    fn deep_code(&mut self, addr: u128, depth: u32) -> u32 {
        let prefix = Prefix::masked(addr, depth as u8).expect("shorter than an address");
        let block = self.deep.push(self.routes.ranges_within(prefix));
        let room = (L::TOP - self.routes.hop_count().min(L::TOP)) as usize;
        self.codes_overflow |= block >= room;
        L::TOP.wrapping_sub(block as u32)
    }
}

/// The hop of a code that is not a deep block's.
#[inline(always)]
pub(super) fn hop(code: u32) -> Hop {
    Hop::from_bits(code.wrapping_sub(1))
}
