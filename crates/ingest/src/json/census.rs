//! Scans the whole document to decide which names hold prefixes, before routes are made.

use std::collections::HashSet;

use super::keys::{ends, is_default, is_key};
use super::node::{Member, Node, NodeKind};
use crate::HostBits;
use crate::text::{
    LENGTH_NAMES, PREFIX_NAMES, START_NAMES, SURE_LENGTH_NAMES, parse_ip, parse_network, rank,
};

/// As in text tables, a name counts only if at least half of the values under it have the type that the name suggests:
/// `host` may hold addresses or names of hosts, and `length` may be that of a packet.
pub(super) struct Census {
    prefixes: [Vote; PREFIX_NAMES.len()],
    lengths: [Vote; LENGTH_NAMES.len()],
    ranges: Vote,
    /// Masks that can only be netmasks, and only inverse ones.
    masks: [usize; 2],
    /// Where objects and lists begin that have prefixes in them.
    holders: HashSet<usize>,
}

#[derive(Clone, Copy, Default)]
struct Vote {
    fitting: usize,
    all: usize,
}

impl Vote {
    fn add(&mut self, fits: bool) {
        self.fitting += usize::from(fits);
        self.all += 1;
    }

    fn is_won(self) -> bool {
        self.fitting > 0 && self.fitting * 2 >= self.all
    }
}

impl Default for Census {
    fn default() -> Self {
        Self {
            prefixes: [Vote::default(); PREFIX_NAMES.len()],
            lengths: [Vote::default(); LENGTH_NAMES.len()],
            ranges: Vote::default(),
            masks: [0; 2],
            holders: HashSet::new(),
        }
    }
}

impl Census {
    pub(super) fn of<'d>(document: &'d Node<'d>) -> Self {
        let mut census = Self::default();
        census.visit(document);
        census
    }

    /// Whether members whose name has this rank in [`PREFIX_NAMES`] are prefixes or addresses.
    pub(super) fn is_prefix(&self, rank: usize) -> bool {
        self.prefixes[rank].is_won()
    }

    /// Whether members whose name has this rank in [`LENGTH_NAMES`] are netmasks or lengths.
    pub(super) fn is_length(&self, rank: usize) -> bool {
        let vote = self.lengths[rank];
        vote.is_won() || (rank < SURE_LENGTH_NAMES && vote.fitting > 0)
    }

    /// Whether netmasks are inverse: `0.0.0.255` is 24.
    pub(super) fn has_wildcards(&self) -> bool {
        self.masks[1] > self.masks[0]
    }

    /// Whether members with names for start and end are ranges of addresses.
    pub(super) fn has_ranges(&self) -> bool {
        self.ranges.is_won()
    }

    /// Whether the object or list has prefixes in it, to be made routes.
    pub(super) fn holds(&self, node: &Node<'_>) -> bool {
        self.holders.contains(&node.start)
    }

    fn visit<'d>(&mut self, node: &'d Node<'d>) -> bool {
        let mut holds = false;
        match &node.kind {
            NodeKind::List(items) => {
                for item in items {
                    holds |= self.visit(item) || item.as_str().is_some_and(is_key);
                }
            }
            NodeKind::Object(members) => {
                for (name, child) in members {
                    holds |= self.visit(child) || is_key(name) || may_be_key(name, child);
                }
                self.vote(&members.iter().collect::<Vec<_>>());
            }
            _ => {}
        }
        if holds {
            self.holders.insert(node.start);
        }
        holds
    }

    fn vote<'d>(&mut self, members: &[&'d Member<'d>]) {
        let mut addresses = Vec::new();
        for (name, child) in members {
            if let (Some(rank), Some(text)) = (rank(name, PREFIX_NAMES), child.words()) {
                self.prefixes[rank].add(is_key(text) || is_default(name, text));
                addresses.extend(parse_ip(text.as_bytes()).map(|_| (rank, text)));
            }
        }
        if let Some((_, address)) = addresses.iter().min() {
            for (name, child) in members {
                if let (Some(rank), Some(text)) = (rank(name, LENGTH_NAMES), child.words())
                    && text != *address
                {
                    let (address, len) = (address.as_bytes(), text.as_bytes());
                    let is_network =
                        |inverse| parse_network(address, len, inverse, HostBits::Mask).is_ok();
                    let found = [false, true].map(is_network);
                    self.lengths[rank].add(found[0] || found[1]);
                    if parse_ip(len).is_some() && found[0] != found[1] {
                        self.masks[usize::from(found[1])] += 1;
                    }
                }
            }
        }
        if let Some(ends) = ends(members) {
            self.ranges.add(ends.fit());
        }
    }
}

/// Whether a member may be the prefix of its object. An address is that only by its name: it may be a gateway.
fn may_be_key(name: &str, child: &Node<'_>) -> bool {
    child.as_str().is_some_and(|text| {
        let is_start = || rank(name, START_NAMES).is_some();
        let is_named = || rank(name, PREFIX_NAMES).is_some() || is_start();
        is_default(name, text) || (is_key(text) && (text.contains(['/', '-', ' ']) || is_named()))
    })
}
