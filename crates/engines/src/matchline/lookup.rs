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
        let high = (addr >> 64) as u64;
        let mut word = tables.words[tables.shape.entry(high)];
        let code = loop {
            match Entry::of(word) {
                Entry::Table { base, bits, shift } => {
                    word = tables.words[base + (high >> shift & ((1 << bits) - 1)) as usize];
                }
                Entry::Line(number) => {
                    let line = &tables.lines[number];
                    break C::codes(line)[C::find(simd, line, high << TOP_BITS)].into();
                }
                Entry::Code(code) => break code,
            }
        };
        tables.finish(code, addr)
    }
}

impl<C: Code> Tables<C> {
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
