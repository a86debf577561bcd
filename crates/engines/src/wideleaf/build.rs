use fibula_core::{BuildError, Hop, Prefix, Range, Routes};
use fibula_simd::Table;

use super::deep::Deep;
use super::plan::{Needs, Plan, Planner, low};
use super::record::{Byte, ByteLine, Codes, Narrow, NarrowLine, Records, Unit, Wide, WideLine};
use super::word::{BYTES_MAX, Entry, WORDS_MAX};
use super::{
    CELL_BITS, Config, Form, KEY_BITS, LEVELS, NAME, ROOT_BITS, Tables, Variant, Wideleaf,
};

pub(super) fn build(routes: &Routes<u128>, config: &Config) -> Result<Wideleaf, BuildError> {
    let level = config.isa.level();
    let variant = config.variant.unwrap_or_else(|| Variant::here(config.isa));
    let form = if variant.lines {
        build_form::<ByteLine, NarrowLine, WideLine>(
            routes,
            Form::ByteLine,
            Form::NarrowLine,
            Form::WideLine,
        )
    } else {
        build_form::<Byte, Narrow, Wide>(routes, Form::Byte, Form::Narrow, Form::Wide)
    };
    Ok(Wideleaf { form: form?, level, variant: config.variant })
}

/// Builds the tables with the narrowest codes that suffice.
fn build_form<A: Codes, B: Codes, C: Codes>(
    routes: &Routes<u128>,
    byte: impl FnOnce(Tables<A>) -> Form,
    narrow: impl FnOnce(Tables<B>) -> Form,
    wide: impl FnOnce(Tables<C>) -> Form,
) -> Result<Form, BuildError> {
    let cells = Cells::new::<A::Unit>(routes.ranges());
    Ok(if let Some(tables) = build_as(routes, &cells)? {
        byte(tables)
    } else if let Some(tables) = build_as(routes, &cells)? {
        narrow(tables)
    } else if let Some(tables) = build_as(routes, &cells)? {
        wide(tables)
    } else {
        return Err(too_large(routes));
    })
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
pub(super) fn build_as<C: Codes>(
    routes: &Routes<u128>,
    cells: &Cells,
) -> Result<Option<Tables<C>>, BuildError> {
    let mut parts = Parts::<C>::new(routes, 0, 1 << ROOT_BITS, 1);
    if parts.overflows() {
        return Ok(None);
    }
    let mut at = 0;
    let root: Vec<u32> = (0..1 << ROOT_BITS)
        .map(|entry| parts.child(cells, entry << KEY_BITS, ROOT_BITS, LEVELS, &mut at))
        .collect();
    if parts.overflows() {
        return Ok(None);
    }
    let words = Table::with(root.len() + parts.words.len(), |words| {
        let (head, tail) = words.split_at_mut(root.len());
        head.copy_from_slice(&root);
        tail.copy_from_slice(&parts.words);
    });
    // The first unit has no record.
    let records = parts.records.units();
    let units = Table::with(records.len() + 1, |units| units[1..].copy_from_slice(records));
    Ok(Some(Tables::new(words, units, Table::from_vec(parts.windows))))
}

/// The table cut into cells, the blocks of the first [`CELL_BITS`] address bits: intervals of cells
/// with one code each.
pub(super) struct Cells {
    /// The last cells, ascending.
    lasts: Vec<u64>,
    /// Hops plus one, or [`DIVIDED`].
    codes: Vec<u32>,
    needs: Needs,
    /// The deep block to whose window they belong.
    window: Option<Deep>,
}

/// The code of a cell that longer routes divide.
const DIVIDED: u32 = u32::MAX;

impl Cells {
    /// The intervals of the ranges, which begin and end with a cell.
    pub(super) fn new<U: Unit>(ranges: impl Iterator<Item = Range<u128>>) -> Self {
        let (mut lasts, mut codes) = (Vec::new(), Vec::new());
        let mut push = |last, code| {
            lasts.push(last);
            codes.push(code);
        };
        let cell = |addr: u128| (addr >> (128 - CELL_BITS)) as u64;
        let low = u128::MAX >> CELL_BITS;
        for Range { first, last, hop } in ranges {
            // A cell that began in an earlier range is divided, and was pushed already.
            let from = cell(first) + u64::from(first & low != 0);
            let whole = if last & low == low { cell(last) + 1 } else { cell(last) };
            if from < whole {
                push(whole - 1, hop.to_bits().wrapping_add(1));
            }
            if last & low != low && from <= cell(last) {
                push(cell(last), DIVIDED);
            }
        }
        let needs = Needs::new(&lasts, U::KEYS_MAX, |i| codes[i] == DIVIDED);
        Self { needs, lasts, codes, window: None }
    }

    /// The intervals of a deep block.
    fn in_window<U: Unit>(window: Deep, intervals: &[Range<u128>]) -> Self {
        Self { window: Some(window), ..Self::new::<U>(window.unfold(intervals)) }
    }

    /// The addresses of a block.
    fn prefix(&self, first: u64, depth: u32) -> Prefix<u128> {
        let addr = u128::from(first) << (128 - CELL_BITS);
        let (addr, len) = self.window.map_or((addr, depth), |window| window.fold(addr, depth));
        Prefix::masked(addr, len as u8).expect("it has several addresses")
    }
}

/// Compiled tables and records, to be placed after so many windows of deep blocks, words, and units of records.
pub(super) struct Parts<'a, C: Codes> {
    routes: &'a Routes<u128>,
    /// The place among the routes of the latest deep block.
    near: usize,
    windows_base: usize,
    pub(super) windows: Vec<Deep>,
    words_base: usize,
    pub(super) words: Vec<u32>,
    pub(super) records: Records<C>,
    planner: Planner,
    /// Whether hops and deep blocks are too many for the codes.
    codes_overflow: bool,
    /// Whether tables or records are too many for entries to address.
    places_overflow: bool,
}

/// The block with intervals `from..=to` of cells, which begins with cell `first`.
#[derive(Clone, Copy)]
struct Block {
    first: u64,
    from: usize,
    to: usize,
    depth: u32,
}

impl<'a, C: Codes> Parts<'a, C> {
    pub(super) fn new(
        routes: &'a Routes<u128>,
        windows_base: usize,
        words_base: usize,
        units_base: usize,
    ) -> Self {
        Self {
            routes,
            near: 0,
            windows_base,
            windows: Vec::new(),
            words_base,
            words: Vec::new(),
            records: Records::new(units_base),
            planner: Planner::default(),
            codes_overflow: routes.hop_count() > C::TOP,
            places_overflow: false,
        }
    }

    /// Whether codes or places do not fit; then the words and records must not be used.
    pub(super) fn overflows(&self) -> bool {
        let room = C::TOP.saturating_sub(self.routes.hop_count()) as usize;
        let windows = self.windows_base + self.windows.len();
        self.codes_overflow || self.places_overflow || windows > room
    }

    /// Compiles a block with at most `levels` tables in sequence, and returns its word. `at` is the interval where the
    /// block begins, and afterwards the one where the next block begins.
    pub(super) fn block_word(
        &mut self,
        cells: &Cells,
        block: Prefix<u128>,
        levels: usize,
        at: &mut usize,
    ) -> u32 {
        let first = (block.first() >> (128 - CELL_BITS)) as u64;
        self.child(cells, first, block.len().into(), levels, at)
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
        let ends = cells.needs.ends(&cells.lasts, from, to);
        // A whole window would become the same window again.
        let may_be_deep = cells.window.is_none() || depth > ROOT_BITS;
        let entry = match self.planner.plan::<C>(ends, depth, levels, may_be_deep) {
            Plan::Constant => Entry::Constant(self.code(cells, from)),
            Plan::Record => self.record(cells, block),
            Plan::Deep => Entry::Constant(self.deep_code(cells.prefix(first, depth))),
            Plan::Table(bits) => {
                let start = self.words.len();
                self.words.resize(start + (1 << bits), 0);
                let mut at = from;
                for child in 0..1 << bits {
                    let first = first + ((child as u64) << (CELL_BITS - depth - bits));
                    let word = self.child(cells, first, depth + bits, levels - 1, &mut at);
                    self.words[start + child] = word;
                }
                let base = self.words_base + start;
                self.places_overflow |= base + (1 << bits) > WORDS_MAX;
                Entry::Table { base, bits }
            }
        };
        if self.codes_overflow || self.places_overflow {
            Entry::Constant(0).word()
        } else {
            entry.word()
        }
    }

    fn record(&mut self, cells: &Cells, Block { from, to, depth, .. }: Block) -> Entry {
        // A key is the 16 bits after the block's prefix.
        let key = |&last: &u64| (last << (64 - CELL_BITS + depth) >> 48) as u16;
        let keys: Vec<u16> = cells.lasts[from..to].iter().map(key).collect();
        let codes: Vec<u32> = (from..=to).map(|interval| self.code(cells, interval)).collect();
        let byte = self.records.push(&keys, &codes);
        self.places_overflow |= byte >= BYTES_MAX;
        Entry::Record { byte, keys: keys.len() }
    }

    fn code(&mut self, cells: &Cells, interval: usize) -> u32 {
        match cells.codes[interval] {
            DIVIDED => self.deep_code(cells.prefix(cells.lasts[interval], CELL_BITS)),
            code => code,
        }
    }

    /// Compiles a deep block and returns its code.
    fn deep_code(&mut self, block: Prefix<u128>) -> u32 {
        let number = self.windows.len();
        let code = C::TOP.wrapping_sub((self.windows_base + number) as u32);
        self.codes_overflow |= code <= self.routes.hop_count();
        if self.codes_overflow {
            return 0;
        }
        let ranges = self.routes.ranges_within_near(block, &mut self.near);
        let intervals: Vec<Range<u128>> = ranges.collect();
        let window = Deep::around(&intervals);
        self.windows.push(window);
        let cells = Cells::in_window::<C::Unit>(window, &intervals);
        self.windows[number].word = self.child(&cells, 0, ROOT_BITS, LEVELS, &mut 0);
        code
    }
}

/// The hop of a code that is not a deep block's.
#[inline(always)]
pub(super) fn hop(code: u32) -> Hop {
    Hop::from_bits(code.wrapping_sub(1))
}
