use std::array;
use std::hint::select_unpredictable;

use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd, prefetch_read};

use super::Tables;
use super::batch::{BlockSearch, HALF_ROW, LOADED, ROW};
use super::record::Codes;
use super::word::BYTE;

/// The most addresses that are searched in deep blocks together.
const TOGETHER: usize = 256;
/// The same in short batches, which would otherwise wait until a large list is cleared.
const FEW_TOGETHER: usize = 32;

/// So many addresses are looked up one by one.
const FEW: usize = 2;

/// Finds the hops of those addresses of a batch to which the codes of deep blocks were given, stored as hops.
pub(super) struct Descent<'a, C: Codes, const GATHERS: bool> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes, const GATHERS: bool> Kernel for Descent<'_, C, GATHERS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        let search = BlockSearch::<_, _, GATHERS> { simd, tables };
        for (addrs, hops) in addrs.chunks(TOGETHER).zip(hops.chunks_mut(TOGETHER)) {
            let (mut few, mut many);
            let [at, blocks]: [&mut [u32]; 2] = if addrs.len() <= FEW_TOGETHER {
                few = [[0; FEW_TOGETHER + ROW]; 2];
                few.each_mut().map(|list| list.as_mut_slice())
            } else {
                many = [[0; TOGETHER + ROW]; 2];
                many.each_mut().map(|list| list.as_mut_slice())
            };
            search.descend(List { at, blocks, len: 0 }, addrs, hops);
        }
    }
}

/// Addresses in deep blocks: their places in the batch, and their blocks. Rows are stored as a whole, so there is room
/// for one more.
struct List<'a> {
    at: &'a mut [u32],
    blocks: &'a mut [u32],
    len: usize,
}

impl<C: Codes, S: Simd, const GATHERS: bool> BlockSearch<'_, C, S, GATHERS> {
    /// Lists the addresses in deep blocks, and executes each stage for many of them: window, tables, record. Some may
    /// then be in deep blocks within these.
    #[inline(always)]
    fn descend(&self, mut list: List<'_>, addrs: &[u128], hops: &mut [Hop]) {
        let (row, half) = (self.simd.splat_row(0), self.simd.splat_half_row(0));
        let lanes = row.load(&array::from_fn(|lane| lane as u32));
        for (start, hops) in (0..).step_by(ROW).zip(hops.chunks(ROW)) {
            let mut bits = [Hop::NONE.to_bits(); ROW];
            match hops.as_array::<ROW>() {
                Some(hops) => bits = hops.map(Hop::to_bits),
                None => bits.iter_mut().zip(hops).for_each(|(to, hop)| *to = hop.to_bits()),
            }
            let codes = row.load(&bits).add(row.splat(1));
            self.list(&mut list, lanes.add(row.splat(start)), codes, ROW);
        }
        // Addresses that are in deep blocks again join those that are still waiting.
        while list.len > FEW {
            let rows = list.len.div_ceil(HALF_ROW);
            let list = &mut list;
            match rows {
                1 => self.stage::<_, HALF_ROW, 1>(half, list, addrs, hops),
                2 => self.stage::<_, HALF_ROW, 2>(half, list, addrs, hops),
                3..=4 => self.stage::<_, HALF_ROW, 4>(half, list, addrs, hops),
                _ if S::ROWS_WHOLE => {
                    self.stage::<_, ROW, { LOADED / ROW }>(row, list, addrs, hops);
                }
                _ => self.stage::<_, HALF_ROW, { LOADED / HALF_ROW }>(half, list, addrs, hops),
            }
        }
        for (&at, &block) in list.at.iter().zip(&*list.blocks).take(list.len) {
            let code = C::TOP.wrapping_sub(block);
            hops[at as usize] = self.tables.finish(self.simd, code, addrs[at as usize]);
        }
    }

    /// Adds those of the first lanes to the list that have codes of deep blocks.
    #[inline(always)]
    fn list<R: Row<L>, const L: usize>(&self, list: &mut List<'_>, at: R, codes: R, first: usize) {
        let Self { tables, .. } = *self;
        let top = codes.splat(C::TOP);
        let deep = top.sub(codes.splat(tables.windows_used as u32)).sub(codes).top_bits();
        let deep = deep & ((1u32 << first) - 1) as u16;
        *list.at[list.len..].first_chunk_mut().expect("room for a row") = at.pack(deep).words();
        *list.blocks[list.len..].first_chunk_mut().expect("room for a row") =
            top.sub(codes).pack(deep).words();
        list.len += deep.count_ones() as usize;
    }

    /// Executes a stage for the last addresses of the list, up to `N` rows of `L`. Those that are in deep blocks again
    /// remain in the list. `any` is any row.
    #[inline(always)]
    fn stage<R: Row<L>, const L: usize, const N: usize>(
        &self,
        any: R,
        list: &mut List<'_>,
        addrs: &[u128],
        hops: &mut [Hop],
    ) {
        let Self { tables, .. } = *self;
        let end = list.len;
        list.len = end.saturating_sub(N * L);
        let (mut at, mut keys, mut words) = ([[0; L]; N], [[0; L]; N], [[0; L]; N]);
        let firsts: [usize; N] = array::from_fn(|i| list.len + i * L);
        let last = list.at.len() - L;
        for first in firsts {
            for &block in &list.blocks[first.min(last)..][..L] {
                prefetch_read(&tables.windows, block as usize);
            }
        }
        for i in 0..N {
            // Lanes behind the last address have other ones of the list, or zeros.
            let start = firsts[i].min(last);
            at[i] = *list.at[start..].first_chunk().expect("a row");
            let blocks: &[u32; L] = list.blocks[start..].first_chunk().expect("a row");
            for lane in 0..L {
                let window = &tables.windows[blocks[lane] as usize];
                keys[i][lane] = window.key(addrs[at[i][lane] as usize]);
                // Other lanes may have a block that no code names, whose word was not checked.
                let is_listed = firsts[i] + lane < end;
                words[i][lane] = select_unpredictable(is_listed, window.word, 0);
                // Few have tables; of these it is some other line.
                let unit = (window.word >> 3 & BYTE) as usize / size_of::<C::Unit>();
                prefetch_read(&tables.units, unit);
            }
        }
        if S::IS_SCALAR {
            tables.plain_codes(self.simd, keys.as_flattened_mut(), words.as_flattened_mut());
        } else {
            let mut rows = array::from_fn(|i| any.load(&words[i]));
            self.resolve(array::from_fn(|i| any.load(&keys[i])), &mut rows);
            words = rows.map(R::words);
        }
        for i in 0..N {
            let len = end.saturating_sub(firsts[i]).min(L);
            for (&at, code) in at[i].iter().zip(words[i]).take(len) {
                hops[at as usize] = Hop::from_bits(code.wrapping_sub(1));
            }
            self.list(list, any.load(&at[i]), any.load(&words[i]), len);
        }
    }
}
