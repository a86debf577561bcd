//! Checks that a search tree can be walked in bounded time.
//!
//! The reader's walk skips empty and aliased parts, so the number of networks that it yields does not bound its time:
//! a hundred nodes that each lead twice to the next have 2^100 paths.

use maxminddb::Metadata;

/// A walk may visit every node this often. Sound trees have up to four aliases of their IPv4 networks.
const VISITS: u64 = 16;
/// Visits that any tree may take.
const BASE: u64 = 4096;

/// Whether the tree at the beginning of `file` has no more paths than a sound one of its size.
pub(super) fn is_credible(file: &[u8], meta: &Metadata) -> bool {
    let mut left = u64::from(meta.node_count) * VISITS + BASE;
    let mut open = vec![0];
    while let Some(node) = open.pop() {
        if node >= meta.node_count {
            continue;
        }
        let Some(rest) = left.checked_sub(1) else { return false };
        left = rest;
        open.extend(children(file, node, meta.record_size).into_iter().flatten());
    }
    true
}

/// Where a node leads on zero and on one; `None` outside the file or for a size that there is not.
fn children(file: &[u8], node: u32, record_size: u16) -> Option<[u32; 2]> {
    let size = usize::from(record_size) / 4;
    let at = (node as usize).checked_mul(size)?;
    let bytes = file.get(at..at.checked_add(size)?)?;
    Some(
        match *bytes {
            [a, b, c, d, e, f] => [[0, a, b, c], [0, d, e, f]],
            [a, b, c, mid, d, e, f] => [[mid >> 4, a, b, c], [mid & 15, d, e, f]],
            [a, b, c, d, e, f, g, h] => [[a, b, c, d], [e, f, g, h]],
            _ => return None,
        }
        .map(u32::from_be_bytes),
    )
}
