use fibula_core::{Addr, Hop};
use fibula_engines::common::each;
use fibula_simd::{Kernel, Level, Simd};

/// Tables in which an address is found by itself, by instructions that depend on the machine (counts of ones): for
/// engines without a form for many addresses, as the papers' baselines are.
pub(crate) trait Search<A: Addr> {
    /// The hop of an address. `#[inline(always)]`, so that it is compiled for the machine of its caller.
    fn search(&self, addr: A) -> Hop;
}

/// One lookup.
pub(crate) fn one<A: Addr>(level: Level, tables: &impl Search<A>, addr: A) -> Hop {
    let mut hop = [Hop::NONE];
    many(level, tables, &[addr], &mut hop);
    hop[0]
}

/// Many, one after the other.
///
/// # Panics
/// If the slices differ in length.
pub(crate) fn many<A: Addr>(level: Level, tables: &impl Search<A>, addrs: &[A], hops: &mut [Hop]) {
    level.run(Many { tables, addrs, hops });
}

struct Many<'a, A, T> {
    tables: &'a T,
    addrs: &'a [A],
    hops: &'a mut [Hop],
}

impl<A: Addr, T: Search<A>> Kernel for Many<'_, A, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        each(self.addrs, self.hops, |addr| self.tables.search(addr));
    }
}
