use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Row, Simd, prefetch_read};

use super::leaf::{Leaf, Line, Narrow, Wide};
use super::lookup::One;
use super::word::{CODE_MAX, Entry, NODE, TABLES};
use super::{LEVELS, Tables};

// How batches are shaped, and why (Zen 4; the numbers are in docs/adr/0006-wideleaf.md):
//
// - Stages over rows of 16 lookups: root, two tables, then nodes, leaves and codes, each stage for all
//   rows of a block before the next one, so that no lookup waits for its own cache line alone.
// - Words of tables are gathered by the vector unit. That saves the instructions around a load, which
//   is what these stages spend; rows stay in registers.
// - A line is compared with the key as a whole. The mask is not moved to a general register, which
//   takes longer than the comparison, but stored from the mask register; a row's masks are then read
//   as a vector, whose leading zeros are the ranks: a tenth faster.
// - Lookups that end in a constant leave before the lines: the others' words are moved together.
// - Few addresses that the root does not answer (a scan of unused space) are looked up one by one.
// - Row operations are written out (`fibula_simd::Row`): left to the compiler, the same loops became
//   scatters to the stack, or branches, at a third of the rate.

/// Lookups of a row: 32-bit lanes of a vector.
const ROW: usize = 16;
/// Rows that go through the stages together.
const ROWS: usize = 8;
/// So few lookups go one by one.
const FEW: usize = 10;
/// How far ahead keys are asked for.
const AHEAD: usize = 4096;

type AddrRow = [u128; ROW];
type HopRow = [Hop; ROW];

pub(super) struct Batch<'a, L: Leaf> {
    pub(super) tables: &'a Tables<L>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<L: Leaf> Kernel for Batch<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        let search = Search { simd, tables };
        if addrs.len() <= FEW {
            for (&addr, to) in addrs.iter().zip(hops) {
                *to = One { tables, addr }.run(simd);
            }
            return;
        }
        if addrs.len() < ROW {
            let (mut row, mut found) = ([0; ROW], [[Hop::NONE; ROW]]);
            row[..addrs.len()].copy_from_slice(addrs);
            search.block(&[row], None, &mut found, None);
            search.find_deep(&[row], &mut found);
            hops.copy_from_slice(&found[0][..addrs.len()]);
            return;
        }
        // What is left behind whole rows goes as the row that ends with it: some are looked up twice.
        let (last, mut last_hops) = (addrs.last_chunk(), [Hop::NONE; ROW]);
        let ragged = !addrs.len().is_multiple_of(ROW);
        {
            let (rows, _) = addrs.as_chunks::<ROW>();
            let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
            let (blocks, rows) = rows.as_chunks::<ROWS>();
            let (hop_blocks, hop_rows) = hop_rows.as_chunks_mut::<ROWS>();
            for (rows, hop_rows) in blocks.iter().zip(hop_blocks) {
                search.block(rows, None, hop_rows, None);
            }
            if ragged {
                search.block(rows, last, hop_rows, Some(&mut last_hops));
            } else if !rows.is_empty() {
                search.block(rows, None, hop_rows, None);
            }
        }
        if let (true, Some(to)) = (ragged, hops.last_chunk_mut()) {
            *to = last_hops;
        }
        let (rows, _) = addrs.as_chunks::<ROW>();
        let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
        search.find_deep(rows, hop_rows);
        if let (true, Some(last), Some(to)) = (ragged, last, hops.last_chunk_mut()) {
            search.find_deep(core::slice::from_ref(last), core::slice::from_mut(to));
        }
    }
}

struct Search<'a, L: Leaf, S> {
    simd: S,
    tables: &'a Tables<L>,
}

/// Words of lookups: room for all, and for a row more, since rows are written whole.
struct List([u32; ROW * (ROWS + 1)]);

impl List {
    #[inline(always)]
    fn new() -> Self {
        Self([0; ROW * (ROWS + 1)])
    }
    #[inline(always)]
    fn row<S: Simd>(&self, simd: S, at: usize) -> S::Row {
        simd.row(self.0[at..].first_chunk().expect("room for a row more"))
    }
    #[inline(always)]
    fn put<R: Row>(&mut self, at: usize, row: R) {
        *self.0[at..].first_chunk_mut().expect("room for a row more") = row.words();
    }
}

impl<L: Leaf, S: Simd> Search<'_, L, S> {
    #[inline(always)]
    fn block(
        &self,
        addrs: &[AddrRow],
        last: Option<&AddrRow>,
        hops: &mut [HopRow],
        last_hops: Option<&mut HopRow>,
    ) {
        let simd = self.simd;
        let sixteen = simd.splat_row(16);
        let (mut keys, mut words) = ([simd.splat_row(0); ROWS], [simd.splat_row(0); ROWS]);
        let mut open = [0; ROWS];
        let rows = (addrs.len() + usize::from(last.is_some())).min(ROWS);
        for i in 0..rows {
            let Some(addrs) = addrs.get(i).or(last) else { break };
            for line in 0..ROW / 4 {
                prefetch_read(addrs, 4 * line + AHEAD / size_of::<u128>());
            }
            let (high, low) = simd.high_words(addrs);
            keys[i] = high.shl(sixteen).or(low.shr(sixteen));
            // SAFETY: the root has a word for every 16 bits.
            words[i] = unsafe { self.read(high.shr(sixteen)) };
            open[i] = !words[i].top_bits();
        }
        let len = open.iter().map(|open| open.count_ones()).sum::<u32>() as usize;
        let few = len * 16 <= rows * ROW;
        if few {
            // Looked up one by one below.
        } else if len * 2 > rows * ROW {
            self.resolve(&keys, &mut words, rows);
        } else {
            self.resolve_few(&keys, &mut words, &open, rows);
        }
        let (code, minus_one) = (simd.splat_row(CODE_MAX), simd.splat_row(u32::MAX));
        let rows = addrs.iter().chain(last).zip(hops.iter_mut().chain(last_hops));
        for ((addrs, hops), (words, &open)) in rows.zip(words.iter().zip(&open)) {
            let bits = words.and(code).add(minus_one).words();
            for (to, bits) in hops.iter_mut().zip(bits) {
                *to = Hop::from_bits(bits);
            }
            if few {
                self.one_by_one(addrs, hops, open);
            }
        }
    }

    /// Looks up the addresses that `open` has a bit for.
    #[inline(always)]
    fn one_by_one(&self, addrs: &AddrRow, hops: &mut HopRow, mut open: u16) {
        while open != 0 {
            let lane = open.trailing_zeros() as usize % ROW;
            hops[lane] = One { tables: self.tables, addr: addrs[lane] }.run(self.simd);
            open &= open - 1;
        }
    }

    /// Makes constants of few words that are none: they are moved together first.
    #[inline(always)]
    fn resolve_few(
        &self,
        keys: &[S::Row; ROWS],
        words: &mut [S::Row; ROWS],
        open: &[u16; ROWS],
        rows: usize,
    ) {
        let (mut few_keys, mut few_words) = (List::new(), List::new());
        let mut len = 0;
        for i in 0..rows {
            few_keys.put(len, keys[i].compress(open[i]));
            few_words.put(len, words[i].compress(open[i]));
            len += open[i].count_ones() as usize;
        }
        // The lanes behind the final one's are constants: they name nothing.
        few_words.put(len, self.simd.splat_row(Entry::Constant(0).word()));
        let few = len.div_ceil(ROW);
        let (mut keys, mut open_words) = (*keys, *words);
        for (i, (keys, words)) in keys.iter_mut().zip(&mut open_words).take(few).enumerate() {
            *keys = few_keys.row(self.simd, i * ROW);
            *words = few_words.row(self.simd, i * ROW);
        }
        self.resolve(&keys, &mut open_words, few);
        for (i, &words) in open_words.iter().take(few).enumerate() {
            few_words.put(i * ROW, words);
        }
        let mut at = 0;
        for i in 0..rows {
            words[i] = few_words.row(self.simd, at).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// Makes constants of all words.
    #[inline(always)]
    fn resolve(&self, keys: &[S::Row; ROWS], words: &mut [S::Row; ROWS], rows: usize) {
        for _ in 0..LEVELS {
            for i in 0..rows {
                words[i] = self.step(keys[i], words[i]);
            }
        }
        let (mut nodes, mut leaves, mut searched) = (List::new(), List::new(), List::new());
        let constant = self.simd.splat_row(Entry::Constant(0).word());
        if S::ISA < Isa::Avx512 {
            // Moving words together costs more than to search line 0 for constants.
            for i in 0..rows {
                let (node, leaf) = lines(self.simd, words[i]);
                let none = self.simd.splat_row(0);
                nodes.put(i * ROW, node.if_below(words[i], constant, none));
                leaves.put(i * ROW, leaf.if_below(words[i], constant, none));
                searched.put(i * ROW, keys[i]);
            }
            self.search(&searched, &nodes, &mut leaves, rows * ROW);
            for (i, words) in words[..rows].iter_mut().enumerate() {
                let codes = leaves.row(self.simd, i * ROW).or(constant);
                *words = codes.if_below(*words, constant, *words);
            }
            return;
        }
        let mut open = [0; ROWS];
        let mut len = 0;
        for i in 0..rows {
            open[i] = !words[i].top_bits();
            let (node, leaf) = lines(self.simd, words[i]);
            nodes.put(len, node.compress(open[i]));
            leaves.put(len, leaf.compress(open[i]));
            searched.put(len, keys[i].compress(open[i]));
            len += open[i].count_ones() as usize;
        }
        // The lanes behind the final one's: line 0.
        nodes.put(len, self.simd.splat_row(0));
        leaves.put(len, self.simd.splat_row(0));
        self.search(&searched, &nodes, &mut leaves, len);
        let mut at = 0;
        for i in 0..rows {
            words[i] = leaves.row(self.simd, at).or(constant).expand(open[i], words[i]);
            at += open[i].count_ones() as usize;
        }
    }

    /// Follows the words that name a table.
    #[inline(always)]
    fn step(&self, keys: S::Row, words: S::Row) -> S::Row {
        let splat = |word| self.simd.splat_row(word);
        let base = words.shr(splat(10)).shl(splat(self.tables.grain));
        let (from, down) = (words.and(splat(31)), words.shr(splat(5)).and(splat(31)));
        let next = base.add(keys.shl(from).shr(down));
        // Words of other kinds read the root's first word, which is always there, and stay.
        let places = next.if_below(words, splat(TABLES), splat(0));
        // SAFETY: a table's entry names words that are there.
        let read = unsafe { self.read(places) };
        read.if_below(words, splat(TABLES), words)
    }

    /// The words at these places.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn read(&self, places: S::Row) -> S::Row {
        // SAFETY: the caller's; entries name no place from 2^31 on.
        unsafe { places.gather(self.tables.words.as_ptr()) }
    }

    /// Puts the codes of the keys in place of the lines of their leaves, or of their nodes' first ones.
    #[inline(always)]
    fn search(&self, keys: &List, nodes: &List, leaves: &mut List, len: usize) {
        let simd = self.simd;
        let mut verdicts = [S::Verdict::default(); ROW * (ROWS + 1)];
        let keys = &keys.0[..len];
        for ((to, &node), &key) in verdicts.iter_mut().zip(&nodes.0).zip(keys) {
            // SAFETY: the lines that an entry names are there, and so is line 0.
            let node = unsafe { self.line(node) };
            *to = simd.below32::<16>(node, simd.splat32(key));
        }
        let (rows, _) = verdicts.as_chunks_mut::<ROW>();
        for (at, row) in rows[..len.div_ceil(ROW)].iter().enumerate() {
            let first = leaves.row(simd, at * ROW);
            leaves.put(at * ROW, first.add(simd.ranks::<16>(row)));
        }
        let verdicts = rows.as_flattened_mut();
        for ((to, &leaf), &key) in verdicts.iter_mut().zip(&leaves.0).zip(keys) {
            // SAFETY: the lines that an entry names are there. A rank is no larger than the number of
            // keys, and behind a node are as many leaves and one more.
            let leaf = unsafe { self.line(leaf) };
            *to = L::below(simd, leaf, simd.splat32(key));
        }
        let (rows, _) = verdicts.as_chunks::<ROW>();
        for (at, row) in rows[..len.div_ceil(ROW)].iter().enumerate() {
            let codes = self.codes(leaves.row(simd, at * ROW), L::ranks(simd, row));
            leaves.put(at * ROW, codes);
        }
    }

    /// The codes of these ranks in the leaves of these lines.
    #[inline(always)]
    fn codes(&self, leaves: S::Row, ranks: S::Row) -> S::Row {
        let splat = |word| self.simd.splat_row(word);
        let lines = self.tables.lines.as_ptr();
        if size_of::<L::Code>() == 2 {
            let places = leaves.shl(splat(5)).add(ranks.add(splat(2 * L::KEYS as u32)));
            // SAFETY: the leaves are there; a leaf has a code for each rank, and as many bytes more
            // than its last code takes as `gather16` wants (asserted below).
            unsafe { places.gather16(lines.cast()) }
        } else {
            let places = leaves.shl(splat(4)).add(ranks.add(splat(L::KEYS as u32)));
            // SAFETY: the leaves are there, and a leaf has a code for each rank.
            unsafe { places.gather(lines.cast()) }
        }
    }

    /// # Safety
    /// The line is there.
    #[inline(always)]
    unsafe fn line(&self, line: u32) -> &Line {
        // SAFETY: the caller's.
        unsafe { self.tables.lines.get_unchecked(line as usize) }
    }

    /// Finds what codes of deep blocks stand for: such codes have become hops beyond any hop's number.
    #[inline(always)]
    fn find_deep(&self, addrs: &[AddrRow], hops: &mut [HopRow]) {
        let deep = &self.tables.deep;
        let blocks = deep.blocks() as u32;
        if blocks == 0 {
            return;
        }
        let block = |hop: &Hop| L::TOP.wrapping_sub(hop.to_bits().wrapping_add(1));
        for (addrs, hops) in addrs.iter().zip(hops) {
            // Looked at together, so that there is one branch, seldom taken.
            if hops.iter().fold(false, |any, hop| any | (block(hop) < blocks)) {
                for (addr, hop) in addrs.iter().zip(hops) {
                    let block = block(hop);
                    if block < blocks {
                        *hop = deep.find(block as usize, *addr);
                    }
                }
            }
        }
    }
}

/// The lines of nodes, or line 0, whose rank is always 0, and of leaves: of nodes the first one. Not for
/// constants.
#[inline(always)]
fn lines<S: Simd>(simd: S, words: S::Row) -> (S::Row, S::Row) {
    let line = words.and(simd.splat_row(NODE - 1));
    let is_node = words.shr(simd.splat_row(NODE.trailing_zeros())).and(simd.splat_row(1));
    (line.if_below(simd.splat_row(0), is_node, simd.splat_row(0)), line.add(is_node))
}

const _: () = assert!(4 * Narrow::KEYS + 2 * (Narrow::KEYS + 1) + 2 <= size_of::<Line>());
const _: () = assert!(4 * Wide::KEYS + 4 * (Wide::KEYS + 1) <= size_of::<Line>());
