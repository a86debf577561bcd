use std::hint::cold_path;

use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::build::hop;
use super::record::{Codes, Unit};
use super::word::Entry;
use super::{Tables, key, root};

/// Looks up one address: root, then tables as long as entries name them, then a record; in a deep block again from its
/// window on.
pub(super) struct One<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addr: u128,
}

impl<C: Codes> Kernel for One<'_, C> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        let Self { tables, addr } = self;
        let code = tables.code(simd, tables.words[root(addr)], key(addr));
        if tables.is_deep(code) {
            cold_path();
            return simd.run(InDeep { tables, code, addr });
        }
        hop(code)
    }
}

/// Looks up addresses one after the other. The machine overlaps them, so that a few are found sooner than by rows that
/// are mostly empty.
pub(super) struct Few<'a, C: Codes> {
    pub(super) tables: &'a Tables<C>,
    pub(super) addrs: &'a [u128],
    pub(super) hops: &'a mut [Hop],
}

impl<C: Codes> Kernel for Few<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tables, addrs, hops } = self;
        for (&addr, hop) in addrs.iter().zip(hops) {
            *hop = One { tables, addr }.run(simd);
        }
    }
}

/// Looks up one address that was led to the code of a deep block.
struct InDeep<'a, C: Codes> {
    tables: &'a Tables<C>,
    code: u32,
    addr: u128,
}

impl<C: Codes> Kernel for InDeep<'_, C> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        self.tables.finish(simd, self.code, self.addr)
    }
}

impl<C: Codes> Tables<C> {
    /// The code that a word leads to. The key's bits are those that follow the ones that led to the word.
    #[inline(always)]
    fn code<S: Simd>(&self, simd: S, mut word: u32, mut key: u32) -> u32 {
        loop {
            match Entry::of(word) {
                Entry::Table { base, bits } => {
                    word = self.words[base + (key >> (32 - bits)) as usize];
                    key <<= bits;
                }
                Entry::Record { byte, keys } => {
                    return self.search(simd, byte, keys, (key >> 16) as u16);
                }
                Entry::Constant(code) => return code,
            }
        }
    }

    /// The code of the key in a record.
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, byte: usize, keys: usize, key: u16) -> u32 {
        let unit = &self.units[byte / size_of::<C::Unit>()];
        let rank = unit.rank(simd, byte % size_of::<C::Unit>() / 2, keys, key);
        let codes: &[C::Code] = bytemuck::cast_slice(&self.units);
        codes[C::codes_at(byte, keys) + rank as usize].into()
    }

    /// The hop of an address that was led to the code.
    #[inline(always)]
    pub(super) fn finish<S: Simd>(&self, simd: S, mut code: u32, addr: u128) -> Hop {
        while self.is_deep(code) {
            let window = &self.windows[self.block(code) as usize];
            code = self.code(simd, window.word, window.key(addr));
        }
        hop(code)
    }
}
