use fibula_core::{Addr, LoadError, TableSource};
use fibula_simd::Table;

use super::{BsdRadix, ENTRIES, Entry, LEAF, LEAVES, NODES, NONE, Node, leaf};
use fibula_engines::common::{optional_table, table};

/// The table that files of before the tree was patched have in place of [`ENTRIES`]: length and code of each entry,
/// which the next one follows unless it is the last.
const ROUTES: &str = "routes";
/// There, in the word of the length: it is the last one of its chain or list.
const LAST: u32 = 1 << 31;

/// Stored tables, checked whole in one pass over each.
pub(super) fn load<A: Addr>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<BsdRadix<A>, LoadError> {
    let nodes: Table<Node> = table(tables, NODES)?;
    let leaves: Table<u32> = table(tables, LEAVES)?;
    let entries = match optional_table(tables, ROUTES)? {
        Some(old) => Table::from_vec(linked(&old)),
        None => table::<Entry>(tables, ENTRIES)?,
    };
    if !leaves.len().is_multiple_of(leaf::width::<A>()) {
        return Err(LoadError::new(LEAVES, "is not made of whole leaves"));
    }
    let loaded = BsdRadix::<A>::new(nodes, leaves, entries);
    check(&loaded, hop_count)?;
    Ok(loaded)
}

fn linked(old: &[[u32; 2]]) -> Vec<Entry> {
    let next = |len, next| if len & LAST == 0 { next } else { NONE };
    old.iter().zip(1..).map(|(&[len, code], i)| [len & !LAST, code, next(len, i)]).collect()
}

/// Paths end in both directions, since the bits of nodes increase downwards, and so do chains and lists, since their
/// lengths decrease.
fn check<A: Addr>(tree: &BsdRadix<A>, hop_count: u32) -> Result<(), LoadError> {
    let BsdRadix { nodes, leaves, entries, .. } = tree;
    let count = leaves.len() / leaf::width::<A>();
    let bit_of = |node: u32| nodes.get(node as usize).map(|node| node[0]);
    let listed = |start: u32| start == NONE || (start as usize) < entries.len();
    for (number, &[bit, left, right, parent, list]) in (0..).zip(nodes.iter()) {
        if number != 0 && !nodes.is_used(number) {
            continue;
        }
        let child = |child: u32| {
            if child & LEAF == 0 {
                bit_of(child).is_some_and(|below| below > bit)
            } else {
                ((child & !LEAF) as usize) < count
            }
        };
        let parent = match number {
            0 => parent == NONE,
            _ => bit_of(parent).is_some_and(|above| above < bit),
        };
        if bit >= A::BITS.into() || !child(left) || !child(right) || !parent || !listed(list) {
            return Err(LoadError::new(
                NODES,
                "has a bit, a child, a parent or a list out of order",
            ));
        }
    }
    if nodes.is_empty() {
        return Err(LoadError::new(NODES, "has no root"));
    }
    for number in (0..count).filter(|&number| leaves.is_used(number as u32)) {
        let (_, parent, chain) = leaf::read::<A>(leaves, number);
        if parent as usize >= nodes.len() || !listed(chain) {
            return Err(LoadError::new(LEAVES, "has a parent or a chain that is not there"));
        }
    }
    let sound = |&[len, code, next]: &Entry| {
        let shorter = entries.get(next as usize).is_some_and(|&[below, ..]| below < len);
        code <= hop_count && (next == NONE || shorter)
    };
    if !entries.iter().all(sound) {
        return Err(LoadError::new(ENTRIES, "names an unknown hop, or is not in order of length"));
    }
    Ok(())
}
