use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::build::hop;
use super::leaf::Leaf;
use super::word::{Entry, is_table, next};
use super::{Tables, key, root};

/// One address: root, tables as long as entries name them, leaf.
pub(super) struct One<'a, L: Leaf> {
    pub(super) tables: &'a Tables<L>,
    pub(super) addr: u128,
}

impl<L: Leaf> Kernel for One<'_, L> {
    type Output = Hop;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Hop {
        let Self { tables, addr } = self;
        let key = key(addr);
        let mut word = tables.words[root(addr)];
        while is_table(word) {
            word = tables.words[next(word, key, tables.grain) as usize];
        }
        let splat = simd.splat32(key);
        let code = match Entry::of(word) {
            Entry::Constant(code) => code,
            Entry::Leaf(line) => tables.search(simd, line, splat),
            Entry::Node(line) => {
                let child = simd.rank32(&tables.lines[line], splat) as usize;
                tables.search(simd, line + 1 + child, splat)
            }
            Entry::Table { .. } => unreachable!("the loop ends at something else"),
        };
        tables.finish(code, addr)
    }
}

impl<L: Leaf> Tables<L> {
    /// The code of the key in a leaf.
    #[inline(always)]
    fn search<S: Simd>(&self, simd: S, line: usize, key: S::Splat32) -> u32 {
        let line = &self.lines[line];
        L::codes(line)[L::rank(simd, line, key) as usize].into()
    }

    /// The hop of a code.
    #[inline(always)]
    pub(super) fn finish(&self, code: u32, addr: u128) -> Hop {
        let block = (L::TOP - code) as usize;
        if block < self.deep.blocks() { self.deep.find(block, addr) } else { hop(code) }
    }
}
