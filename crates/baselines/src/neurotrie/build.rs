use std::collections::VecDeque;

use fibula_core::{Addr, BuildError, Hop, Range, Routes};
use fibula_simd::Table;

use super::strides::{Levels, Strides, choose, levels, step};
use super::{NAME, STRIDE_BITS, Tables, records_of};
use fibula_engines::common::Values;

/// Compiles the routes: the strides of all blocks, then the nodes that are reached, level by level.
pub(super) fn build<A: Addr>(routes: &Routes<A>, budget: f64) -> Result<Tables, BuildError> {
    let ranges: Vec<Range<A>> = routes.ranges().collect();
    check("ranges", u32::MAX.into(), ranges.len() as u64)?;
    let levels = levels(&ranges);
    let budget = budget * routes.len() as f64;
    let strides = choose(&levels, step::<A>(), ranges.len(), budget);
    let mut builder =
        Builder { ranges, levels, strides, nodes: vec![0], records: vec![], leaves: vec![] };
    let mut open = VecDeque::from([Open { number: 0, level: 0, first: A::MIN, range: 0 }]);
    while let Some(node) = open.pop_front() {
        builder.node(node, &mut open)?;
    }
    let Builder { nodes, records, leaves, .. } = builder;
    check("leaves", u32::MAX.into(), leaves.len() as u64)?;
    Ok(Tables {
        nodes: Table::from_vec(nodes),
        records: Table::from_vec(records),
        leaves: Values::new(&leaves, routes.hop_count(), 0),
    })
}

fn check(what: &'static str, limit: u64, needed: u64) -> Result<(), BuildError> {
    if needed > limit {
        return Err(BuildError::Limit { engine: NAME, what, limit, needed });
    }
    Ok(())
}

/// A node whose records are not written yet: its number, its length in steps, its first address, and the
/// range that contains it.
struct Open<A> {
    number: usize,
    level: usize,
    first: A,
    range: usize,
}

struct Builder<A> {
    ranges: Vec<Range<A>>,
    levels: Levels,
    strides: Strides,
    nodes: Vec<u32>,
    records: Vec<super::Record>,
    leaves: Vec<u32>,
}

impl<A: Addr> Builder<A> {
    /// Writes a node's records; `open` gets its children.
    fn node(&mut self, node: Open<A>, open: &mut VecDeque<Open<A>>) -> Result<(), BuildError> {
        let Open { number, level, mut first, mut range } = node;
        // The node's block is the first one at or after its first range. A table of one range has no
        // blocks.
        let blocks = &self.levels[level];
        let block = blocks.partition_point(|&first| (first as usize) < range);
        let block = Some(block).filter(|block| *block < blocks.len());
        let steps = block.map_or(1, |block| self.strides[level][block].into());
        let stride = steps * step::<A>();
        let start = self.records.len();
        check("records", 1 << (32 - STRIDE_BITS), (start + records_of(stride)) as u64)?;
        self.nodes[number] = (start as u32) << STRIDE_BITS | stride;
        let below = level + steps as usize;
        let end = (below as u32 * step::<A>()) as u8;
        for _ in 0..records_of(stride) {
            let (mut vector, mut leafvec, mut run) = (0u64, 0u64, None);
            let (base1, base0) = (self.nodes.len() as u64, self.leaves.len() as u32);
            for slot in 0..1u32 << stride.min(6) {
                let last = first.or(A::netmask(end).not());
                let Range { last: range_last, hop, .. } = self.ranges[range];
                if range_last < last {
                    vector |= 1 << slot;
                    open.push_back(Open { number: self.nodes.len(), level: below, first, range });
                    self.nodes.push(0);
                } else if run != Some(hop) {
                    // Children in between do not end a run.
                    leafvec |= 1 << slot;
                    run = Some(hop);
                    self.leaves.push(code(hop));
                }
                let Some(next) = last.successor() else { break };
                while self.ranges[range].last < next {
                    range += 1;
                }
                first = next;
            }
            self.records.push([vector, leafvec, base1 << 32 | u64::from(base0)]);
        }
        Ok(())
    }
}

fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}
