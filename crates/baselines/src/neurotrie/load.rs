use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::{MOST, NODES, RECORDS, Record, Tables, node_parts, records_of, slots_of};
use fibula_engines::common::{Values, table};

/// Stored tables, checked whole in one pass over the nodes.
pub(super) fn load<A: Addr>(tables: &dyn TableSource, hop_count: u32) -> Result<Tables, LoadError> {
    let nodes: Table<u32> = table(tables, NODES)?;
    let records: Table<Record> = table(tables, RECORDS)?;
    let leaves = Values::load(tables, hop_count, 0)?;
    if nodes.is_empty() {
        return Err(LoadError::new(NODES, "has no root"));
    }
    // Bits of the address before each node: of the longest way, where a table has several.
    let mut depths = vec![0u32; nodes.len()];
    for (number, &node) in nodes.iter().enumerate() {
        let (first, stride) = node_parts(node);
        let depth = depths[number] + stride;
        if !(1..=MOST).contains(&stride) || depth > A::BITS.into() {
            return Err(LoadError::new(NODES, "has a stride that is out of range"));
        }
        let Some(own) = records.get(first..first + records_of(stride)) else {
            return Err(LoadError::new(NODES, "has a record that is not there"));
        };
        let slots = slots_of(stride);
        for &[vector, leafvec, bases] in own {
            let (vector, leafvec) = (vector & slots, leafvec & slots);
            let (base1, base0) = ((bases >> 32) as usize, bases as u32 as usize);
            let children = base1..base1 + vector.count_ones() as usize;
            if vector != 0 {
                if base1 <= number || children.end > nodes.len() {
                    return Err(LoadError::new(RECORDS, "has a child that is out of order"));
                }
                for child in &mut depths[children] {
                    *child = depth.max(*child);
                }
            }
            // A run that begins at or before the first slot without a child.
            let begun = leafvec.trailing_zeros() <= vector.trailing_ones();
            let ones = leafvec.count_ones() as usize;
            if vector != slots && (!begun || base0 + ones > leaves.len()) {
                return Err(LoadError::new(RECORDS, "has a slot without a leaf"));
            }
        }
    }
    Ok(Tables { nodes, records, leaves })
}
