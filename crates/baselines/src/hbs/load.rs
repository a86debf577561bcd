use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::tree::{LEFT, LEN, NONE, Node, PART, RANK, RIGHT, markers};
use super::{Config, Hbs, SHAPE, SLOTS, TREE};
use crate::common::{Hashed, parts};
use fibula_engines::common::table;

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<A: Addr>(
    tables: &dyn TableSource,
    hop_count: u32,
    config: Config,
) -> Result<Hbs<A>, LoadError> {
    let shape: Table<u32> = table(tables, SHAPE)?;
    let &[heuristic, shortest] = &shape[..] else {
        return Err(LoadError::new(SHAPE, "does not have two words"));
    };
    if heuristic != u32::from(config.heuristic) || shortest > hop_count {
        return Err(LoadError::new(SHAPE, "is of another configuration or names no known hop"));
    }
    let tree: Table<Node> = table(tables, TREE)?;
    let slots = Hashed { words: table(tables, SLOTS)? };
    if tree.len() > usize::from(A::BITS) {
        return Err(LoadError::new(TREE, "has more nodes than an address has bits"));
    }
    for (number, node) in tree.iter().enumerate() {
        let there = |child: u32| {
            child == NONE || (child as usize) > number && (child as usize) < tree.len()
        };
        let length = (1..=u32::from(A::BITS)).contains(&node[LEN]);
        if !there(node[LEFT]) || !there(node[RIGHT]) || !length {
            return Err(LoadError::new(TREE, "has a child or a length out of order"));
        }
    }
    // Tables lie in order of their ranks.
    let mut by_rank = tree.to_vec();
    by_rank.sort_unstable_by_key(|node| node[RANK]);
    // An interleaved search ends because each range of ranks has a node in it.
    let in_order = by_rank.iter().zip(0..).all(|(node, rank)| node[RANK] == rank);
    if !in_order || markers(&tree).is_none() {
        return Err(LoadError::new(TREE, "is no search tree of its ranks"));
    }
    if !slots.is_sound::<A>(&parts(&by_rank, PART), hop_count) {
        return Err(LoadError::new(SLOTS, "is not what the tree says, or names an unknown hop"));
    }
    Ok(Hbs::new([heuristic, shortest], tree, slots, config.batch))
}
