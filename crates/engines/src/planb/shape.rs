use crate::common::SearchKey;

/// Where the nodes of each level lie: a function of the number of intervals alone.
///
/// Levels are counted from the root; the final one has the leaves. A node is one cache line of keys, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LevelLayout {
    /// The first node of each level, counted in nodes; the root is node 0.
    bases: Vec<usize>,
    /// All nodes.
    nodes: usize,
}

impl LevelLayout {
    /// The shape for so many intervals, at least one, with so many keys in a node. A level has as many nodes as the one
    /// below needs for parents, no more: the paper's memory optimisation for trailing leaves, at every level.
    pub(super) fn new(intervals: usize, lanes: usize) -> Self {
        let mut counts = vec![intervals.div_ceil(lanes)];
        while let Some(&count) = counts.last()
            && count > 1
        {
            counts.push(count.div_ceil(lanes + 1));
        }
        let mut nodes = 0;
        let mut bases = Vec::with_capacity(counts.len());
        for count in counts.into_iter().rev() {
            bases.push(nodes);
            nodes += count;
        }
        Self { bases, nodes }
    }

    pub(super) fn levels(&self) -> usize {
        self.bases.len()
    }

    /// The first node of each level, the root's first.
    #[inline(always)]
    pub(super) fn bases(&self) -> &[usize] {
        &self.bases
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// Gives the keys of the nodes, each of so many, one after the other, with their places counted in keys; the
    /// leaves' are copied from `lasts`.
    ///
    /// The key of slot *s* of an inner node is the final last under its child *s*, or the largest
    /// key if the leaves end before that.
    pub(super) fn for_each_key<K: SearchKey>(
        &self,
        lanes: usize,
        lasts: &[K],
        mut each: impl FnMut(usize, K),
    ) {
        let ends = self.bases.iter().skip(1).copied().chain([self.nodes]);
        for (level, (&base, end)) in self.bases.iter().zip(ends).enumerate() {
            // Keys of leaves under one child of a node of this level; 1 means the key itself.
            let mut under = 1usize;
            for step in 0..self.levels() - 1 - level {
                under = under.saturating_mul(lanes + usize::from(step > 0));
            }
            let inner = level + 1 < self.levels();
            for node in 0..end - base {
                for slot in 0..lanes {
                    let child = node * (lanes + usize::from(inner)) + slot;
                    let last = (child + 1).saturating_mul(under) - 1;
                    let key = lasts.get(last).copied().unwrap_or(K::MAX);
                    each((base + node) * lanes + slot, key);
                }
            }
        }
    }
}
