use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::node::{LEAF, Node, STRIDE};
use super::{DIRECT, NODES, S_VALUES, Tables};
use crate::common::{Values, table};

/// Stored tables, checked whole in one pass over each.
///
/// Children lie before their parents, as they are built; so no lookup can go round in circles, and the
/// height of each node follows from those before it. Heights are limited by the bits of an address.
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
    check_nodes(&nodes, leaves.len(), (u32::from(A::BITS) - s).div_ceil(STRIDE))?;
    Ok(Tables { s, direct, nodes, leaves })
}

/// The invariants of the module that concern nodes; `levels` is how high they may be.
pub(super) fn check_nodes(nodes: &[Node], leaves: usize, levels: u32) -> Result<(), LoadError> {
    // Leaves are counted from 1, in 32 bits.
    let leaves = leaves.min(u32::MAX as usize);
    let mut heights: Vec<u8> = Vec::with_capacity(nodes.len());
    for &[vector, leafvec, bases] in nodes {
        let (base1, base0) = ((bases >> 32) as usize, bases as u32 as usize);
        let children = base1..base1 + vector.count_ones() as usize;
        if children.end > heights.len() {
            return Err(LoadError::new(NODES, "a child does not lie before its parent"));
        }
        let height = 1 + heights[children].iter().copied().max().unwrap_or(0);
        if u32::from(height) > levels {
            return Err(LoadError::new(NODES, "has more levels than an address has bits"));
        }
        heights.push(height);
        // A run that begins at or before the first slot without a child.
        let begun = leafvec.trailing_zeros() <= vector.trailing_ones();
        if !begun && vector != u64::MAX || base0 + leafvec.count_ones() as usize > leaves {
            return Err(LoadError::new(NODES, "a slot has no leaf"));
        }
    }
    Ok(())
}
