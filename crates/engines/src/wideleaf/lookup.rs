use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::build::hop;
use super::record::{Codes, Unit};
use super::word::Entry;
use super::{Tables, key, root};

/// Looks up one address: root, then tables as long as entries name them, then a record.
pub(super) struct One<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addr: u128,
}

impl<C: Codes> Kernel for One<'_, C> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        let Self { tables, addr } = self;
        // The address bits that tables have not used yet, at the top.
        let mut key = key(addr);
        let mut word = tables.words[root(addr)];
        let code = loop {
            match Entry::of(word) {
                Entry::Table { base, bits } => {
                    word = tables.words[base + (key >> (32 - bits)) as usize];
                    key <<= bits;
                }
                Entry::Record { byte, keys } => {
                    break tables.search(simd, byte, keys, (key >> 16) as u16);
                }
                Entry::Constant(code) => break code,
            }
        };
        tables.finish(code, addr)
    }
}

impl<C: Codes> Tables<C> {
    /// The code of the key in a record.
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, byte: usize, keys: usize, key: u16) -> u32 {
        let unit = &self.units[byte / size_of::<C::Unit>()];
        let rank = unit.rank(simd, byte % size_of::<C::Unit>() / 2, keys, key);
        let codes: &[C::Code] = bytemuck::cast_slice(&self.units);
        codes[C::codes_at(byte, keys) + rank as usize].into()
    }

    /// The hop of a code.
    #[inline(always)]
    pub(super) fn finish(&self, code: u32, addr: u128) -> Hop {
        let block = (C::TOP - code) as usize;
        if block < self.deep.blocks() { self.deep.find(block, addr) } else { hop(code) }
    }
}
