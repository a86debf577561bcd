use fibula_core::Hop;
use fibula_simd::{Kernel, Simd};

use super::{Line, Tree, TreeSearch};
use crate::common::{Answer, Long, SearchAddr, SearchKey, hop};

/// One address: down the tree, one node a level, each a count of keys below the address's.
#[inline(always)]
fn lookup<A: SearchAddr, const LINES: usize>(
    tree: &Tree<A, LINES>,
    addr: A,
    rank: impl Fn(&Line<A>) -> u32,
) -> Hop {
    let lanes = Tree::<A, LINES>::LANES;
    let (nodes, _) = tree.keys.as_chunks::<LINES>();
    let rank = |node: usize| nodes[node].iter().map(&rank).sum::<u32>() as usize;
    let (&leaves, inner) = tree.shape.bases().split_last().expect("there is always a leaf");
    // The place among the nodes of its level.
    let mut node = 0;
    for &base in inner {
        node = node * (lanes + 1) + rank(base + node);
    }
    let interval = node * lanes + rank(leaves + node);
    match (tree.values.get(interval, tree.long.as_ref().map_or(0, Long::blocks)), &tree.long) {
        (Answer::Block(block), Some(long)) => hop(long.find(block, addr.low())),
        (Answer::Hop(hop), _) => hop,
        (Answer::Block(_), None) => unreachable!("no blocks, no answer that names one"),
    }
}

/// Addresses one after the other, compiled for an instruction set.
pub(super) struct Each<'a, A: SearchAddr, const LINES: usize> {
    pub(super) tree: &'a Tree<A, LINES>,
    pub(super) addrs: &'a [A],
    pub(super) hops: &'a mut [Hop],
}

impl<A: SearchAddr, const LINES: usize> Kernel for Each<'_, A, LINES> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tree, addrs, hops } = self;
        for (&addr, hop) in addrs.iter().zip(hops) {
            let key = addr.high();
            *hop = match tree.search {
                TreeSearch::Compiled => lookup(tree, addr, |line| {
                    line.as_ref().iter().map(|&other| u64::from(other < key)).sum::<u64>() as u32
                }),
                TreeSearch::Batched | TreeSearch::Single => {
                    let key = key.splat(simd);
                    lookup(tree, addr, |line| A::Key::rank(simd, line, key))
                }
            };
        }
    }
}
