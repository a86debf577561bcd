use fibula_core::Hop;
use fibula_simd::{Isa, Kernel, Row, Simd, prefetch_read};

use super::Tables;
use super::batch::{AddrRow, HopRow, ROW, Stages};
use super::deep::InBlock;
use super::lookup::One;
use super::record::Codes;

// The shape of batches, and the reasons (Zen 4; the numbers are in docs/adr/0006-wideleaf.md):
//
// - A block executes each stage for rows of 16 lookups: root, three tables, then records and codes. Each stage
//   is executed for all rows before the next one, so that the cache misses of lookups overlap: `batch.rs`.
// - Blocks have eight rows. For smaller batches the same code is compiled with shorter loops, for one row, two
//   and four, and for eight addresses, half a row.
// - If the root answers nearly all addresses (a scan of unused space), the others are looked up one by one.
//   This is decided for four rows together: in eight rows, both kinds are mixed more often.

/// Rows of a block.
const ROWS: usize = 8;
/// Rows for which it is decided together whether to look up one by one the addresses that the root does not answer.
const ROOT_ROWS: usize = 4;
/// Half a row.
pub(super) const HALF_ROW: usize = ROW / 2;
/// The most addresses of a row that are searched in deep blocks one by one.
const DEEP_FEW: u32 = 2;
/// The most addresses that are searched in deep blocks together.
const DEEP_TOGETHER: usize = 128;
/// How many bytes ahead addresses are prefetched.
pub(super) const AHEAD: usize = 4096;

pub(super) struct Batch<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes> Kernel for Batch<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        if self.look_up(simd) {
            self.tables.find_deep(self.addrs, self.hops);
        }
    }
}

impl<C: Codes> Batch<'_, C> {
    /// Looks up all addresses except in deep blocks; returns whether there are codes of deep blocks.
    #[inline(always)]
    fn look_up<S: Simd>(&mut self, simd: S) -> bool {
        let Self { tables, addrs, hops } = self;
        let search = BlockSearch { stages: Stages { simd, tables } };
        // Without AVX-512, a row takes longer than plain loads for its addresses.
        if S::ISA == Isa::Scalar || !S::ROWS_WHOLE && addrs.len() <= ROW {
            return tables.plain(simd, addrs, hops);
        }
        if addrs.len() < ROW {
            return search.less_than_a_row(addrs, hops);
        }
        // The addresses after the last whole row are looked up in a row that ends with them; some are looked up twice.
        let (last, mut last_hops) = (addrs.last_chunk(), [Hop::NONE; ROW]);
        let is_ragged = !addrs.len().is_multiple_of(ROW);
        let any_deep;
        {
            let (rows, _) = addrs.as_chunks::<ROW>();
            let (hop_rows, _) = hops.as_chunks_mut::<ROW>();
            let last = last.filter(|_| is_ragged);
            any_deep = search.rows(rows, last, hop_rows, is_ragged.then_some(&mut last_hops));
        }
        if let (true, Some(to)) = (is_ragged, hops.last_chunk_mut()) {
            *to = last_hops;
        }
        any_deep
    }
}

struct BlockSearch<'a, C: Codes, S> {
    stages: Stages<'a, C, S>,
}

impl<C: Codes, S: Simd> BlockSearch<'_, C, S> {
    /// Looks up fewer addresses than a row has, padded to a row.
    #[inline(always)]
    fn less_than_a_row(&self, addrs: &[u128], hops: &mut [Hop]) -> bool {
        let (mut row, mut row_hops) = ([0; ROW], [Hop::NONE; ROW]);
        let to = std::slice::from_mut(&mut row_hops);
        match addrs.as_array::<HALF_ROW>() {
            // A copy of constant size is a few instructions.
            Some(addrs) => row[..HALF_ROW].copy_from_slice(addrs),
            None => row[..addrs.len()].copy_from_slice(addrs),
        }
        let any_deep = if addrs.len() <= HALF_ROW {
            self.block::<1, { 2 * ROW }, HALF_ROW>(&[row], None, to, None)
        } else {
            self.block::<1, { 2 * ROW }, ROW>(&[row], None, to, None)
        };
        match hops.as_mut_array::<HALF_ROW>() {
            Some(hops) => hops.copy_from_slice(&row_hops[..HALF_ROW]),
            None => hops.copy_from_slice(&row_hops[..hops.len()]),
        }
        any_deep
    }

    /// Looks up these rows, and `last` if there is one.
    #[inline(always)]
    fn rows(
        &self,
        rows: &[AddrRow],
        last: Option<&AddrRow>,
        hops: &mut [HopRow],
        last_hops: Option<&mut HopRow>,
    ) -> bool {
        match rows.len() + usize::from(last.is_some()) {
            1 => return self.block::<1, { 2 * ROW }, ROW>(rows, last, hops, last_hops),
            2 => return self.block::<2, { 3 * ROW }, ROW>(rows, last, hops, last_hops),
            3..=4 => return self.block::<4, { 5 * ROW }, ROW>(rows, last, hops, last_hops),
            _ => {}
        }
        // A short block does not fill the stages: its rows and those of the preceding whole block are divided
        // between two blocks, both longer than half.
        let all = rows.len() + usize::from(last.is_some());
        let left = match all % ROWS {
            0 => usize::from(last.is_some()) * ROWS,
            short if all > ROWS => short + ROWS,
            short => short,
        };
        let ((blocks, rows), (hop_blocks, hops)) =
            (rows.split_at(all - left), hops.split_at_mut(all - left));
        let (blocks, _) = blocks.as_chunks::<ROWS>();
        let (hop_blocks, _) = hop_blocks.as_chunks_mut::<ROWS>();
        let mut any_deep = false;
        for (rows, hops) in blocks.iter().zip(hop_blocks) {
            any_deep |= self.block::<ROWS, { ROW * (ROWS + 1) }, ROW>(rows, None, hops, None);
        }
        let before = if left > ROWS { left / 2 } else { 0 };
        let ((front, rows), (hop_front, hops)) = (rows.split_at(before), hops.split_at_mut(before));
        if !front.is_empty() {
            any_deep |= self.block::<ROWS, { ROW * (ROWS + 1) }, ROW>(front, None, hop_front, None);
        }
        if left > 0 {
            any_deep |= self.block::<ROWS, { ROW * (ROWS + 1) }, ROW>(rows, last, hops, last_hops);
        }
        any_deep
    }

    /// Looks up at most `N` rows; if there is only one, its first `LIVE` addresses. `L` is the length of lists. Returns
    /// whether codes of deep blocks remain in the result.
    #[inline(always)]
    fn block<const N: usize, const L: usize, const LIVE: usize>(
        &self,
        addrs: &[AddrRow],
        last: Option<&AddrRow>,
        hops: &mut [HopRow],
        last_hops: Option<&mut HopRow>,
    ) -> bool {
        let Stages { simd, tables } = self.stages;
        let sixteen = simd.splat_row(16);
        let (mut keys, mut words) = ([simd.splat_row(0); N], [simd.splat_row(0); N]);
        let mut open = [0; N];
        let rows = (addrs.len() + usize::from(last.is_some())).min(N);
        for i in 0..rows {
            let Some(addrs) = addrs.get(i).or(last) else { break };
            for line in 0..LIVE / 4 {
                prefetch_read(addrs, 4 * line + AHEAD / size_of::<u128>());
            }
            let (high, low) = sixteen.high_words(addrs);
            keys[i] = high.shl(sixteen).or(low.shr(sixteen));
            words[i] = self.stages.root::<LIVE>(addrs);
            open[i] = self.stages.open(words[i]);
        }
        let count = |open: &[u16]| open.iter().map(|open| open.count_ones()).sum::<u32>() as usize;
        // The lanes that are looked up one by one.
        let mut singles = [0; N];
        for (open, singles) in open.chunks_mut(ROOT_ROWS).zip(singles.chunks_mut(ROOT_ROWS)) {
            if count(open) * if S::ROWS_WHOLE { 16 } else { 3 } <= open.len() * LIVE {
                singles.copy_from_slice(open);
                open.fill(0);
            }
        }
        let len = count(&open);
        if N <= 2 && len > 0 || len * 2 > rows * ROW {
            self.stages.resolve::<N, L, LIVE>(&mut keys, &mut words, rows);
            singles = [0; N];
        } else if len > 0 {
            self.stages.resolve_few::<N, L>(&keys, &mut words, &open, rows);
        }
        let mut many_deep = false;
        let rows = addrs.iter().chain(last).zip(hops.iter_mut().chain(last_hops));
        for ((addrs, hops), (&words, &singles)) in rows.zip(words.iter().zip(&singles)) {
            many_deep |= tables.store(simd, addrs, hops, words, singles);
        }
        many_deep
    }
}

impl<C: Codes> Tables<C> {
    /// Whether the code is that of a deep block.
    #[inline(always)]
    pub(super) fn is_deep(&self, code: u32) -> bool {
        // Codes are at most `C::TOP`.
        C::TOP.wrapping_sub(code) < self.deep.blocks() as u32
    }

    /// Stores the hops of a row whose words are resolved, and looks up the addresses that `open` has a bit for one by one.
    /// Returns whether codes of deep blocks remain in the result.
    #[inline(always)]
    pub(super) fn store<S: Simd, R: Row<L>, const L: usize>(
        &self,
        simd: S,
        addrs: &[u128; L],
        hops: &mut [Hop; L],
        words: R,
        open: u16,
    ) -> bool {
        let deep = self.store_hops(hops, words) & !open;
        let mut left = open;
        while left != 0 {
            let lane = left.trailing_zeros() as usize % L;
            hops[lane] = One { tables: self, addr: addrs[lane] }.run(simd);
            left &= left - 1;
        }
        self.find_if_few_deep(addrs, hops, deep)
    }

    /// Stores the hops of a row of codes, and returns the lanes whose codes are those of deep blocks.
    #[inline(always)]
    pub(super) fn store_hops<R: Row<L>, const L: usize>(
        &self,
        hops: &mut [Hop; L],
        codes: R,
    ) -> u16 {
        for (to, bits) in hops.iter_mut().zip(codes.add(codes.splat(u32::MAX)).words()) {
            *to = Hop::from_bits(bits);
        }
        // Codes are below 2^31, so the top bit of the difference tells which are larger.
        codes.splat(C::TOP - self.deep.blocks() as u32).sub(codes).top_bits()
    }

    /// As [`find_few_deep`](Self::find_few_deep), but if there are more than a few lanes it only says so.
    #[inline(always)]
    pub(super) fn find_if_few_deep(&self, addrs: &[u128], hops: &mut [Hop], lanes: u16) -> bool {
        let is_many = lanes.count_ones() > DEEP_FEW;
        if lanes != 0 && !is_many {
            self.find_few_deep(addrs, hops, lanes);
        }
        is_many
    }

    /// Replaces the codes of deep blocks in these lanes, which were stored as hops beyond the hop count, by the hops
    /// of the addresses.
    #[cold]
    pub(super) fn find_few_deep(&self, addrs: &[u128], hops: &mut [Hop], mut lanes: u16) {
        while lanes != 0 {
            let lane = lanes.trailing_zeros() as usize % ROW;
            let block = C::TOP.wrapping_sub(hops[lane].to_bits().wrapping_add(1)) as usize;
            // A row before may have had the same address.
            if block < self.deep.blocks() {
                hops[lane] = self.deep.find(block, addrs[lane]);
            }
            lanes &= lanes - 1;
        }
    }

    /// Replaces all codes of deep blocks, which were stored as hops beyond the hop count, by the hops of the addresses.
    #[cold]
    pub(super) fn find_deep(&self, addrs: &[u128], hops: &mut [Hop]) {
        for (addrs, hops) in addrs.chunks(DEEP_TOGETHER).zip(hops.chunks_mut(DEEP_TOGETHER)) {
            let (mut list, mut len) = ([InBlock::default(); DEEP_TOGETHER], 0);
            for (at, hop) in (0..).zip(hops.iter()) {
                let code = hop.to_bits().wrapping_add(1);
                list[len % DEEP_TOGETHER] = InBlock::new(at, C::TOP.wrapping_sub(code));
                len += usize::from(self.is_deep(code));
            }
            let list = &mut list[..len];
            self.deep.find_all(addrs, list);
            for one in list {
                hops[usize::from(one.at)] = one.hop();
            }
        }
    }
}
