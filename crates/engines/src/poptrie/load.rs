use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::buddies::Buddies;
use super::node::{LEAF, Node, STRIDE};
use super::{DIRECT, NODES, S_VALUES, Tables};
use crate::common::{Values, table};

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<A: Addr>(tables: &dyn TableSource, hop_count: u32) -> Result<Tables, LoadError> {
    let direct: Table<u32> = table(tables, DIRECT)?;
    let nodes: Table<Node> = table(tables, NODES)?;
    let leaves = Values::load(tables, hop_count, 0)?;
    let Some(s) = S_VALUES.into_iter().find(|s| direct.len() == 1 << s) else {
        return Err(LoadError::new(DIRECT, "has neither 2^16 nor 2^18 entries"));
    };
    let known = |&entry: &u32| match entry & LEAF {
        0 => (entry as usize) < nodes.len(),
        _ => entry & !LEAF <= hop_count,
    };
    if !direct.iter().all(known) {
        return Err(LoadError::new(DIRECT, "names a node or a hop that is not there"));
    }
    let levels = (u32::from(A::BITS) - s).div_ceil(STRIDE);
    let roots = direct.iter().copied().filter(|entry| entry & LEAF == 0);
    let [free_nodes, free_leaves] = check_nodes(roots, &nodes, leaves.len(), levels)?;
    Ok(Tables { s, direct, nodes, leaves, free_nodes, free_leaves })
}

/// The invariants of the module that concern nodes, level by level; `levels` is how many an address has. Returns the
/// places that the nodes leave free in their own array and in the array of leaves.
pub(super) fn check_nodes(
    roots: impl Iterator<Item = u32>,
    nodes: &[Node],
    leaves: usize,
    levels: u32,
) -> Result<[Buddies; 2], LoadError> {
    let error = |reason| Err(LoadError::new(NODES, reason));
    // Leaves are counted from 1, in 32 bits.
    let mut leaf_used = vec![false; leaves.min(u32::MAX as usize)];
    let mut node_used = vec![false; nodes.len()];
    let mut level: Vec<usize> = roots.map(|root| root as usize).collect();
    let mut depth = 0;
    while !level.is_empty() {
        if depth == levels {
            return error("has more levels than an address has bits");
        }
        depth += 1;
        let mut below = Vec::new();
        for number in level {
            if std::mem::replace(&mut node_used[number], true) {
                return error("a node has two parents");
            }
            let [vector, leafvec, bases] = nodes[number];
            let (base1, base0) = ((bases >> 32) as usize, bases as u32 as usize);
            let children = base1..base1 + vector.count_ones() as usize;
            if vector != 0 && children.end > nodes.len() {
                return error("a child is not there");
            }
            below.extend(children);
            // A run that begins at or before the first slot without a child.
            let begun = leafvec.trailing_zeros() <= vector.trailing_ones();
            let own = leaf_used.get_mut(base0..base0 + leafvec.count_ones() as usize);
            let Some(own) = own.filter(|_| begun || vector == u64::MAX) else {
                return error("a slot has no leaf");
            };
            if own.iter_mut().any(|used| std::mem::replace(used, true)) {
                return error("a leaf has two nodes");
            }
        }
        level = below;
    }
    Ok([&node_used, &leaf_used].map(|used| {
        let mut free = Buddies::default();
        let unused = used.iter().enumerate().filter(|(_, used)| !**used);
        unused.for_each(|(place, _)| free.give(place..place + 1));
        free
    }))
}
