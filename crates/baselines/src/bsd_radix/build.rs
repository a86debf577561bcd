use std::cmp::Reverse;
use std::ops::Range;

use fibula_core::{Addr, BuildError, Routes};
use fibula_simd::Table;

use super::{BsdRadix, Entry, LEAF, NAME, NONE, Node, leaf};

/// Compiles the routes: the tree of their addresses, then the lists of its nodes.
pub(super) fn build<A: Addr>(routes: &Routes<A>) -> Result<BsdRadix<A>, BuildError> {
    // Addresses, and the routes of each, which are neighbours, the shortest first.
    let mut keys = vec![(A::MIN, 0..0)];
    for (i, route) in routes.as_slice().iter().enumerate() {
        let key = route.prefix.addr();
        match keys.last_mut() {
            Some((last, own)) if *last == key => *own = own.start.min(i)..i + 1,
            _ => keys.push((key, i..i + 1)),
        }
    }
    if keys.last().is_none_or(|(last, _)| *last != A::MAX) {
        keys.push((A::MAX, 0..0));
    }
    if keys.len() as u64 > u64::from(LEAF) {
        let (limit, needed) = (LEAF.into(), keys.len() as u64);
        return Err(BuildError::Limit { engine: NAME, what: "addresses", limit, needed });
    }
    let mut builder = Builder {
        routes,
        keys,
        nodes: Vec::new(),
        leaves: Vec::new(),
        entries: Vec::new(),
        listed: Vec::new(),
        way: Vec::new(),
    };
    builder.child(0..builder.keys.len());
    builder.lists();
    let Builder { nodes, leaves, entries, .. } = builder;
    Ok(BsdRadix::new(Table::from_vec(nodes), Table::from_vec(leaves), Table::from_vec(entries)))
}

struct Builder<'a, A: Addr> {
    routes: &'a Routes<A>,
    keys: Vec<(A, Range<usize>)>,
    nodes: Vec<Node>,
    leaves: Vec<u32>,
    entries: Vec<Entry>,
    /// Node, length and code of each entry of a list.
    listed: Vec<(u32, Reverse<u32>, u32)>,
    /// The nodes from the root to the current one, with their bits.
    way: Vec<(u32, u32)>,
}

impl<A: Addr> Builder<'_, A> {
    /// Builds the subtree of these addresses, and returns its number as stored in the parent.
    fn child(&mut self, range: Range<usize>) -> u32 {
        let (first, last) = (self.keys[range.start].0, self.keys[range.end - 1].0);
        if range.len() == 1 {
            return self.leaf(range.start);
        }
        let bit = first.common_prefix_len(last);
        let right = self.keys[range.clone()].partition_point(|(key, _)| !key.bit(bit));
        let middle = range.start + right;
        let number = self.nodes.len() as u32;
        let parent = self.way.last().map_or(NONE, |(node, _)| *node);
        self.nodes.push([bit.into(), 0, 0, parent, NONE]);
        self.way.push((number, bit.into()));
        let (left, right) = (self.child(range.start..middle), self.child(middle..range.end));
        self.way.pop();
        let node = &mut self.nodes[number as usize];
        [node[1], node[2]] = [left, right];
        number
    }

    fn leaf(&mut self, index: usize) -> u32 {
        let (key, own) = self.keys[index].clone();
        let number = (self.leaves.len() / leaf::width::<A>()) as u32;
        let parent = self.way.last().map_or(NONE, |(node, _)| *node);
        let start = if own.is_empty() { NONE } else { self.entries.len() as u32 };
        self.leaves.extend(leaf::words(key, parent));
        *leaf::chain(&mut self.leaves) = start;
        for route in self.routes.as_slice()[own].iter().rev() {
            let (len, code) = (u32::from(route.prefix.len()), route.hop.to_bits() + 1);
            self.entries.push([len, code, self.entries.len() as u32 + 1]);
            // The highest node whose addresses all agree in the route's bits.
            let above = self.way.partition_point(|(_, bit)| *bit < len);
            if let Some((node, _)) = self.way.get(above) {
                self.listed.push((*node, Reverse(len), code));
            }
        }
        if start != NONE {
            self.entries.last_mut().expect("the leaf has routes")[2] = NONE;
        }
        LEAF | number
    }

    /// Appends the lists of the nodes, the longest first.
    fn lists(&mut self) {
        self.listed.sort_unstable();
        for listed in self.listed.chunk_by(|a, b| a.0 == b.0) {
            self.nodes[listed[0].0 as usize][4] = self.entries.len() as u32;
            let next = self.entries.len() as u32 + 1..;
            let entries = listed.iter().zip(next);
            self.entries.extend(entries.map(|(&(_, Reverse(len), code), next)| [len, code, next]));
            self.entries.last_mut().expect("a list has entries")[2] = NONE;
        }
    }
}
