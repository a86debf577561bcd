use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::Tables;
use super::line::{Code, TOP_BITS};
use super::word::Entry;
use crate::common::hop;

/// Looks up one address: root, then tables as long as words name them, then a line.
pub(super) struct One<'a, C: Code> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addr: u128,
}

impl<C: Code> Kernel for One<'_, C> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        let Self { tables, addr } = self;
        tables.finish(tables.code(simd, (addr >> 64) as u64), addr)
    }
}

impl<C: Code> Tables<C> {
    /// The code of addresses with this upper half.
    #[inline(always)]
    pub(super) fn code<S: Simd>(&self, simd: S, high: u64) -> u32 {
        let mut word = self.words[self.shape.entry(high)];
        loop {
            match Entry::of(word) {
                Entry::Table { base, bits, shift } => {
                    word = self.words[base + (high >> shift & ((1 << bits) - 1)) as usize];
                }
                Entry::Line(number) => {
                    let line = &self.lines[number];
                    return C::codes(line)[C::find(simd, line, high << TOP_BITS)].into();
                }
                Entry::Code(code) => return code,
            }
        }
    }

    /// The hop of a code.
    #[inline(always)]
    pub(super) fn finish(&self, code: u32, addr: u128) -> Hop {
        match &self.long {
            Some(long) if code >= self.shape.blocks_from => {
                hop(long.find((code - self.shape.blocks_from) as usize, addr as u64))
            }
            _ => hop(code),
        }
    }
}
