use fibula_core::{Addr, BuildError, Route, Routes};
use fibula_simd::Table;

use super::node::{
    END, INNER_MASK, NONE, Node, PASSED, SPLIT_END, inner_width, internal, longest, push_inner,
    width, write,
};
use super::{Config, NAME, Tables};
use crate::common::bits;
use fibula_engines::common::Values;

/// Compiles the routes: the array, then the subtree of each entry.
pub(super) fn build<A: Addr>(routes: &Routes<A>, config: Config) -> Result<Tables, BuildError> {
    let entries = 1usize << config.root;
    let mut root = vec![[NONE, 0]; entries];
    let mut builder =
        Builder { config, nodes: Vec::new(), inner: Vec::new(), codes: Vec::new(), full: None };
    // A route of up to `root` bits covers whole entries; in sorted order, shorter routes come first.
    for route in routes.iter().filter(|route| u32::from(route.prefix.len()) <= config.root) {
        let first = bits(route.prefix.addr(), 0, config.root);
        let count = entries >> route.prefix.len();
        for entry in &mut root[first..first + count] {
            entry[1] = route.hop.to_bits() + 1;
        }
    }
    let index = |route: &Route<A>| bits(route.prefix.addr(), 0, config.root);
    for group in routes.as_slice().chunk_by(|a, b| index(a) == index(b)) {
        // The short routes of an entry are sorted before the long ones.
        let short = group.partition_point(|r| u32::from(r.prefix.len()) <= config.root);
        if short < group.len() {
            let number = builder.allocate(1);
            root[index(&group[0])][0] = number as u32;
            builder.node(number, &group[short..], config.root, false);
        }
    }
    builder.finish(root, routes.hop_count())
}

struct Builder {
    config: Config,
    nodes: Vec<u32>,
    inner: Vec<u32>,
    codes: Vec<u32>,
    /// The error, once there are too many nodes or results.
    full: Option<BuildError>,
}

impl Builder {
    /// Makes room for nodes, and returns the number of the first one.
    fn allocate(&mut self, count: usize) -> usize {
        let first = self.nodes.len() / width(self.config);
        self.nodes.resize(self.nodes.len() + count * width(self.config), 0);
        first
    }

    /// Writes the node of routes that have at least `depth` bits and share the first `depth`; `passed` tells whether a
    /// route of the parent covers the node.
    fn node<A: Addr>(&mut self, number: usize, routes: &[Route<A>], depth: u32, passed: bool) {
        let stride = self.config.stride;
        let end = routes.iter().all(|r| u32::from(r.prefix.len()) <= depth + stride);
        let mut node = Node { bits: if end { END } else { 0 }, child: 0, results: 0 };
        // Places and codes of the node's own routes; slots and routes of its children.
        let (mut own, mut children) = (Vec::new(), Vec::new());
        let mut rest = routes;
        while let [route, more @ ..] = rest {
            let len = u32::from(route.prefix.len()) - depth;
            if len < stride || end {
                own.push((1 << len | value(route, depth, len) as u32, route.hop.to_bits() + 1));
                rest = more;
            } else {
                let slot = value(route, depth, stride);
                let same = rest.partition_point(|r| value(r, depth, stride) == slot);
                let (child, others) = rest.split_at(same);
                children.push((slot, child));
                rest = others;
            }
        }
        own.sort_unstable();
        node.results = self.codes.len() as u32;
        self.codes.extend(own.iter().map(|(_, code)| code));
        let places = own.iter().map(|(place, _)| *place);
        for place in places.chain(children.iter().map(|(slot, _)| 1 << stride | *slot as u32)) {
            node.bits |= 1 << place;
        }
        node.child = self.allocate(children.len()) as u32;
        self.check();
        self.write(number, node, passed);
        for (i, (slot, routes)) in children.into_iter().enumerate() {
            let passed = longest(node.bits & internal(stride), stride, slot).is_some();
            self.node(node.child as usize + i, routes, depth + stride, passed);
        }
    }

    fn write(&mut self, number: usize, node: Node, passed: bool) {
        let Config { stride, split, .. } = self.config;
        let inner = split.then(|| {
            let has = node.bits & internal(stride) != 0;
            let number =
                if has { (self.inner.len() / inner_width(stride)) as u32 } else { INNER_MASK };
            if has {
                push_inner(stride, &mut self.inner, node);
            }
            let end = if node.bits & END != 0 { SPLIT_END } else { 0 };
            number & INNER_MASK | end | if passed { PASSED } else { 0 }
        });
        let width = width(self.config);
        write(self.config, &mut self.nodes[number * width..][..width], node, inner);
    }

    fn check(&mut self) {
        let nodes = (self.nodes.len() / width(self.config)) as u64;
        for (what, limit, needed) in [
            ("nodes", u64::from(INNER_MASK), nodes),
            ("results", u64::from(u32::MAX), self.codes.len() as u64),
        ] {
            if needed > limit && self.full.is_none() {
                self.full = Some(BuildError::Limit { engine: NAME, what, limit, needed });
            }
        }
    }

    fn finish(self, root: Vec<[u32; 2]>, hop_count: u32) -> Result<Tables, BuildError> {
        if let Some(error) = self.full {
            return Err(error);
        }
        let results = Values::new(&self.codes, hop_count, 0);
        let (nodes, inner) = (Table::from_vec(self.nodes), Table::from_vec(self.inner));
        Ok(Tables::new(self.config, Table::from_vec(root), nodes, inner, results))
    }
}

/// The `len` bits of the route from `depth` on, as a number.
fn value<A: Addr>(route: &Route<A>, depth: u32, len: u32) -> usize {
    bits(route.prefix.addr(), depth, len)
}
