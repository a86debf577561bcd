use fibula_core::{Addr, AnyEngine, BuildError, Engine, Follow, Hop, Lookup, Memory, Routes};

/// The reference: a plain binary trie, one bit a step. Slow, complete, obviously right.
///
/// A node represents a prefix: the root has length 0, child `b` of a node for the prefix one bit longer that ends in
/// `b`. A lookup walks the bits of the address from the root and keeps the last hop that it met: the hop of the longest
/// prefix. Nothing is compressed, pushed, expanded or merged; there is no special case for either end of the space or
/// for length 0 or full length.
///
/// It is itself an [`Engine`] (`"oracle"`), so that whatever runs engines can run it.
///
/// ```
/// use fibula_core::{Engine, Hop, Lookup, Prefix, Routes};
/// use fibula_testkit::Oracle;
///
/// let routes: Routes<u32> = [
///     (Prefix::ALL, Hop::new(0)),
///     (Prefix::host(u32::MAX), Hop::new(1)),
/// ].into_iter().collect();
/// let oracle = Oracle::build(&routes, &())?;
/// assert_eq!(oracle.lookup(0), Hop::new(0));
/// assert_eq!(oracle.lookup(u32::MAX - 1), Hop::new(0));
/// assert_eq!(oracle.lookup(u32::MAX), Hop::new(1));
/// # Ok::<(), fibula_core::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Oracle<A: Addr> {
    /// `nodes[0]` is the root.
    nodes: Vec<Node>,
    family: core::marker::PhantomData<A>,
}

#[derive(Clone, Debug)]
struct Node {
    /// Indices into `nodes`; 0 is the root, which is no child, and means "none".
    children: [u32; 2],
    /// The hop of this very prefix, [`Hop::NONE`] if it is not in the table.
    hop: Hop,
}

const EMPTY: Node = Node { children: [0, 0], hop: Hop::NONE };

impl<A: Addr> Oracle<A> {
    /// The oracle of the table.
    ///
    /// # Panics
    /// If the trie needs 2^32 nodes, about 50 GB.
    pub fn new(routes: &Routes<A>) -> Self {
        let mut nodes = vec![EMPTY];
        for route in routes.iter() {
            let prefix = route.prefix;
            insert(&mut nodes, key(prefix.addr()), prefix.len(), route.hop);
        }
        Self { nodes, family: core::marker::PhantomData }
    }
}

impl<A: Addr> Lookup<A> for Oracle<A> {
    fn lookup(&self, addr: A) -> Hop {
        walk(&self.nodes, key(addr), A::BITS)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        assert_eq!(addrs.len(), hops.len(), "addresses and hops differ in number");
        for (addr, hop) in addrs.iter().zip(hops) {
            *hop = self.lookup(*addr);
        }
    }

    fn memory(&self) -> Memory {
        Memory::new([("nodes", self.nodes.len() * size_of::<Node>())])
    }
}

// The following functions are instantiated here for both families, so that they are compiled and optimised in this
// crate.

/// The bits of an address, the first at the top.
fn key<A: Addr>(addr: A) -> u128 {
    addr.to_u128() << (128 - u32::from(A::BITS))
}

/// The child that the bit after the first `i` bits of `key` leads to.
fn side(key: u128, i: u8) -> usize {
    usize::from(key << i >> 127 != 0)
}

/// Puts `hop` at the node of the first `len` bits of `key`, which is made if it is not there.
fn insert(nodes: &mut Vec<Node>, key: u128, len: u8, hop: Hop) {
    let mut at = 0;
    for i in 0..len {
        let side = side(key, i);
        if nodes[at].children[side] == 0 {
            let new = u32::try_from(nodes.len()).expect("fewer than 2^32 nodes");
            nodes[at].children[side] = new;
            nodes.push(EMPTY);
        }
        at = nodes[at].children[side] as usize;
    }
    nodes[at].hop = hop;
}

/// The last hop on the way of the first `bits` bits of `key`.
fn walk(nodes: &[Node], key: u128, bits: u8) -> Hop {
    let mut node = &nodes[0];
    let mut hop = node.hop;
    for i in 0..bits {
        let child = node.children[side(key, i)];
        if child == 0 {
            break;
        }
        node = &nodes[child as usize];
        if !node.hop.is_none() {
            hop = node.hop;
        }
    }
    hop
}

impl<A: Addr> Follow<A> for Oracle<A> {}
impl<A: Addr> AnyEngine<A> for Oracle<A> {}

impl<A: Addr> Engine<A> for Oracle<A> {
    const NAME: &'static str = "oracle";
    type Config = ();

    fn build(routes: &Routes<A>, (): &()) -> Result<Self, BuildError> {
        Ok(Self::new(routes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Rng, probes, tables};

    /// The definition of longest-prefix match, word for word.
    fn linear<A: Addr>(routes: &Routes<A>, addr: A) -> Hop {
        routes
            .iter()
            .filter(|route| route.prefix.contains(addr))
            .max_by_key(|route| route.prefix.len())
            .map_or(Hop::NONE, |route| route.hop)
    }

    fn agrees<A: Addr>(routes: &Routes<A>) {
        let oracle = Oracle::new(routes);
        for addr in probes::boundary(routes) {
            assert_eq!(oracle.lookup(addr), linear(routes, addr), "{addr:?}");
        }
        let mut rng = Rng::new(9);
        for _ in 0..100 {
            let addr = rng.addr();
            assert_eq!(oracle.lookup(addr), linear(routes, addr), "{addr:?}");
        }
    }

    #[test]
    fn equals_a_linear_scan() {
        for seed in 0..20 {
            agrees(&tables::dense::<u32>(seed, 60));
            agrees(&tables::dense::<u128>(seed, 60));
        }
        agrees(&Routes::<u32>::default());
        agrees(&Routes::<u128>::default());
    }

    #[test]
    fn equals_a_linear_scan_on_edge_tables() {
        for (_, routes) in tables::edge::<u32>() {
            agrees(&routes);
        }
        for (_, routes) in tables::edge::<u128>() {
            agrees(&routes);
        }
    }
}
