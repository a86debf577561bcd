//! The tree of lengths, which gives the order in which a lookup tests them.

/// A node: its length, its left and its right child, its rank among the lengths, and its hash table's first
/// slot and mask.
pub(super) type Node = [u32; 6];

pub(super) const LEN: usize = 0;
pub(super) const LEFT: usize = 1;
pub(super) const RIGHT: usize = 2;
pub(super) const RANK: usize = 3;
pub(super) const PART: usize = 4;

/// No child.
pub(super) const NONE: u32 = u32::MAX;

/// The ranks at which a search for each rank turns right, from the root on. Its markers are there. `None` if a rank is
/// not found, which a build's trees have all.
pub(super) fn markers(tree: &[Node]) -> Option<Vec<Vec<usize>>> {
    let way = |rank: u32| {
        let (mut way, mut at) = (Vec::new(), 0);
        loop {
            let node = tree.get(at as usize)?;
            if node[RANK] == rank {
                return Some(way);
            }
            let right = node[RANK] < rank;
            if right {
                way.push(node[RANK] as usize);
            }
            at = node[if right { RIGHT } else { LEFT }];
        }
    };
    (0..tree.len() as u32).map(way).collect()
}

/// The balanced tree of this many ranks, each node before its children; lengths and tables are filled in later.
pub(super) fn balanced(count: usize) -> Vec<Node> {
    grow(count, &|from, to| (from + to) / 2)
}

/// The tree with the least sum of depths, each rank counted by its weight.
pub(super) fn weighted(weights: &[u64]) -> Vec<Node> {
    let count = weights.len();
    let mut sums = vec![0u64];
    sums.extend(weights.iter().scan(0, |sum, weight| {
        *sum += weight;
        Some(*sum)
    }));
    // The least cost of each range of ranks, and its root; shorter ranges first.
    let mut best = vec![vec![(0u64, 0usize); count + 1]; count + 1];
    for len in 1..=count {
        for from in 0..=count - len {
            let to = from + len;
            let cost = |root: usize| best[from][root].0 + best[root + 1][to].0;
            let root = (from..to).min_by_key(|&root| cost(root)).expect("ranges have ranks");
            best[from][to] = (cost(root) + sums[to] - sums[from], root);
        }
    }
    grow(count, &|from, to| best[from][to].1)
}

/// The tree for which `root` gives the root of each range of ranks.
fn grow(count: usize, root: &dyn Fn(usize, usize) -> usize) -> Vec<Node> {
    fn node(
        tree: &mut Vec<Node>,
        from: usize,
        to: usize,
        root: &dyn Fn(usize, usize) -> usize,
    ) -> u32 {
        if from == to {
            return NONE;
        }
        let (number, rank) = (tree.len(), root(from, to));
        tree.push([0, NONE, NONE, rank as u32, 0, 0]);
        tree[number][LEFT] = node(tree, from, rank, root);
        tree[number][RIGHT] = node(tree, rank + 1, to, root);
        number as u32
    }
    let mut tree = Vec::with_capacity(count);
    node(&mut tree, 0, count, root);
    tree
}
