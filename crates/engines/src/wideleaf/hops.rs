//! From the words of a row, which are codes by then, to hops.

use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd};

use super::Tables;
use super::batch::ROW;
use super::deep::InBlock;
use super::lookup::One;
use super::record::Codes;

/// The most addresses of a row that are searched in deep blocks one by one.
const DEEP_FEW: u32 = 2;
/// The most addresses that are searched in deep blocks together.
const DEEP_TOGETHER: usize = 128;

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
