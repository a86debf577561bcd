use fibula_core::{Addr, BuildError, Range, Routes};
use fibula_simd::Table;

use super::{CHUNK_WORDS, NAME, ROOT, ROOT_WORDS, STRIDE, Tables, Word};
use fibula_engines::common::Values;

/// A node that has no chunk yet: its first address, and the range that contains it.
struct Open<A> {
    first: A,
    range: usize,
}

/// Compiles the routes' ranges level by level, so that chunks are numbered in the order of their parents'
/// bits.
pub(super) fn build<A: Addr>(routes: &Routes<A>) -> Result<Tables, BuildError> {
    let mut builder = Builder {
        ranges: routes.ranges().collect(),
        children: Vec::new(),
        leaves: Vec::new(),
        codes: Vec::new(),
        chunks: 0,
    };
    let mut open = Vec::new();
    builder.node(&Open { first: A::MIN, range: 0 }, 0, ROOT, ROOT_WORDS, &mut open);
    let mut at = ROOT;
    while !open.is_empty() {
        let mut below = Vec::new();
        for node in &open {
            builder.node(node, at, STRIDE, CHUNK_WORDS, &mut below);
        }
        open = below;
        at += STRIDE;
    }
    let Builder { children, leaves, codes, chunks, .. } = builder;
    for (what, needed) in [("leaves", codes.len() as u64), ("nodes", chunks)] {
        let limit = u32::MAX.into();
        if needed > limit {
            return Err(BuildError::Limit { engine: NAME, what, limit, needed });
        }
    }
    Ok(Tables {
        children: Table::from_vec(children),
        leaves: Table::from_vec(leaves),
        hops: Values::new(&codes, routes.hop_count(), 0),
    })
}

struct Builder<A> {
    ranges: Vec<Range<A>>,
    children: Vec<Word>,
    leaves: Vec<Word>,
    codes: Vec<u32>,
    chunks: u64,
}

impl<A: Addr> Builder<A> {
    /// Appends the words of a node whose addresses share their first `at` bits; `open` gets its children.
    fn node(&mut self, node: &Open<A>, at: u32, bits: u32, words: usize, open: &mut Vec<Open<A>>) {
        let (mut first, mut range) = (node.first, node.range);
        let end = (at + bits) as u8;
        for _ in 0..words {
            let (mut children, mut leaves) = ([0, self.chunks], [0, self.codes.len() as u64]);
            for slot in 0..64 {
                let last = first.or(A::netmask(end).not());
                let Range { last: range_last, hop, .. } = self.ranges[range];
                if range_last < last {
                    children[0] |= 1 << slot;
                    self.chunks += 1;
                    open.push(Open { first, range });
                } else if !hop.is_none() {
                    leaves[0] |= 1 << slot;
                    self.codes.push(hop.to_bits() + 1);
                }
                // Advances to the next slot, and to the range that contains its first address.
                let Some(next) = last.successor() else { break };
                while self.ranges[range].last < next {
                    range += 1;
                }
                first = next;
            }
            self.children.push(children);
            self.leaves.push(leaves);
        }
    }
}
