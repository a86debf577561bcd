//! Looks up arrays of addresses, block by block.

use std::sync::OnceLock;

use arrow_array::{Array, ArrayRef};
use fibula_core::Hop;
use fibula_fib::{DatedFib, Dates};

use super::answers::{Answers, By, Numbering, Numbers, Without};
use super::keys::{Addresses, Cells, Keys};
use crate::table::TableAddr;
use crate::{Address, AnnotateError, LookupTable};

/// The number of rows in a block. It is a multiple of 64, so that the validity bits of a block are whole words.
pub(super) const BLOCK: usize = 2048;

/// Receives the answers of a block, and the number of its IPv4 addresses.
pub(super) type Give<'a> = dyn FnMut(&Answers, u64) -> Result<(), AnnotateError> + 'a;

/// Looks up one column.
pub(super) struct LookUp<'t> {
    pub(super) table: &'t dyn LookupTable,
    /// The rows of all routes, created when they are first needed.
    pub(super) rows: &'t OnceLock<Vec<u32>>,
    /// Whether routes are needed, and how they are numbered.
    pub(super) numbering: Option<Numbering>,
    /// Whether rows are needed in addition to routes.
    pub(super) of_rows: bool,
    /// With several dates, the number of the table for each row.
    pub(super) dates: Option<(&'t DatedFib, &'t [u16])>,
}

/// Buffers that are reused for each block.
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

    /// Calls `give` with the answers of each block.
    pub(super) fn each_block(
        &self,
        addresses: &Addresses<'_>,
        rows: usize,
        give: &mut Give<'_>,
    ) -> Result<(), AnnotateError> {
        let mut work = Work::default();
        if let Some((_, dates)) = self.dates {
            return self.each_dated_block(addresses, dates, give);
        }
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
                // The answer for null follows those for the values.
                let null = values.len();
                for keys in keys.chunks(BLOCK) {
                    let place = |key: &Option<usize>| key.unwrap_or(null);
                    let Answers { rows, routes, v4, v6, .. } = &mut work.answers;
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

    /// Like `each_block`, but each row has its own table, so all types are read cell by cell.
    fn each_dated_block(
        &self,
        addresses: &Addresses<'_>,
        dates: &[u16],
        give: &mut Give<'_>,
    ) -> Result<(), AnnotateError> {
        let mut work = Work::default();
        let values = match addresses {
            Addresses::Dictionary { values, .. } => plain(values)?,
            _ => Vec::new(),
        };
        for (block, dates) in dates.chunks(BLOCK).enumerate() {
            let rows = block * BLOCK..block * BLOCK + dates.len();
            work.cells.clear();
            match addresses {
                Addresses::Numbers(numbers) => {
                    for (at, &addr) in (0..).zip(&numbers[rows]) {
                        work.cells.put(at, Ok(Address::V4(addr)));
                    }
                }
                Addresses::Cells(read) => read(rows, &mut work.cells),
                Addresses::Dictionary { keys, .. } => {
                    for (at, key) in (0..).zip(&keys[rows]) {
                        work.cells.put(at, key.map_or(Err(Without::Empty), |key| values[key]));
                    }
                }
            }
            work.cells.leave_out(|row| dates[row as usize] == Dates::NONE, Without::Untimed);
            work.answers.dates.clear();
            work.answers.dates.extend_from_slice(dates);
            self.cells_block(dates.len(), &mut work);
            give(&work.answers, work.cells.v4.rows.len() as u64)?;
        }
        Ok(())
    }

    /// The answers for all values of a dictionary, followed by the answer for null.
    fn values(&self, values: &ArrayRef) -> Result<Values, AnnotateError> {
        let all = LookUp { of_rows: true, dates: None, ..*self };
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

    /// Looks up a block of IPv4 addresses without nulls.
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
        // Every row is in one of the three vectors of `cells`, so these initial values are overwritten.
        answers.rows.resize(rows, numbers.of(Without::Unmatched));
        if let Some(numbering) = self.numbering {
            answers.routes.resize(rows, numbering.numbers().of(Without::Unmatched));
            answers.v4.resize(rows, 0);
            answers.v6.resize(rows, 0);
            self.family_routes(&cells.v4, numbering, hops, answers);
            self.family_routes(&cells.v6, numbering, hops, answers);
            for (&row, &addr) in cells.v4.rows.iter().zip(&cells.v4.addrs) {
                answers.v4[row as usize] = addr;
            }
            for (&row, &addr) in cells.v6.rows.iter().zip(&cells.v6.addrs) {
                answers.v6[row as usize] = addr;
            }
        }
        // With several dates, the row of a route depends on the date.
        let by_route = self.numbering.is_some_and(|numbering| numbering.by == By::Route);
        let of_routes = by_route && self.dates.is_none();
        if self.numbering.is_none() || !of_routes && self.of_rows {
            self.family_rows(&cells.v4, hops, answers);
            self.family_rows(&cells.v6, hops, answers);
        }
        for &(row, without) in &cells.others {
            answers.rows[row as usize] = numbers.of(without);
            if let Some(numbering) = self.numbering {
                answers.routes[row as usize] = numbering.numbers().of(without);
            }
        }
        if self.of_rows && of_routes {
            self.rows_of_routes(answers);
        }
    }

    fn rows_of_routes(&self, answers: &mut Answers) {
        let rows = self.rows.get_or_init(|| rows(self.table, self.numbers()));
        answers.rows.clear();
        answers.rows.extend(answers.routes.iter().map(|&route| rows[route as usize]));
    }

    fn family_rows<A: TableAddr>(
        &self,
        keys: &Keys<A>,
        hops: &mut Vec<Hop>,
        answers: &mut Answers,
    ) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        let numbers = self.numbers();
        match self.dates {
            Some((fib, _)) => {
                let dates = keys.rows.iter().map(|&row| answers.dates[row as usize]);
                A::hops_at(fib, &keys.addrs, dates, hops);
            }
            None => A::in_table(self.table).engine().lookup_batch(&keys.addrs, hops),
        }
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            answers.rows[at as usize] = numbers.of_hop(hop);
        }
    }

    fn family_routes<A: TableAddr>(
        &self,
        keys: &Keys<A>,
        numbering: Numbering,
        hops: &mut Vec<Hop>,
        answers: &mut Answers,
    ) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        let by_length = numbering.by == By::Length;
        match self.dates {
            Some((fib, _)) => {
                let dates = keys.rows.iter().map(|&row| answers.dates[row as usize]);
                A::routes_at(fib, by_length, &keys.addrs, dates, hops);
            }
            None => A::routes_of(self.table, by_length, &keys.addrs, hops),
        }
        let number = numbering.of_family::<A>();
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            answers.routes[at as usize] = number(hop);
        }
    }
}

/// The address of each value of a dictionary, or the reason that it has none.
fn plain(values: &ArrayRef) -> Result<Vec<Result<Address, Without>>, AnnotateError> {
    let addresses = Addresses::new(values)?;
    Ok(match &addresses {
        Addresses::Numbers(numbers) => numbers.iter().map(|&addr| Ok(Address::V4(addr))).collect(),
        Addresses::Dictionary { keys, values } => {
            let inner = plain(values)?;
            keys.iter().map(|key| key.map_or(Err(Without::Empty), |key| inner[key])).collect()
        }
        Addresses::Cells(read) => {
            let mut all = Vec::with_capacity(values.len());
            let mut cells = Cells::default();
            for start in (0..values.len()).step_by(BLOCK) {
                let end = values.len().min(start + BLOCK);
                cells.clear();
                read(start..end, &mut cells);
                all.resize(end, Err(Without::Empty));
                cells.each(|row, cell| all[start + row as usize] = cell);
            }
            all
        }
    })
}

/// The rows of all routes, IPv4 first, followed by those for addresses and cells without a route.
fn rows(table: &dyn LookupTable, numbers: Numbers) -> Vec<u32> {
    let (v4, v6) = (table.v4().routes(), table.v6().routes());
    let hops = (0..v4.len()).map(|route| v4.get(route).hop);
    let hops = hops.chain((0..v6.len()).map(|route| v6.get(route).hop));
    // A hop beyond the last row, which a valid snapshot does not contain, counts as unmatched.
    let rows = hops.map(|hop| numbers.of_hop(hop));
    Numbering::routes(table).numbers().table(rows, |without| numbers.of(without))
}
