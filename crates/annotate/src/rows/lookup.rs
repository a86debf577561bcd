//! Looks up the hops and prefixes of the addresses in a block.

use fibula_core::{AnyPrefix, Hop, Prefix};
use fibula_fib::{Ask, DatedFib, Dates, prefix_of};

use crate::AnnotateOptions;
use crate::added::{Added, Addition};
use crate::block::{Block, Keys};
use crate::table::{LookupTable, TableAddr};

/// The results of looking up a block.
#[derive(Default)]
pub(super) struct Answers {
    /// For each cell: a row of the table, [`LookUp::unmatched`] for an address that no route covers, or [`Hop::NONE`] for
    /// a cell without an address.
    pub(super) hops: Vec<Hop>,
    /// For each cell, the matching prefix; empty if no addition needs prefixes.
    pub(super) prefixes: Vec<Option<AnyPrefix>>,
    /// For each IPv4 address of the block, the number of the matching route; empty if routes were not looked up.
    pub(super) v4_routes: Vec<Hop>,
    /// The same for IPv6.
    pub(super) v6_routes: Vec<Hop>,
}

/// Looks up the addresses of blocks.
pub(super) struct LookUp<'r> {
    table: &'r dyn LookupTable,
    by_route: bool,
    /// The number of cells in a row.
    cells: usize,
    /// Whether a table of several dates looks up route numbers for the summary. A single table's lookup by route gives
    /// them at no cost.
    of_routes: bool,
    answers: Answers,
    scratch: Vec<Hop>,
}

impl<'r> LookUp<'r> {
    pub(super) fn new(
        table: &'r dyn LookupTable,
        additions: &[Addition],
        names: &[String],
        options: &AnnotateOptions,
    ) -> Self {
        let is_route = |addition: &Addition| !matches!(addition.what, Added::Value(_));
        let by_route = options.all_covering || additions.iter().any(is_route);
        let is_prefix = |addition: &Addition| addition.what == Added::Prefix;
        let of_routes = options.top > 0 && additions.iter().any(is_prefix);
        let cells = names.len().max(1);
        Self { table, by_route, cells, of_routes, answers: Answers::default(), scratch: Vec::new() }
    }

    /// The hop of an address that no route covers: the number after the last row.
    pub(super) fn unmatched(table: &dyn LookupTable) -> Hop {
        Hop::new(table.columns().len())
    }

    /// Looks up all addresses of the block.
    pub(super) fn block(&mut self, block: &Block) -> &Answers {
        let Answers { hops, prefixes, v4_routes, v6_routes } = &mut self.answers;
        hops.clear();
        hops.resize(block.cells, Hop::NONE);
        prefixes.clear();
        if let (Some(fib), Some(clock)) = (self.table.dated(), &block.clock) {
            let (cells, unmatched) = (self.cells, Self::unmatched(self.table));
            let at = At { fib, rows: &clock.rows, cells, unmatched, of_routes: self.of_routes };
            if self.by_route {
                prefixes.resize(block.cells, None);
            }
            at.look_up(&block.v4, &mut self.scratch, v4_routes, hops, prefixes);
            at.look_up(&block.v6, &mut self.scratch, v6_routes, hops, prefixes);
        } else if self.by_route {
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

/// With several dates, looks up each cell in the table of its row's time.
struct At<'a> {
    fib: &'a DatedFib,
    rows: &'a [u16],
    cells: usize,
    unmatched: Hop,
    /// Whether the numbers of routes are counted.
    of_routes: bool,
}

impl At<'_> {
    /// Looks up hops, prefixes if `prefixes` is not empty, and route numbers if they are counted. A cell whose row has
    /// no table is treated like a cell without an address.
    fn look_up<A: TableAddr>(
        &self,
        keys: &Keys<A>,
        timelines: &mut Vec<Hop>,
        numbers: &mut Vec<Hop>,
        hops: &mut [Hop],
        prefixes: &mut [Option<AnyPrefix>],
    ) {
        let family = self.fib.family::<A>();
        let (routes, ask) = (family.routes(), self.fib.timelines::<A>().ask());
        timelines.clear();
        timelines.resize(keys.addrs.len(), Hop::NONE);
        family.engine().lookup_batch(&keys.addrs, timelines);
        numbers.clear();
        if self.of_routes {
            numbers.resize(keys.addrs.len(), Hop::NONE);
            family.numbers(&keys.addrs, numbers);
        }
        for (at, (&timeline, &cell)) in timelines.iter().zip(&keys.cells).enumerate() {
            if at.is_multiple_of(Ask::AT_ONCE) {
                ask.fetch(&timelines[at..timelines.len().min(at + Ask::AT_ONCE)]);
            }
            let cell = cell as usize;
            // If the input ends with an error within a row, the cells of this row have no time.
            let date = self.rows.get(cell / self.cells).copied().unwrap_or(Dates::NONE);
            let found = ask.find(timeline, date);
            if date != Dates::NONE {
                hops[cell] = found.map_or(self.unmatched, |(row, _)| row.min(self.unmatched));
            }
            if let Some(place) = prefixes.get_mut(cell) {
                *place = found.map(|(_, len)| prefix_of(keys.addrs[at], len).into());
            }
            if let Some(number) = numbers.get_mut(at) {
                // `number` is the longest route of all dates. The route of this date is this one or covers it.
                let index = found.zip(number.index()).and_then(|((_, len), index)| {
                    let mut outward = routes.outward(index as usize);
                    outward.find(|&index| routes.prefix_len(index) == len)
                });
                *number = index.map_or(Hop::NONE, |index| Hop::new(index as u32));
            }
        }
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

/// Looks up routes, which give both the prefixes and the hops.
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
