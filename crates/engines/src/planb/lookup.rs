use fibula_core::Hop;
use fibula_simd::Scalar;

use super::PlanB;
use crate::common::{Answer, Long, SearchAddr, SearchKey};

/// One address: down the tree, one node a level, each a count of keys below the address's.
pub(super) fn lookup<A: SearchAddr>(tree: &PlanB<A>, addr: A) -> Hop {
    let lanes = A::Key::LANES;
    let key = addr.high().splat(Scalar);
    // The place among the nodes of its level.
    let mut node = 0;
    let (&leaves, inner) = tree.shape.bases().split_last().expect("there is always a leaf");
    for &base in inner {
        node = node * (lanes + 1) + A::Key::rank(Scalar, &tree.keys[base + node], key) as usize;
    }
    let interval = node * lanes + A::Key::rank(Scalar, &tree.keys[leaves + node], key) as usize;
    match (tree.values.get(interval, tree.long.as_ref().map_or(0, Long::blocks)), &tree.long) {
        (Answer::Block(block), Some(long)) => crate::common::hop(long.find(block, addr.low())),
        (Answer::Hop(hop), _) => hop,
        (Answer::Block(_), None) => unreachable!("no blocks, no answer that names one"),
    }
}
