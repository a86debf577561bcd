//! From the addresses of a block to hops and prefixes.

use fibula_core::{AnyPrefix, Hop, Prefix};

use crate::AnnotateOptions;
use crate::added::{Added, Addition};
use crate::block::{Block, Keys};
use crate::table::{LookupTable, TableAddr};

/// What the addresses of a block found.
#[derive(Default)]
pub(super) struct Answers {
    /// By cell: a row of the table, [`LookUp::unmatched`] for an address that nothing covers,
    /// [`Hop::NONE`] for a cell without an address.
    pub(super) hops: Vec<Hop>,
    /// By cell, if prefixes are added.
    pub(super) prefixes: Vec<Option<AnyPrefix>>,
    /// By address of the block's IPv4 keys: the number of the matching route, if prefixes are added.
    pub(super) v4_routes: Vec<Hop>,
    /// The same for IPv6.
    pub(super) v6_routes: Vec<Hop>,
}

/// Looks up the addresses of blocks.
pub(super) struct LookUp<'r> {
    table: &'r dyn LookupTable,
    by_route: bool,
    answers: Answers,
    scratch: Vec<Hop>,
}

impl<'r> LookUp<'r> {
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &[Addition],
        options: &AnnotateOptions,
    ) -> Self {
        let is_route = |addition: &Addition| !matches!(addition.what, Added::Value(_));
        let by_route = options.all_covering || additions.iter().any(is_route);
        Self { table, by_route, answers: Answers::default(), scratch: Vec::new() }
    }

    /// The hop of an address that nothing covers, behind those of the rows.
    pub(super) fn unmatched(table: &dyn LookupTable) -> Hop {
        Hop::new(table.columns().len())
    }

    /// Looks up all addresses of the block.
    pub(super) fn block(&mut self, block: &Block) -> &Answers {
        let Answers { hops, prefixes, v4_routes, v6_routes } = &mut self.answers;
        hops.clear();
        hops.resize(block.cells, Hop::NONE);
        prefixes.clear();
        if self.by_route {
            prefixes.resize(block.cells, None);
            match_routes(self.table, &block.v4, v4_routes, hops, prefixes, AnyPrefix::V4);
            match_routes(self.table, &block.v6, v6_routes, hops, prefixes, AnyPrefix::V6);
        } else {
            look_up(self.table, &block.v4, &mut self.scratch, hops);
            look_up(self.table, &block.v6, &mut self.scratch, hops);
        }
        &self.answers
    }
}

fn look_up<A: TableAddr>(
    table: &dyn LookupTable,
    keys: &Keys<A>,
    scratch: &mut Vec<Hop>,
    hops: &mut [Hop],
) {
    scratch.clear();
    scratch.resize(keys.addrs.len(), Hop::NONE);
    A::in_table(table).engine().lookup_batch(&keys.addrs, scratch);
    let unmatched = LookUp::unmatched(table);
    for (&cell, &hop) in keys.cells.iter().zip(scratch.iter()) {
        hops[cell as usize] = hop.min(unmatched);
    }
}

/// Where the prefix is asked for, its route says the hop too.
fn match_routes<A: TableAddr>(
    table: &dyn LookupTable,
    keys: &Keys<A>,
    numbers: &mut Vec<Hop>,
    hops: &mut [Hop],
    prefixes: &mut [Option<AnyPrefix>],
    any: fn(Prefix<A>) -> AnyPrefix,
) {
    numbers.clear();
    numbers.resize(keys.addrs.len(), Hop::NONE);
    let family = A::in_table(table);
    family.numbers(&keys.addrs, numbers);
    let routes = family.routes();
    let unmatched = LookUp::unmatched(table);
    for (&found, &cell) in numbers.iter().zip(&keys.cells) {
        let index = found.to_bits() as usize;
        hops[cell as usize] = unmatched;
        if index < routes.len() {
            let route = routes.get(index);
            hops[cell as usize] = route.hop;
            prefixes[cell as usize] = Some(any(route.prefix));
        }
    }
}
