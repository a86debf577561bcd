//! From the words of a row, which are codes by then, to hops.

use fibula_core::Hop;
use fibula_simd::{Kernel, Row, Simd};

use super::Tables;
use super::lookup::One;
use super::record::Codes;

impl<C: Codes> Tables<C> {
    /// Stores the hops of a row whose words are resolved, and looks up the addresses that `open` has a bit for one by
    /// one. Returns the lanes whose codes are those of deep blocks.
    #[inline(always)]
    pub(super) fn store<S: Simd, R: Row<L>, const L: usize>(
        &self,
        simd: S,
        addrs: &[u128; L],
        hops: &mut [Hop; L],
        words: R,
        open: u16,
    ) -> u16 {
        let deep = self.store_hops(hops, words) & !open;
        let mut left = open;
        while left != 0 {
            let lane = left.trailing_zeros() as usize % L;
            hops[lane] = One { tables: self, addr: addrs[lane] }.run(simd);
            left &= left - 1;
        }
        deep
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
        // Codes are below 2^31, so the top bit of the difference shows which are larger.
        codes.splat(C::TOP - self.windows_used as u32).sub(codes).top_bits()
    }
}
