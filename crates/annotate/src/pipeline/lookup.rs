//! Looks up the keys of a block, all addresses of a family at once.

use std::sync::OnceLock;

use fibula_core::{Addr, Hop};
use fibula_fib::{Ask, DatedFib, Dates, Pod};

use super::answers::{Answers, Numbers, RouteNumbers, Without};
use super::keys::{Cells, Keys};
use super::lengths::MatchedLength;
use crate::LookupTable;
use crate::table::family_of;

/// The answers that later stages need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) rows: bool,
    pub(crate) lengths: bool,
    pub(crate) routes: bool,
}

/// The row and the prefix length of each route, read when they are first needed. For long inputs, they are faster than
/// the routes themselves, because they stay in the caches.
#[derive(Default)]
pub(crate) struct RouteTables {
    rows: OnceLock<Vec<u32>>,
    lengths: OnceLock<Vec<MatchedLength>>,
}

/// Buffers that are reused for each block.
#[derive(Default)]
pub(crate) struct Scratch {
    hops: Vec<Hop>,
    numbers: Vec<Hop>,
}

/// Looks up blocks of addresses.
#[derive(Clone, Copy)]
pub(crate) struct LookUp<'t> {
    table: &'t dyn LookupTable,
    wanted: Wanted,
    /// Gives the rows and lengths of routes. Without it, they are read from the routes.
    tables: Option<&'t RouteTables>,
    numbers: Numbers,
    routes: RouteNumbers,
}

impl<'t> LookUp<'t> {
    pub(crate) fn new(
        table: &'t dyn LookupTable,
        wanted: Wanted,
        tables: Option<&'t RouteTables>,
    ) -> Self {
        let (numbers, routes) = (Numbers::rows(table), RouteNumbers::new(table));
        Self { table, wanted, tables, numbers, routes }
    }

    /// How many addresses to look up at once at least: as [`LookupTable::batch`].
    pub(crate) fn batch(&self) -> Option<usize> {
        self.table.batch()
    }

    pub(crate) fn wanted(&self) -> Wanted {
        self.wanted
    }

    /// Looks up a block of `count` cells. If the table has several dates, [`Answers::dates`] must have the date of each
    /// cell.
    pub(crate) fn block(
        &self,
        cells: &mut Cells,
        count: usize,
        scratch: &mut Scratch,
        answers: &mut Answers,
    ) {
        let Wanted { rows, lengths, routes } = self.wanted;
        // Every cell is in one of the three lists, so these initial values and those of the last block are overwritten.
        if rows {
            answers.rows.resize(count, 0);
        }
        if routes {
            answers.routes.resize(count, 0);
        }
        if lengths {
            answers.lengths.resize(count, MatchedLength::default());
            answers.v4.resize(count, 0);
            answers.v6.resize(count, 0);
        }
        match self.table.dated() {
            Some(fib) => {
                let is_out = |cell: u32| answers.dates[cell as usize] == Dates::NONE;
                cells.leave_out(is_out, Without::Untimed);
                self.family_at(fib, &cells.v4, scratch, answers);
                self.family_at(fib, &cells.v6, scratch, answers);
            }
            None => {
                self.family(&cells.v4, scratch, answers);
                self.family(&cells.v6, scratch, answers);
            }
        }
        if lengths {
            for (&cell, &addr) in cells.v4.cells.iter().zip(&cells.v4.addrs) {
                answers.v4[cell as usize] = addr;
            }
            for (&cell, &addr) in cells.v6.cells.iter().zip(&cells.v6.addrs) {
                answers.v6[cell as usize] = addr;
            }
        }
        for &(cell, why) in &cells.others {
            self.without(cell as usize, why, answers);
        }
        self.read_tables(answers);
    }

    /// Looks up a block of IPv4 addresses, one in each cell, in a table without dates.
    pub(crate) fn v4_block(&self, addrs: &[u32], scratch: &mut Scratch, answers: &mut Answers) {
        let (wanted, family) = (self.wanted, self.table.v4());
        answers.rows.clear();
        answers.lengths.clear();
        answers.routes.clear();
        if wanted.lengths {
            answers.v4.clear();
            answers.v4.extend_from_slice(addrs);
            answers.v6.resize(addrs.len(), 0);
        }
        let hops = &mut scratch.hops;
        if wanted.routes {
            fresh(hops, addrs.len());
            family.numbers(addrs, hops);
            let number = self.route::<u32>();
            answers.routes.extend(hops.iter().map(|&hop| number(hop)));
            return self.read_tables(answers);
        }
        if wanted.lengths {
            fresh(hops, addrs.len());
            family.lengths(addrs, hops);
            answers.lengths.extend(hops.iter().map(|&hop| length::<u32>(hop)));
        }
        if wanted.rows {
            fresh(hops, addrs.len());
            family.engine().lookup_batch(addrs, hops);
            answers.rows.extend(hops.iter().map(|&hop| self.numbers.of_hop(hop)));
        }
    }

    /// Appends the answers of an empty cell.
    pub(crate) fn push_empty(&self, answers: &mut Answers) {
        answers.rows.push(self.numbers.of(Without::Empty));
        answers.lengths.push(MatchedLength::without(Without::Empty));
        answers.routes.push(self.routes.numbers().of(Without::Empty));
        answers.v4.push(0);
        answers.v6.push(0);
    }

    /// Sets the answers of a cell that was not looked up.
    #[inline]
    fn without(&self, cell: usize, why: Without, answers: &mut Answers) {
        if self.wanted.rows {
            answers.rows[cell] = self.numbers.of(why);
        }
        if self.wanted.lengths {
            answers.lengths[cell] = MatchedLength::without(why);
        }
        if self.wanted.routes {
            answers.routes[cell] = self.routes.numbers().of(why);
        }
    }

    /// Converts a route's index in its family to its number.
    #[inline]
    fn route<A: Addr + Pod>(&self) -> impl Fn(Hop) -> u32 + use<A> {
        let (first, len) = (self.routes.first::<A>(), family_of::<A>(self.table).routes().len());
        let none = self.routes.numbers().of(Without::Unmatched);
        move |hop| if (hop.to_bits() as usize) < len { first + hop.to_bits() } else { none }
    }

    fn family<A: Addr + Pod>(&self, keys: &Keys<A>, scratch: &mut Scratch, answers: &mut Answers) {
        let Keys { addrs, cells } = keys;
        let (wanted, hops) = (self.wanted, &mut scratch.hops);
        let family = family_of::<A>(self.table);
        if wanted.routes {
            fresh(hops, addrs.len());
            family.numbers(addrs, hops);
            let number = self.route::<A>();
            for (&cell, &hop) in cells.iter().zip(hops.iter()) {
                answers.routes[cell as usize] = number(hop);
            }
            if self.tables.is_none() {
                self.read_routes(keys, hops, answers);
            }
            return;
        }
        if wanted.lengths {
            fresh(hops, addrs.len());
            family.lengths(addrs, hops);
            for (&cell, &hop) in cells.iter().zip(hops.iter()) {
                answers.lengths[cell as usize] = length::<A>(hop);
            }
        }
        if wanted.rows {
            fresh(hops, addrs.len());
            family.engine().lookup_batch(addrs, hops);
            for (&cell, &hop) in cells.iter().zip(hops.iter()) {
                answers.rows[cell as usize] = self.numbers.of_hop(hop);
            }
        }
    }

    /// Like `family`, but looks up each address in the table of its date.
    fn family_at<A: Addr + Pod>(
        &self,
        fib: &DatedFib,
        keys: &Keys<A>,
        scratch: &mut Scratch,
        answers: &mut Answers,
    ) {
        let Keys { addrs, cells } = keys;
        let (family, ask) = (fib.family::<A>(), fib.timelines::<A>().ask());
        let Scratch { hops: timelines, numbers } = scratch;
        fresh(timelines, addrs.len());
        family.engine().lookup_batch(addrs, timelines);
        numbers.clear();
        if self.wanted.routes {
            fresh(numbers, addrs.len());
            family.numbers(addrs, numbers);
        }
        let (routes, number) = (family.routes(), self.route::<A>());
        let unmatched = self.numbers.of(Without::Unmatched);
        for (at, (&timeline, &cell)) in timelines.iter().zip(cells).enumerate() {
            if at.is_multiple_of(Ask::AT_ONCE) {
                ask.fetch(&timelines[at..timelines.len().min(at + Ask::AT_ONCE)]);
            }
            let cell = cell as usize;
            let found = ask.find(timeline, answers.dates[cell]);
            if self.wanted.rows {
                answers.rows[cell] = found.map_or(unmatched, |(row, _)| self.numbers.of_hop(row));
            }
            if self.wanted.lengths {
                let unmatched = MatchedLength::without(Without::Unmatched);
                answers.lengths[cell] =
                    found.map_or(unmatched, |(_, len)| MatchedLength::new(A::BITS, len));
            }
            if let Some(longest) = numbers.get(at) {
                // `longest` is the longest route of all dates. The route of this date is this one or covers it.
                let index = found.zip(longest.index()).and_then(|((_, len), index)| {
                    let mut outward = routes.outward(index as usize);
                    outward.find(|&index| routes.prefix_len(index) == len)
                });
                answers.routes[cell] =
                    number(index.map_or(Hop::NONE, |index| Hop::new(index as u32)));
            }
        }
    }

    /// Reads the rows and lengths of routes that are given by their indices in the family.
    fn read_routes<A: Addr + Pod>(&self, keys: &Keys<A>, found: &[Hop], answers: &mut Answers) {
        debug_assert!(self.wanted.rows && self.wanted.lengths, "each is read with the other");
        let routes = family_of::<A>(self.table).routes();
        for (&cell, &hop) in keys.cells.iter().zip(found) {
            let (cell, index) = (cell as usize, hop.to_bits() as usize);
            if index < routes.len() {
                answers.rows[cell] = self.numbers.of_hop(routes.hop(index));
                answers.lengths[cell] = MatchedLength::new(A::BITS, routes.prefix_len(index));
            } else {
                answers.rows[cell] = self.numbers.of(Without::Unmatched);
                answers.lengths[cell] = MatchedLength::without(Without::Unmatched);
            }
        }
    }

    /// Reads the rows and lengths of routes from the tables, in short loops, so that many loads run at the same time
    /// and cache misses overlap. With several dates, the row of a route depends on the date.
    fn read_tables(&self, answers: &mut Answers) {
        let Some(tables) = self.tables.filter(|_| self.wanted.routes) else { return };
        if self.table.dated().is_some() {
            return;
        }
        if self.wanted.rows {
            let rows = tables.rows.get_or_init(|| self.rows_of_routes());
            answers.rows.clear();
            answers.rows.extend(answers.routes.iter().map(|&route| rows[route as usize]));
        }
        if self.wanted.lengths {
            let lengths = tables.lengths.get_or_init(|| self.lengths_of_routes());
            answers.lengths.clear();
            answers.lengths.extend(answers.routes.iter().map(|&route| lengths[route as usize]));
        }
    }

    fn rows_of_routes(&self) -> Vec<u32> {
        let (v4, v6) = (self.table.v4().routes(), self.table.v6().routes());
        let hops = (0..v4.len()).map(|route| v4.hop(route));
        let hops = hops.chain((0..v6.len()).map(|route| v6.hop(route)));
        // A hop beyond the last row, which a valid snapshot does not contain, counts as unmatched.
        let rows = hops.map(|hop| self.numbers.of_hop(hop));
        self.routes.numbers().table(rows, |why| self.numbers.of(why))
    }

    fn lengths_of_routes(&self) -> Vec<MatchedLength> {
        let (v4, v6) = (self.table.v4().routes(), self.table.v6().routes());
        let v4 = (0..v4.len()).map(|route| MatchedLength::new(32, v4.prefix_len(route)));
        let v6 = (0..v6.len()).map(|route| MatchedLength::new(128, v6.prefix_len(route)));
        self.routes.numbers().table(v4.chain(v6), MatchedLength::without)
    }
}

/// Empties the buffer and fills it with `Hop::NONE`.
fn fresh(hops: &mut Vec<Hop>, len: usize) {
    hops.clear();
    hops.resize(len, Hop::NONE);
}

/// Converts a prefix length that is given as a hop.
#[inline(always)]
fn length<A: Addr + Pod>(hop: Hop) -> MatchedLength {
    match u8::try_from(hop.to_bits()) {
        Ok(len) if len <= A::BITS => MatchedLength::new(A::BITS, len),
        _ => MatchedLength::without(Without::Unmatched),
    }
}
