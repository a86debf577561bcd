use fibula_core::{Addr, BuildError, Hop, Prefix, Routes};

use super::node;

/// A node while the trie grows; children are indices, 0 for none.
struct Node<A> {
    prefix: Prefix<A>,
    hop: Hop,
    children: [u32; 2],
}

/// Compiles the routes into node words, in preorder.
///
/// Sorted routes arrive in preorder, so each new one hangs off the path from the root to the one
/// before: that path is the stack, and the whole build is O(n).
pub(super) fn build<A: Addr>(routes: &Routes<A>) -> Result<Vec<u32>, BuildError> {
    // One node a route, a fork for all but the first, and the root.
    let most = 2 * routes.len() as u64 + 1;
    if most > u64::from(u32::MAX) {
        let limit = u64::from(u32::MAX);
        return Err(BuildError::Limit { engine: "radix", what: "nodes", limit, needed: most });
    }
    let root = Node { prefix: Prefix::ALL, hop: Hop::NONE, children: [0, 0] };
    let mut trie = vec![root];
    let mut path = vec![0u32];
    for route in routes.iter() {
        insert(&mut trie, &mut path, route.prefix, route.hop);
    }
    Ok(emit(&trie))
}

fn insert<A: Addr>(trie: &mut Vec<Node<A>>, path: &mut Vec<u32>, prefix: Prefix<A>, hop: Hop) {
    if prefix.len() == 0 {
        trie[0].hop = hop;
        return;
    }
    // Leave the subtrees that end before the new prefix; remember the last one left.
    let mut left_behind = None;
    let parent = loop {
        let top = path[path.len() - 1];
        if trie[top as usize].prefix.covers(prefix) {
            break top;
        }
        left_behind = path.pop();
    };
    let new = push(trie, prefix, hop);
    let sibling =
        left_behind.map(|node| (node, fork_of(trie[node as usize].prefix, prefix))).filter(
            // A fork at the parent's own length is the parent itself.
            |(_, fork)| fork.len() > trie[parent as usize].prefix.len(),
        );
    let parent_len = trie[parent as usize].prefix.len();
    let slot = usize::from(prefix.addr().bit(parent_len));
    match sibling {
        None => trie[parent as usize].children[slot] = new,
        Some((node, fork)) => {
            let fork_index = push(trie, fork, Hop::NONE);
            // The routes are sorted: an earlier one has a 0 where the new one has a 1.
            trie[fork_index as usize].children = [node, new];
            trie[parent as usize].children[slot] = fork_index;
            path.push(fork_index);
        }
    }
    path.push(new);
}

/// The longest prefix that covers both; neither covers the other.
fn fork_of<A: Addr>(a: Prefix<A>, b: Prefix<A>) -> Prefix<A> {
    let len = a.addr().common_prefix_len(b.addr());
    Prefix::masked(a.addr(), len).expect("a common length is at most the family's")
}

fn push<A>(trie: &mut Vec<Node<A>>, prefix: Prefix<A>, hop: Hop) -> u32 {
    trie.push(Node { prefix, hop, children: [0, 0] });
    (trie.len() - 1) as u32
}

/// Renumbers the nodes in preorder (a node's left child follows it, mostly in the same cache line)
/// and writes them as words.
fn emit<A: Addr>(trie: &[Node<A>]) -> Vec<u32> {
    let (key_words, stride) = (node::key_words::<A>(), node::stride::<A>());
    let mut words = Vec::with_capacity(trie.len() * stride);
    // Node, and the word that waits for its number.
    let mut todo: Vec<(u32, Option<usize>)> = vec![(0, None)];
    while let Some((index, waiting)) = todo.pop() {
        let node = &trie[index as usize];
        if let Some(word) = waiting {
            words[word] = (words.len() / stride) as u32;
        }
        let key = node.prefix.addr().to_u128();
        words.extend((0..key_words).rev().map(|word| (key >> (32 * word)) as u32));
        words.extend([node.prefix.len().into(), node.hop.to_bits(), 0, 0]);
        let right = words.len() - 1;
        for (child, word) in [(node.children[1], right), (node.children[0], right - 1)] {
            if child != 0 {
                todo.push((child, Some(word)));
            }
        }
    }
    words
}
