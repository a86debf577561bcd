use std::marker::PhantomData;

use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::{BsdRadix, LAST, LEAF, LEAVES, NODES, NONE, Node, ROUTES, leaf};
use crate::common::table;

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<A: Addr>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<BsdRadix<A>, LoadError> {
    let nodes: Table<Node> = table(tables, NODES)?;
    let leaves: Table<u32> = table(tables, LEAVES)?;
    let routes: Table<[u32; 2]> = table(tables, ROUTES)?;
    if !leaves.len().is_multiple_of(leaf::width::<A>()) {
        return Err(LoadError::new(LEAVES, "is not made of whole leaves"));
    }
    let count = leaves.len() / leaf::width::<A>();
    let listed = |start: u32| start == NONE || (start as usize) < routes.len();
    for (number, &[_, left, right, parent, list]) in nodes.iter().enumerate() {
        // Children come after a node and parents before it, so paths end in both directions.
        let child = |child: u32| {
            if child & LEAF == 0 {
                (child as usize) > number && (child as usize) < nodes.len()
            } else {
                ((child & !LEAF) as usize) < count
            }
        };
        let parent = if number == 0 { parent == NONE } else { (parent as usize) < number };
        if !child(left) || !child(right) || !parent || !listed(list) {
            return Err(LoadError::new(NODES, "has a child, a parent or a list out of order"));
        }
    }
    if nodes.is_empty() {
        return Err(LoadError::new(NODES, "has no root"));
    }
    for (_, parent, chain) in (0..count).map(|i| leaf::read::<A>(&leaves, i)) {
        if parent as usize >= nodes.len() || !listed(chain) {
            return Err(LoadError::new(LEAVES, "has a parent or a chain that is not there"));
        }
    }
    let known = |&[_, code]: &[u32; 2]| (1..=hop_count).contains(&code);
    if !routes.iter().all(known) || routes.last().is_some_and(|[len, _]| len & LAST == 0) {
        return Err(LoadError::new(ROUTES, "names an unknown hop, or does not end"));
    }
    Ok(BsdRadix { nodes, leaves, routes, family: PhantomData })
}
