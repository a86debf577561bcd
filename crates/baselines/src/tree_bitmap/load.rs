use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::node::{
    END, INNER_MASK, NONE, SPLIT_END, inner_width, internal, read, read_inner, read_split, width,
};
use super::{Config, INNER, NODES, ROOT, SHAPE, Tables};
use fibula_engines::common::{Values, table};

/// Stored tables, checked in one pass over each. The steps of a lookup are bounded by the bits of its
/// address, so nodes may refer to each other in any way.
pub(super) fn load(
    tables: &dyn TableSource,
    hop_count: u32,
    config: Config,
) -> Result<Tables, LoadError> {
    let shape: Table<u32> = table(tables, SHAPE)?;
    if shape[..] != [config.root, config.stride, config.split.into()] {
        return Err(LoadError::new(SHAPE, "is of another configuration"));
    }
    let root: Table<[u32; 2]> = table(tables, ROOT)?;
    let nodes: Table<u32> = table(tables, NODES)?;
    let inner = if config.split { table(tables, INNER)? } else { Table::default() };
    let results = Values::load(tables, hop_count, 0)?;
    if !nodes.len().is_multiple_of(width(config)) {
        return Err(LoadError::new(NODES, "is not made of whole nodes"));
    }
    if !inner.len().is_multiple_of(inner_width(config.stride)) {
        return Err(LoadError::new(INNER, "is not made of whole nodes"));
    }
    let count = nodes.len() / width(config);
    let known =
        |&[node, code]: &[u32; 2]| (node == NONE || (node as usize) < count) && code <= hop_count;
    if root.len() != 1 << config.root || !root.iter().all(known) {
        return Err(LoadError::new(ROOT, "names a node or a hop that is not there"));
    }
    let tables = Tables::new(config, root, nodes, inner, results);
    match config.stride {
        4 => check::<4>(&tables, count)?,
        5 => check::<5>(&tables, count)?,
        _ => check::<6>(&tables, count)?,
    }
    Ok(tables)
}

/// Checks that children, results and inner nodes are in the tables.
fn check<const K: u32>(tables: &Tables, count: usize) -> Result<(), LoadError> {
    let error = |what| Err(LoadError::new(NODES, what));
    let Tables { nodes, inner, results, .. } = tables;
    let ones = |bits: u128| bits.count_ones() as usize;
    let fits =
        |first: u32, number: usize, all: usize| number == 0 || first as usize + number <= all;
    let inner_count = inner.len() / inner_width(K);
    for number in 0..count {
        let (bits, child, first, end) = if tables.config.split {
            let (external, child, word) = read_split::<K>(nodes, number);
            let (number, end) = ((word & INNER_MASK) as usize, word & SPLIT_END != 0);
            let has = word & INNER_MASK != INNER_MASK;
            if has && number >= inner_count || end && !has {
                return error("an inner node is not there");
            }
            let (lower, first) = if has { read_inner::<K>(inner, number) } else { (0, 0) };
            (lower | external << (1 << K), child, first, end)
        } else {
            let node = read::<K>(nodes, number);
            (node.bits & !END, node.child, node.results, node.bits & END != 0)
        };
        let (lower, upper) = (bits & internal(K), bits & !internal(K));
        let (own, children) = if end { (bits, 0) } else { (lower, upper) };
        if !fits(first, ones(own), results.len()) {
            return error("a result is not there");
        }
        if !fits(child, ones(children), count) {
            return error("a child is not there");
        }
    }
    Ok(())
}
