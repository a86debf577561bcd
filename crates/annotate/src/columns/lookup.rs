//! From arrays of addresses to answers, block by block.

use std::sync::OnceLock;

use arrow_array::{Array, ArrayRef};
use fibula_core::Hop;

use super::answers::{Answers, By, Numbering, Numbers, Without};
use super::keys::{Addresses, Cells, Keys};
use crate::table::TableAddr;
use crate::{AnnotateError, LookupTable};

/// Rows of a block of answers; a multiple of 64, so that blocks of bits are whole words.
pub(super) const BLOCK: usize = 2048;

/// Gets the answers of a block, and how many of its addresses are IPv4 ones.
pub(super) type Give<'a> = dyn FnMut(&Answers, u64) -> Result<(), AnnotateError> + 'a;

/// Looks up one column.
pub(super) struct LookUp<'t> {
    pub(super) table: &'t dyn LookupTable,
    /// The rows of all routes, made when they are needed.
    pub(super) rows: &'t OnceLock<Vec<u32>>,
    /// Whether routes are needed, and how they are numbered.
    pub(super) numbering: Option<Numbering>,
    /// Whether rows are needed, beside routes.
    pub(super) of_rows: bool,
}

/// What blocks need, kept from one to the next.
#[derive(Default)]
struct Work {
    cells: Cells,
    hops: Vec<Hop>,
    answers: Answers,
}

/// The answers for the values of a dictionary.
#[derive(Default)]
struct Values {
    answers: Answers,
    /// Whether the value is an IPv4 address.
    v4: Vec<bool>,
}

impl LookUp<'_> {
    /// The numbers of rows.
    fn numbers(&self) -> Numbers {
        Numbers::new(self.table.columns().len())
    }

    /// Gives out the answers of all rows.
    pub(super) fn each_block(
        &self,
        addresses: &Addresses<'_>,
        rows: usize,
        give: &mut Give<'_>,
    ) -> Result<(), AnnotateError> {
        let mut work = Work::default();
        match addresses {
            Addresses::Numbers(numbers) => {
                for block in numbers.chunks(BLOCK) {
                    self.numbers_block(block, &mut work);
                    give(&work.answers, block.len() as u64)?;
                }
            }
            Addresses::Cells(read) => {
                for start in (0..rows).step_by(BLOCK) {
                    let end = rows.min(start + BLOCK);
                    work.cells.clear();
                    read(start..end, &mut work.cells);
                    self.cells_block(end - start, &mut work);
                    give(&work.answers, work.cells.v4.rows.len() as u64)?;
                }
            }
            Addresses::Dictionary { keys, values } => {
                let found = self.values(values)?;
                // Behind the values stands what a null is.
                let null = values.len();
                for keys in keys.chunks(BLOCK) {
                    let place = |key: &Option<usize>| key.unwrap_or(null);
                    let Answers { rows, routes, v4, v6 } = &mut work.answers;
                    rows.clear();
                    rows.extend(keys.iter().map(|key| found.answers.rows[place(key)]));
                    routes.clear();
                    if self.numbering.is_some() {
                        routes.extend(keys.iter().map(|key| found.answers.routes[place(key)]));
                        v4.clear();
                        v4.extend(keys.iter().map(|key| found.answers.v4[place(key)]));
                        v6.clear();
                        v6.extend(keys.iter().map(|key| found.answers.v6[place(key)]));
                    }
                    let v4 = keys.iter().filter(|key| found.v4[place(key)]).count();
                    give(&work.answers, v4 as u64)?;
                }
            }
        }
        Ok(())
    }

    /// The answers for all values of a dictionary, and for null.
    fn values(&self, values: &ArrayRef) -> Result<Values, AnnotateError> {
        let all = LookUp { of_rows: true, ..*self };
        let mut found = Values::default();
        let addresses = Addresses::new(values)?;
        if let Addresses::Cells(read) = &addresses {
            let mut work = Work::default();
            for start in (0..values.len()).step_by(BLOCK) {
                let end = values.len().min(start + BLOCK);
                work.cells.clear();
                read(start..end, &mut work.cells);
                all.cells_block(end - start, &mut work);
                found.answers.extend(&work.answers);
                found.v4.resize(end, false);
                work.cells.v4.rows.iter().for_each(|&row| found.v4[start + row as usize] = true);
            }
        } else {
            // Numbers, or a dictionary of dictionaries.
            all.each_block(&addresses, values.len(), &mut |answers, v4| {
                found.answers.extend(answers);
                found.v4.resize(found.answers.rows.len(), v4 > 0);
                Ok(())
            })?;
        }
        found.answers.rows.push(self.numbers().of(Without::Empty));
        let routes = self.numbering.map_or(Numbers::new(0), Numbering::numbers);
        found.answers.routes.push(routes.of(Without::Empty));
        found.answers.v4.push(0);
        found.answers.v6.push(0);
        found.v4.push(false);
        Ok(found)
    }

    /// Looks up a block of IPv4 addresses that nothing stands between.
    fn numbers_block(&self, addrs: &[u32], work: &mut Work) {
        let Work { hops, answers, .. } = work;
        hops.clear();
        hops.resize(addrs.len(), Hop::NONE);
        answers.rows.clear();
        answers.routes.clear();
        if let Some(numbering) = self.numbering {
            u32::routes_of(self.table, numbering.by == By::Length, addrs, hops);
            answers.v4.clear();
            answers.v4.extend_from_slice(addrs);
            answers.v6.resize(addrs.len(), 0);
            let number = numbering.of_family::<u32>();
            answers.routes.extend(hops.iter().map(|&hop| number(hop)));
            if !self.of_rows {
                return;
            }
            if numbering.by == By::Route {
                self.rows_of_routes(answers);
                return;
            }
        }
        let numbers = self.numbers();
        self.table.v4().engine().lookup_batch(addrs, hops);
        answers.rows.extend(hops.iter().map(|&hop| numbers.of_hop(hop)));
    }

    /// Looks up a block of cells.
    fn cells_block(&self, rows: usize, work: &mut Work) {
        let Work { cells, hops, answers } = work;
        let numbers = self.numbers();
        // Every row is in one of the three, so what is here at first does not stay.
        answers.rows.resize(rows, numbers.of(Without::Unmatched));
        if let Some(numbering) = self.numbering {
            answers.routes.resize(rows, numbering.numbers().of(Without::Unmatched));
            answers.v4.resize(rows, 0);
            answers.v6.resize(rows, 0);
            self.family_routes(&cells.v4, numbering, hops, &mut answers.routes);
            self.family_routes(&cells.v6, numbering, hops, &mut answers.routes);
            for (&row, &addr) in cells.v4.rows.iter().zip(&cells.v4.addrs) {
                answers.v4[row as usize] = addr;
            }
            for (&row, &addr) in cells.v6.rows.iter().zip(&cells.v6.addrs) {
                answers.v6[row as usize] = addr;
            }
        }
        if self.numbering.is_none_or(|numbering| numbering.by == By::Length && self.of_rows) {
            self.family_rows(&cells.v4, hops, &mut answers.rows);
            self.family_rows(&cells.v6, hops, &mut answers.rows);
        }
        for &(row, without) in &cells.others {
            answers.rows[row as usize] = numbers.of(without);
            if let Some(numbering) = self.numbering {
                answers.routes[row as usize] = numbering.numbers().of(without);
            }
        }
        if self.of_rows && self.numbering.is_some_and(|numbering| numbering.by == By::Route) {
            self.rows_of_routes(answers);
        }
    }

    fn rows_of_routes(&self, answers: &mut Answers) {
        let rows = self.rows.get_or_init(|| rows(self.table, self.numbers()));
        answers.rows.clear();
        answers.rows.extend(answers.routes.iter().map(|&route| rows[route as usize]));
    }

    fn family_rows<A: TableAddr>(&self, keys: &Keys<A>, hops: &mut Vec<Hop>, rows: &mut [u32]) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        let numbers = self.numbers();
        A::in_table(self.table).engine().lookup_batch(&keys.addrs, hops);
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            rows[at as usize] = numbers.of_hop(hop);
        }
    }

    fn family_routes<A: TableAddr>(
        &self,
        keys: &Keys<A>,
        numbering: Numbering,
        hops: &mut Vec<Hop>,
        routes: &mut [u32],
    ) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        A::routes_of(self.table, numbering.by == By::Length, &keys.addrs, hops);
        let number = numbering.of_family::<A>();
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            routes[at as usize] = number(hop);
        }
    }
}

/// The rows of all routes, IPv4 first, and of what has no route.
fn rows(table: &dyn LookupTable, numbers: Numbers) -> Vec<u32> {
    let (v4, v6) = (table.v4().routes(), table.v6().routes());
    let hops = (0..v4.len()).map(|route| v4.get(route).hop);
    let hops = hops.chain((0..v6.len()).map(|route| v6.get(route).hop));
    // A hop beyond the rows, which a sound snapshot does not have, counts as none.
    let rows = hops.map(|hop| numbers.of_hop(hop));
    Numbering::routes(table).numbers().table(rows, |without| numbers.of(without))
}
