use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::Tables;
use super::record::{Leaf, long_code, long_place, read, root_word, run_of, value};
use crate::common::hop;

/// Looks up one address: reads its record, counts the runs that end at or after it, and reads the value of that run.
pub(super) struct One<'a, V: Leaf> {
    pub(super) tables: &'a Tables<V>,
    pub(super) addr: u32,
}

impl<V: Leaf> Kernel for One<'_, V> {
    type Output = Hop;

    // This is a kernel so that the POPCNT instruction can be used.
    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> Hop {
        let Self { tables, addr } = self;
        let bytes = &tables.records[..];
        let at = root_word(bytes, addr);
        let run = run_of(read(bytes, at), addr);
        let mut code = value::<V>(bytes, at, run);
        if code >= V::ESCAPE {
            code = long_code(bytes, long_place::<V>(bytes, at, code), addr);
        }
        hop(code)
    }
}
