use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::{NODES, node};
use crate::common::table;

/// The node table, if every walk over it stays inside, ends, and answers known hops only.
pub(super) fn load<A: Addr>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Table<u32>, LoadError> {
    let nodes = table(tables, NODES)?;
    check::<A>(&nodes, hop_count)?;
    Ok(nodes)
}

fn check<A: Addr>(nodes: &[u32], hop_count: u32) -> Result<(), LoadError> {
    let (key_words, stride) = (node::key_words::<A>(), node::stride::<A>());
    if nodes.is_empty() || !nodes.len().is_multiple_of(stride) {
        return Err(error("is not made of whole nodes"));
    }
    let count = nodes.len() / stride;
    let len_of = |index: usize| nodes[index * stride + key_words + node::LEN];
    for (index, words) in nodes.chunks_exact(stride).enumerate() {
        let rest = &words[key_words..];
        if rest[node::LEN] > A::BITS.into() {
            return Err(error("a prefix is longer than an address"));
        }
        let hop = rest[node::HOP];
        if hop != u32::MAX && hop >= hop_count {
            return Err(error("a hop is out of range"));
        }
        for &child in &rest[node::LEFT..] {
            let child = child as usize;
            // Longer prefixes at higher indices: no cycle, at most one node for each length.
            if child != 0 && (child <= index || child >= count || len_of(child) <= rest[node::LEN])
            {
                return Err(error("a child is out of order"));
            }
        }
    }
    Ok(())
}

fn error(reason: &'static str) -> LoadError {
    LoadError::new(NODES, reason)
}
