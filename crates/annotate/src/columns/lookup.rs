//! Reads arrays of addresses block by block and looks the blocks up.

use arrow_array::{Array, ArrayRef};

use super::keys::Addresses;
use crate::pipeline::answers::{Answers, Without};
use crate::pipeline::keys::{Cells, KeySink};
use crate::pipeline::lookup::{LookUp, Scratch, Wanted};
use crate::{Address, AnnotateError};

/// The number of rows in a block. It is a multiple of 64, so that the validity bits of a block are whole words.
pub(super) const BLOCK: usize = 2048;

/// Receives the answers of a block, and the number of its IPv4 addresses.
pub(super) type Give<'a> = dyn FnMut(&Answers, u64) -> Result<(), AnnotateError> + 'a;

/// The number of rows in the blocks of this table: [`BLOCK`], or the multiple of 64 that follows what the table wants.
fn block_rows(lookup: &LookUp<'_>) -> usize {
    lookup.batch().map_or(BLOCK, |batch| batch.next_multiple_of(64).max(BLOCK))
}

/// Buffers that are reused for each block.
#[derive(Default)]
struct Work {
    cells: Cells,
    scratch: Scratch,
    answers: Answers,
}

impl Work {
    /// Looks up the cells.
    fn look_up(&mut self, lookup: &LookUp<'_>, rows: usize) {
        lookup.block(&mut self.cells, rows, &mut self.scratch, &mut self.answers);
    }

    /// The number of IPv4 addresses.
    fn v4(&self) -> u64 {
        self.cells.v4.cells.len() as u64
    }
}

/// The answers for the values of a dictionary.
#[derive(Default)]
struct Values {
    answers: Answers,
    /// Whether the value is an IPv4 address.
    v4: Vec<bool>,
}

/// Calls `give` with the answers of each block.
pub(super) fn each_block(
    lookup: &LookUp<'_>,
    addresses: &Addresses<'_>,
    rows: usize,
    give: &mut Give<'_>,
) -> Result<(), AnnotateError> {
    let mut work = Work::default();
    let block_rows = block_rows(lookup);
    match addresses {
        Addresses::Numbers(numbers) => {
            for block in numbers.chunks(block_rows) {
                lookup.v4_block(block, &mut work.scratch, &mut work.answers);
                give(&work.answers, block.len() as u64)?;
            }
        }
        Addresses::Cells(read) => {
            for start in (0..rows).step_by(block_rows) {
                let end = rows.min(start + block_rows);
                work.cells.clear();
                read(start..end, &mut work.cells);
                work.look_up(lookup, end - start);
                give(&work.answers, work.v4())?;
            }
        }
        Addresses::Dictionary { keys, values } => {
            let found = Values::new(lookup, values)?;
            for keys in keys.chunks(block_rows) {
                let v4 = found.gather(keys, lookup.wanted(), &mut work.answers);
                give(&work.answers, v4)?;
            }
        }
    }
    Ok(())
}

/// Like `each_block`, but each row has its own table, so all types are read cell by cell.
pub(super) fn each_dated_block(
    lookup: &LookUp<'_>,
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
                    work.cells.v4(at, addr);
                }
            }
            Addresses::Cells(read) => read(rows, &mut work.cells),
            Addresses::Dictionary { keys, .. } => {
                for (at, key) in (0..).zip(&keys[rows]) {
                    work.cells.put(at, key.map_or(Err(Without::Empty), |key| values[key]));
                }
            }
        }
        work.answers.dates.clear();
        work.answers.dates.extend_from_slice(dates);
        work.look_up(lookup, dates.len());
        give(&work.answers, work.v4())?;
    }
    Ok(())
}

impl Values {
    /// Looks up all values of a dictionary. The answer for null follows those for the values.
    fn new(lookup: &LookUp<'_>, values: &ArrayRef) -> Result<Self, AnnotateError> {
        let mut found = Self::default();
        let addresses = Addresses::new(values)?;
        let block_rows = block_rows(lookup);
        if let Addresses::Cells(read) = &addresses {
            let mut work = Work::default();
            for start in (0..values.len()).step_by(block_rows) {
                let end = values.len().min(start + block_rows);
                work.cells.clear();
                read(start..end, &mut work.cells);
                work.look_up(lookup, end - start);
                found.answers.extend(&work.answers);
                found.v4.resize(end, false);
                work.cells.v4.cells.iter().for_each(|&row| found.v4[start + row as usize] = true);
            }
        } else {
            // Numbers, or a dictionary of dictionaries.
            let mut end = 0;
            each_block(lookup, &addresses, values.len(), &mut |answers, v4| {
                found.answers.extend(answers);
                end = values.len().min(end + block_rows);
                found.v4.resize(end, v4 > 0);
                Ok(())
            })?;
        }
        lookup.push_empty(&mut found.answers);
        found.v4.push(false);
        Ok(found)
    }

    /// Collects the answers of a block of keys. Returns the number of IPv4 addresses.
    fn gather(&self, keys: &[Option<usize>], wanted: Wanted, answers: &mut Answers) -> u64 {
        fn each<T: Copy>(from: &[T], into: &mut Vec<T>, places: impl Iterator<Item = usize>) {
            into.clear();
            into.extend(places.map(|place| from[place]));
        }
        let null = self.v4.len() - 1;
        let places = || keys.iter().map(|key| key.unwrap_or(null));
        let found = &self.answers;
        if wanted.rows {
            each(&found.rows, &mut answers.rows, places());
        }
        if wanted.routes {
            each(&found.routes, &mut answers.routes, places());
        }
        if wanted.lengths {
            each(&found.lengths, &mut answers.lengths, places());
            each(&found.v4, &mut answers.v4, places());
            each(&found.v6, &mut answers.v6, places());
        }
        places().filter(|&place| self.v4[place]).count() as u64
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
