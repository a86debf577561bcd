//! Finds the smallest table with the same answers.

use std::ops::Range;

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

/// The fewest routes with which every address has the hop that it has with these: for routers with little room, and for
/// engines whose tables grow with the routes. An address without a route still has none.
///
/// This is ORTC: Draves, King, Venkatachary, Zill, *Constructing Optimal IP Routing Tables*, INFOCOM 1999. There, a
/// route may also say that there is none; here it cannot, so a prefix that holds an address without a route gets no
/// route itself.
///
/// Takes O(*n* · *w*) time and memory for *n* routes of *w* bits with few hops. Where hops hardly repeat it takes up to
/// *w* times as much, because a prefix may then have any hop of those inside it.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
///
/// let route = |prefix: &str, hop| Ok((prefix.parse::<Prefix<u32>>()?, Hop::new(hop)));
/// let list = [("0.0.0.0/0", 1), ("10.0.0.0/9", 2), ("10.128.0.0/10", 2), ("10.192.0.0/10", 1)];
/// let routes: Routes<u32> = list.map(|(prefix, hop)| route(prefix, hop)).into_iter().collect::<Result<_, _>>()?;
/// let fewest = fibula_fib::compress(&routes);
/// let expected = [route("0.0.0.0/0", 1)?, route("10.0.0.0/8", 2)?, route("10.192.0.0/10", 1)?];
/// assert_eq!(fewest, expected.into_iter().collect());
/// # Ok::<(), fibula_core::PrefixError>(())
/// ```
pub fn compress<A: Addr>(routes: &Routes<A>) -> Routes<A> {
    let mut tree = Tree::default();
    let root = tree.add(Prefix::ALL, routes.as_slice(), Hop::NONE);
    let mut fewest = Vec::new();
    tree.choose(&root, Prefix::ALL, Hop::NONE, &mut fewest);
    fewest.into_iter().collect()
}

/// The binary trie of the routes, down to where no longer route divides an address range.
#[derive(Default)]
struct Tree {
    /// The children of inner nodes.
    children: Vec<[Node; 2]>,
    /// The hops that the inner nodes may have, ascending, one node's after the other's.
    choices: Vec<Hop>,
}

/// A node, with the hops that its prefix may have so that the routes below it are fewest.
#[derive(Clone)]
enum Node {
    /// All addresses have this hop.
    Leaf(Hop),
    /// Its number, and its choices: none, if an address below it has no route.
    Inner(usize, Range<usize>),
}

/// The two halves of a prefix.
fn halves<A: Addr>(prefix: Prefix<A>) -> [Prefix<A>; 2] {
    let half =
        |addr| Prefix::masked(addr, prefix.len() + 1).expect("a prefix that is divided has room");
    [half(prefix.first()), half(prefix.last())]
}

impl Tree {
    /// The node of a prefix whose routes these are, in order; outside of them addresses have the hop `around`.
    fn add<A: Addr>(&mut self, prefix: Prefix<A>, routes: &[Route<A>], around: Hop) -> Node {
        let (around, routes) = match routes {
            [own, longer @ ..] if own.prefix == prefix => (own.hop, longer),
            _ => (around, routes),
        };
        if routes.is_empty() {
            return Node::Leaf(around);
        }
        let [low, high] = halves(prefix);
        let middle = routes.partition_point(|route| route.prefix.addr() < high.addr());
        let children =
            [self.add(low, &routes[..middle], around), self.add(high, &routes[middle..], around)];
        let choices = self.merge(&children);
        self.children.push(children);
        Node::Inner(self.children.len() - 1, choices)
    }

    /// The hops that both children may have; if there are none, those that one of them may.
    fn merge(&mut self, children: &[Node; 2]) -> Range<usize> {
        let start = self.choices.len();
        let [low, high] = children.each_ref().map(|child| self.choices_of(child).to_vec());
        if !low.is_empty() && !high.is_empty() {
            self.choices.extend(low.iter().filter(|hop| high.binary_search(hop).is_ok()));
            if self.choices.len() == start {
                self.choices.extend(low.iter().chain(&high));
                self.choices[start..].sort_unstable();
            }
        }
        start..self.choices.len()
    }

    fn choices_of<'a>(&'a self, node: &'a Node) -> &'a [Hop] {
        match node {
            Node::Leaf(Hop::NONE) => &[],
            Node::Leaf(hop) => std::slice::from_ref(hop),
            Node::Inner(_, choices) => &self.choices[choices.clone()],
        }
    }

    /// Adds the routes of a node to `fewest`; outside of them its addresses have the hop `around`.
    fn choose<A: Addr>(
        &self,
        node: &Node,
        prefix: Prefix<A>,
        around: Hop,
        fewest: &mut Vec<Route<A>>,
    ) {
        let choices = self.choices_of(node);
        let hop = match choices {
            [] => around,
            [first, ..] if choices.binary_search(&around).is_err() => {
                fewest.push(Route { prefix, hop: *first });
                *first
            }
            _ => around,
        };
        if let Node::Inner(number, _) = node {
            for (child, half) in self.children[*number].iter().zip(halves(prefix)) {
                self.choose(child, half, hop, fewest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The hop of the first `bits` bits, from the last of the routes in order that covers them.
    fn hop<A: Addr>(routes: &Routes<A>, addr: A) -> Hop {
        let covering = routes.iter().filter(|route| route.prefix.contains(addr));
        covering.last().map_or(Hop::NONE, |route| route.hop)
    }

    /// The fewest routes by trying every hop at every node of four levels, for the hops of sixteen addresses.
    fn fewest(hops: &[Hop], around: Hop, all: &[Hop]) -> usize {
        let below = |around| match hops {
            [hop] => {
                if *hop == around {
                    0
                } else {
                    usize::MAX / 64
                }
            }
            _ => hops.chunks(hops.len() / 2).map(|half| fewest(half, around, all)).sum(),
        };
        let own = all.iter().map(|&hop| 1 + below(hop)).min();
        below(around).min(own.unwrap_or(usize::MAX / 64))
    }

    fn table<A: Addr>(list: &[(u8, u8, u8)], low: bool) -> Routes<A> {
        let shift = if low { 0 } else { A::BITS - 4 };
        let first = A::BITS - 4 - shift;
        let route = |&(bits, len, hop): &(u8, u8, u8)| {
            let addr = A::from_u128(u128::from(bits) << shift);
            (Prefix::masked(addr, first + len).unwrap(), Hop::new(hop.into()))
        };
        list.iter().map(route).collect()
    }

    fn check<A: Addr>(list: &[(u8, u8, u8)], low: bool) -> Result<(), TestCaseError> {
        let routes = table::<A>(list, low);
        let compressed = compress(&routes);
        let shift = if low { 0 } else { A::BITS - 4 };
        let addr = |bits: u8| A::from_u128(u128::from(bits) << shift);
        let hops: Vec<Hop> = (0..16).map(|bits| hop(&routes, addr(bits))).collect();
        let after: Vec<Hop> = (0..16).map(|bits| hop(&compressed, addr(bits))).collect();
        prop_assert_eq!(&hops, &after);
        // Beside the sixteen addresses, or in the same prefixes as one of them.
        let other = A::from_u128(addr(8).to_u128() ^ 1 << 17);
        prop_assert_eq!(hop(&compressed, other), hop(&routes, other));
        let all: Vec<Hop> = (0..4).map(Hop::new).collect();
        prop_assert_eq!(compressed.len(), fewest(&hops, Hop::NONE, &all));
        prop_assert_eq!(compress(&compressed).len(), compressed.len());
        Ok(())
    }

    proptest! {
        #[test]
        fn the_same_hops_by_the_fewest_routes(
            list in prop::collection::vec((0..16u8, 0..=4u8, 0..4u8), 0..24), low: bool,
        ) {
            check::<u32>(&list, low)?;
            check::<u128>(&list, low)?;
        }
    }
}
