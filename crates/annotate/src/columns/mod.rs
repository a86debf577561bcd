//! Annotation of Arrow columns.
//!
//! ```text
//!   addresses          text, numbers, bytes, dictionaries of them; nulls
//!     | keys           2,048 rows at a time: those of each family, and the rows without an address
//!     v
//!   pipeline           the answer of each row: lookup, counts
//!     | outputs        a value is prepared for every row of the table: one load for each output
//!     v
//!   added columns      numbers, dictionary codes, text
//! ```
//!
//! - **Invariant** There is one output row for each input row, in the same order.
//! - **Invariant** An address without a route, and a cell without an address, is null in every added
//!   column, unless a default was given for the former.

mod bytes;
pub(crate) mod flows;
pub(crate) mod keys;
mod listed;
mod lookup;
mod outputs;
mod prepared;
pub(crate) mod times;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};

pub(crate) use self::bytes::{BytesForm, is_printable, uuid};
use self::keys::Addresses;
use self::listed::Listed;
use self::lookup::{each_block, each_dated_block};
use self::outputs::{Grow, Output};
pub use self::prepared::PreparedTable;
use self::times::Times;
use crate::added::{Added, Addition, added_name, first_twice};
use crate::clock::Clock;
use crate::pipeline::answers::{Answers, Numbers, RouteNumbers};
use crate::pipeline::counts::{Counts, Tally};
use crate::pipeline::hits::Hits;
use crate::pipeline::lengths::MatchedLength;
use crate::pipeline::lookup::{LookUp, RouteTables, Wanted};
use crate::{AnnotateError, AnnotateOptions, LookupTable};

/// The columns added for one address column.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Annotated {
    /// Names and types.
    pub fields: Vec<FieldRef>,
    /// The columns, each as long as the addresses.
    pub columns: Vec<ArrayRef>,
    /// The counts.
    pub counts: Counts,
    /// The first cell that is not an address.
    pub first_unparsable: Option<(usize, String)>,
    /// The first cell of the column of times that is not a time.
    pub first_untimed: Option<(usize, String)>,
}

/// Annotates Arrow columns of addresses.
///
/// | type | addresses |
/// |---|---|
/// | `Utf8`, `LargeUtf8`, `Utf8View` | text, IPv4 or IPv6, row by row |
/// | `UInt32`, `UInt64`, `Int64` | IPv4 addresses as numbers: 10.0.0.1 is 167772161 |
/// | `FixedSizeBinary(4)`, `FixedSizeBinary(16)` | network byte order |
/// | `Binary`, `LargeBinary`, `BinaryView` | network byte order, 4 or 16 bytes, row by row |
/// | `Dictionary` of any of these | every value is looked up once |
/// | `List`, `LargeList` of any of these | every item; the added columns are lists of the same lengths |
///
/// IPv4-mapped IPv6 addresses are looked up as IPv4 addresses. Added integers are `UInt32`, or `UInt64` if a value in
/// the table needs it.
///
/// ```
/// # use fibula_annotate::{AnnotateOptions, ColumnAnnotator};
/// # use fibula_core::{Attributes, Change, Update, Value};
/// # use fibula_fib::{Fib, FibOptions};
/// # use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
/// use arrow_array::cast::AsArray;
/// use arrow_array::StringArray;
/// # let mut builder = TableBuilder::new(BuilderOptions::default());
/// # builder.begin_source("t", "text", &[("country".into(), ColumnKind::Str)], false, None);
/// # let country = [Value::Str("CH")];
/// # let change = Change::Announce(Attributes::Values(&country));
/// # builder.apply(&Update::new("192.0.2.0/24".parse()?, change));
/// # let fib = Fib::of_table(builder.finish()?, &FibOptions::default())?;
/// // The table says that 192.0.2.0/24 is in CH.
/// let mut options = AnnotateOptions::default();
/// options.add = vec!["prefix".into(), "country".into()];
/// let annotator = ColumnAnnotator::new(fib, &options)?;
///
/// let addresses = StringArray::from(vec![Some("192.0.2.7"), None, Some("::ffff:192.0.2.1")]);
/// let found = annotator.annotate("src", &addresses)?;
/// assert_eq!(found.fields[0].name(), "src_prefix");
/// assert_eq!(found.columns[0].as_string::<i32>().value(2), "192.0.2.0/24");
/// assert_eq!((found.counts.matched, found.counts.empty), (2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ColumnAnnotator {
    table: Box<dyn LookupTable>,
    options: AnnotateOptions,
    additions: Vec<Addition>,
    /// The added values. A prefix may be two columns.
    outputs: Vec<Output>,
    /// The answers that the outputs need.
    wanted: Wanted,
    tables: RouteTables,
}

impl ColumnAnnotator {
    /// Prepares the added values for every row of the table's columns. The table is a [`Fib`](fibula_fib::Fib), or a
    /// reference to one.
    ///
    /// # Errors
    /// If the table does not have a requested column, a default does not fit its column, or two added columns would
    /// have one name.
    pub fn new(
        table: impl LookupTable + 'static,
        options: &AnnotateOptions,
    ) -> Result<Self, AnnotateError> {
        let table: Box<dyn LookupTable> = Box::new(table);
        if !table.has_columns() {
            return Err(AnnotateError::Live);
        }
        Clock::new(&*table, options)?;
        let additions = Addition::all(table.columns(), options)?;
        let mut outputs = Vec::new();
        for addition in &additions {
            outputs.extend(Output::of(addition, table.columns(), options)?);
        }
        let names: Vec<_> = outputs.iter().map(|output| output.name.clone()).collect();
        if let Some(name) = first_twice(&names) {
            return Err(AnnotateError::SameName { name: name.clone() });
        }
        let asks = |what| additions.iter().any(|addition| addition.what == what);
        let all = asks(Added::Covering) || options.all_covering;
        let rows = additions.iter().any(|addition| matches!(addition.what, Added::Value(_)));
        let wanted = Wanted { rows, lengths: asks(Added::Prefix), routes: all };
        Ok(Self {
            table,
            options: options.clone(),
            additions,
            outputs,
            wanted,
            tables: RouteTables::default(),
        })
    }

    /// Like [`ColumnAnnotator::fields`], for a column of this type. For a column of lists, the added columns are
    /// lists too.
    pub fn fields_for(&self, name: &str, kind: &DataType) -> Vec<FieldRef> {
        self.fields(name).iter().map(|field| listed::field(kind, field)).collect()
    }

    /// The names and types of the columns added for the address column `name`, if it is not a column of lists.
    pub fn fields(&self, name: &str) -> Vec<FieldRef> {
        let field = |output: &Output| {
            Arc::new(Field::new(added_name(name, &output.name), output.kind.clone(), true))
        };
        self.outputs.iter().map(field).collect()
    }

    pub(crate) fn table(&self) -> &dyn LookupTable {
        &*self.table
    }

    pub(crate) fn options(&self) -> &AnnotateOptions {
        &self.options
    }

    pub(crate) fn additions(&self) -> &[Addition] {
        &self.additions
    }

    pub(crate) fn new_hits(&self) -> Hits {
        Hits::new(self.table(), self.wanted.lengths || self.wanted.routes)
    }

    /// Looks up the addresses of the column `name`. The result has a value for every row, whatever
    /// [`AnnotateOptions::only`] is.
    ///
    /// # Errors
    /// If the column's type cannot hold addresses. With [`AnnotateOptions::strict`], also if a cell is not an
    /// address. [`AnnotateError::NoTime`] if the table has several dates.
    pub fn annotate(&self, name: &str, array: &dyn Array) -> Result<Annotated, AnnotateError> {
        self.counted(name, array, None, None, None)
    }

    /// Looks up the addresses of the column `name`, each in the newest table that is not later than its time. Columns
    /// of times are timestamps of any unit (UTC without a zone), dates, text and numbers in the format of
    /// [`AnnotateOptions::time_format`], and dictionaries of these.
    ///
    /// # Errors
    /// The errors of [`ColumnAnnotator::annotate`]. Also if the table has no dates, or the types or lengths do not
    /// fit.
    pub fn annotate_at(
        &self,
        name: &str,
        array: &dyn Array,
        times: &dyn Array,
    ) -> Result<Annotated, AnnotateError> {
        self.counted(name, array, Some(times), None, None)
    }

    /// Like [`ColumnAnnotator::annotate`], or with times like [`ColumnAnnotator::annotate_at`]. Also sets `matched`,
    /// which has an element for every row, where a route covers the row's address; what is set stays set.
    ///
    /// # Errors
    /// The errors of those.
    ///
    /// # Panics
    /// If `matched` is shorter than the column.
    pub fn annotate_marking(
        &self,
        name: &str,
        array: &dyn Array,
        times: Option<&dyn Array>,
        matched: &mut [bool],
    ) -> Result<Annotated, AnnotateError> {
        self.counted(name, array, times, None, Some(matched))
    }

    /// Like `annotate` and `annotate_at`, but also counts hits, and sets `matched` for each row with an address that a
    /// route covers. Rows already set stay set.
    pub(crate) fn counted(
        &self,
        name: &str,
        array: &dyn Array,
        times: Option<&dyn Array>,
        hits: Option<&mut Hits>,
        matched: Option<&mut [bool]>,
    ) -> Result<Annotated, AnnotateError> {
        let times = self.times(array.len(), times)?;
        let dates = times.as_ref().map(|times| &*times.dates);
        let found = self.lists(name, array, dates, hits, matched)?;
        let Times { before, untimed, first_unreadable, .. } = times.unwrap_or_default();
        let counts = Counts { before, untimed, ..found.counts };
        Ok(Annotated { counts, first_untimed: first_unreadable, ..found })
    }

    /// Like `counted`, but with the numbers of the rows' tables instead of times.
    fn lists(
        &self,
        name: &str,
        array: &dyn Array,
        dates: Option<&[u16]>,
        hits: Option<&mut Hits>,
        matched: Option<&mut [bool]>,
    ) -> Result<Annotated, AnnotateError> {
        let Some(lists) = Listed::new(array) else {
            return self.cells(name, array, dates, hits, matched);
        };
        // All addresses of a list have the time of its row.
        let of_value =
            |dates: &[u16]| (0..lists.values.len()).map(|at| dates[lists.row(at)]).collect();
        let dates: Option<Vec<u16>> = dates.map(of_value);
        let mut of_values = matched.as_ref().map(|_| vec![false; lists.values.len()]);
        let row = |error| match error {
            AnnotateError::Cell { row, column, text } => {
                AnnotateError::Cell { row: lists.row(row as usize - 1) as u64 + 1, column, text }
            }
            other => other,
        };
        let matched_values = of_values.as_deref_mut();
        let found =
            self.cells(name, &lists.values, dates.as_deref(), hits, matched_values).map_err(row)?;
        let places = of_values.iter().flatten().enumerate().filter(|(_, matched)| **matched);
        if let Some(matched) = matched {
            let rows = places.map(|(value, _)| lists.row(value)).filter(|&row| array.is_valid(row));
            rows.for_each(|row| matched[row] = true);
        }
        Ok(Annotated {
            fields: self.fields_for(name, array.data_type()),
            columns: found.columns.into_iter().map(|column| lists.lists(column)).collect(),
            counts: found.counts,
            first_unparsable: found.first_unparsable.map(|(at, text)| (lists.row(at), text)),
            first_untimed: None,
        })
    }

    /// Like `lists`, but for cells that are not lists.
    fn cells(
        &self,
        name: &str,
        array: &dyn Array,
        dates: Option<&[u16]>,
        mut hits: Option<&mut Hits>,
        mut matched: Option<&mut [bool]>,
    ) -> Result<Annotated, AnnotateError> {
        let addresses = Addresses::new(array)?;
        let table = self.table();
        let mut wanted = self.wanted;
        if hits.is_some() {
            // Prefixes are counted by route.
            wanted.routes |= wanted.lengths;
            wanted.rows = true;
        }
        let outputs = self.outputs.iter();
        let mut growing: Vec<_> = outputs.map(|output| output.begin(table, array.len())).collect();
        let lookup = LookUp::new(table, wanted, Some(&self.tables));
        let (rows, routes) = (Numbers::rows(table), RouteNumbers::new(table).numbers());
        let mut tally = Tally::default();
        let mut done = 0;
        let mut give = |answers: &Answers, v4: u64| {
            let matched = matched.as_deref_mut().map(|matched| &mut matched[done..]);
            // Every kind of answer has the same counts.
            done += if wanted.rows {
                counted(&mut tally, rows, answers.rows.iter().copied(), v4, matched)
            } else if wanted.lengths {
                let lengths = answers.lengths.iter().map(|length| length.number());
                counted(&mut tally, MatchedLength::NUMBERS, lengths, v4, matched)
            } else {
                counted(&mut tally, routes, answers.routes.iter().copied(), v4, matched)
            };
            if let Some(hits) = &mut hits {
                hits.rows(answers.rows.iter().copied());
                hits.routes(answers.routes.iter().copied());
            }
            growing.iter_mut().try_for_each(|column| column.block(answers))
        };
        match dates {
            Some(dates) => each_dated_block(&lookup, &addresses, dates, &mut give)?,
            None => each_block(&lookup, &addresses, array.len(), &mut give)?,
        }
        let first = tally.first_unparsable.map(|row| (row, keys::text(array, row)));
        if self.options.strict
            && let Some((row, text)) = first
        {
            return Err(AnnotateError::Cell { row: row as u64 + 1, column: name.to_owned(), text });
        }
        let columns = growing.into_iter().map(Grow::finish).collect::<Result<_, _>>()?;
        let fields = self.fields(name);
        let counts = tally.counts;
        Ok(Annotated { fields, columns, counts, first_unparsable: first, first_untimed: None })
    }

    /// Finds the table for the time of each row.
    fn times(
        &self,
        rows: usize,
        times: Option<&dyn Array>,
    ) -> Result<Option<Times>, AnnotateError> {
        let (fib, times) = match (self.table.dated(), times) {
            (None, None) => return Ok(None),
            (None, Some(_)) => return Err(AnnotateError::NotDated),
            (Some(_), None) => return Err(AnnotateError::NoTime),
            (Some(fib), Some(times)) => (fib, times),
        };
        if times.len() != rows {
            let what = format!("{} times for {rows} addresses", times.len());
            return Err(AnnotateError::File { what });
        }
        let read = Times::new(times, fib.dates(), self.options.time_format)?;
        match &read.first_unreadable {
            Some((row, text)) if self.options.strict => Err(self.untimed(*row as u64 + 1, text)),
            _ => Ok(Some(read)),
        }
    }

    /// The error for the time of a row, counted from 1.
    pub(crate) fn untimed(&self, row: u64, text: &str) -> AnnotateError {
        let column = self.options.time.as_ref().map_or(String::new(), ToString::to_string);
        AnnotateError::TimeCell { row, column, text: text.to_owned() }
    }
}

/// Counts the answers of a block, and sets `matched` for the rows with a route. Returns the number of rows.
fn counted(
    tally: &mut Tally,
    numbers: Numbers,
    answers: impl ExactSizeIterator<Item = u32> + Clone,
    v4: u64,
    matched: Option<&mut [bool]>,
) -> usize {
    tally.add(numbers, answers.clone(), v4);
    for (matched, answer) in matched.into_iter().flatten().zip(answers.clone()) {
        *matched |= numbers.is_known(answer);
    }
    answers.len()
}
