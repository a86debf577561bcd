//! Counts the addresses of blocks and their matches.

use fibula_core::Hop;

use super::lookup::{Answers, LookUp};
use crate::Summary;
use crate::added::{Added, Addition};
use crate::block::{Block, Keys};
use crate::hits::Hits;
use crate::table::{LookupTable, TableAddr};

/// Counts addresses, matches, and the frequency of values.
pub(super) struct Counter<'r> {
    table: &'r dyn LookupTable,
    additions: &'r [Addition],
    /// The names of the address columns.
    names: Vec<String>,
    /// How many of the most frequent values are listed.
    top: usize,
    /// One for each address column; empty if `top` is 0.
    hits: Vec<Hits>,
    unmatched: Hop,
    v4: u64,
    addresses: u64,
    matched: u64,
}

impl<'r> Counter<'r> {
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &'r [Addition],
        names: &[String],
        top: usize,
    ) -> Self {
        let prefixes = additions.iter().any(|addition| addition.what == Added::Prefix);
        let slots = if top > 0 { names.len() } else { 0 };
        Self {
            table,
            additions,
            names: names.to_vec(),
            top,
            hits: (0..slots).map(|_| Hits::new(table, prefixes)).collect(),
            unmatched: LookUp::unmatched(table),
            v4: 0,
            addresses: 0,
            matched: 0,
        }
    }

    /// Counts the addresses of a block.
    pub(super) fn block(&mut self, block: &Block, answers: &Answers) {
        let (v4, v6) = (block.v4.addrs.len() as u64, block.v6.addrs.len() as u64);
        if block.clock.is_some() {
            // Addresses of rows without a table are not counted.
            let asked = |cells: &[u32]| {
                cells.iter().filter(|&&cell| answers.hops[cell as usize] != Hop::NONE).count()
                    as u64
            };
            let v4 = asked(&block.v4.cells);
            self.v4 += v4;
            self.addresses += v4 + asked(&block.v6.cells);
        } else {
            self.v4 += v4;
            self.addresses += v4 + v6;
        }
        let hops = &answers.hops;
        self.matched += hops.iter().filter(|&&hop| hop < self.unmatched).count() as u64;
        for (slot, hits) in self.hits.iter_mut().enumerate() {
            hops.iter().skip(slot).step_by(self.names.len()).for_each(|&hop| hits.hop(hop));
        }
        self.routes(&block.v4, &answers.v4_routes);
        self.routes(&block.v6, &answers.v6_routes);
    }

    /// Counts matching routes. `routes` is empty if they were not looked up.
    fn routes<A: TableAddr>(&mut self, keys: &Keys<A>, routes: &[Hop]) {
        let slots = self.names.len().max(1);
        for (&route, &cell) in routes.iter().zip(&keys.cells) {
            if let Some(hits) = self.hits.get_mut(cell as usize % slots) {
                hits.route::<A>(route.to_bits() as usize);
            }
        }
    }

    /// Adds the counts of `other`.
    pub(super) fn merge(&mut self, other: &Self) {
        self.v4 += other.v4;
        self.addresses += other.addresses;
        self.matched += other.matched;
        self.hits.iter_mut().zip(&other.hits).for_each(|(ours, theirs)| ours.merge(theirs));
    }

    /// Adds the counts to a summary that has the decoder's counts.
    pub(super) fn complete(&self, summary: Summary) -> Summary {
        let top = self.hits.iter().zip(&self.names);
        let top = top.flat_map(|(hits, name)| hits.top(self.table, self.additions, name, self.top));
        Summary {
            addresses: self.addresses,
            v4: self.v4,
            matched: self.matched,
            unmatched: self.addresses - self.matched,
            top: top.collect(),
            ..summary
        }
    }
}
