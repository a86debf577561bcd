//! Arrow columns in, Arrow columns out.
//!
//! ```text
//!   addresses          text, numbers, bytes, dictionaries of them; nulls
//!     | keys           2,048 rows at a time: those of each family, and the rows without an address
//!     v
//!   engine             hops; where the matched prefix is asked for, its length, or the route's number
//!     | values         for every row of the table a value lies ready: one load for each output
//!     v
//!   added columns      numbers, dictionary codes, text
//! ```
//!
//! - **Invariant** A row comes out for every row that goes in, in order.
//! - **Invariant** An address without a route, and a cell without an address, is null in every added
//!   column, unless a default was given for the former.

pub(crate) mod keys;
pub(crate) mod values;

use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef};
use arrow_schema::{Field, FieldRef};
use fibula_core::Hop;

use self::keys::{Addresses, Cells, Other};
use self::values::{
    Answers, BLOCK, EMPTY, Grow, Lengths, Numbering, Output, UNMATCHED, UNPARSABLE, WITHOUT,
};
use crate::options::added_name;
use crate::summary::Hits;
use crate::table::Family;
use crate::{AnnotateError, Table};

/// How text values of the table are given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TextForm {
    /// `Dictionary(Int32, Utf8)`: four bytes a row. All columns share one dictionary, the table's.
    #[default]
    Dictionary,
    /// `Utf8`.
    Plain,
}

/// How matched prefixes are given out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrefixForm {
    /// `Utf8`, as in `192.0.2.0/24`.
    #[default]
    Text,
    /// Two columns: `Binary` of 4 or 16 bytes in network order (`_prefix`), and `UInt8`
    /// (`_prefix_len`).
    Binary,
}

/// What to add to columns.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ColumnOptions {
    /// `"prefix"` for the matched prefix, `"covering"` for the list of all prefixes that cover the
    /// address, and value columns of the table by name. None: all value columns.
    pub add: Vec<String>,
    /// How text is given out.
    pub text: TextForm,
    /// How prefixes are given out.
    pub prefix: PrefixForm,
    /// What addresses without a route get in a value column, in place of null.
    pub defaults: Vec<(String, String)>,
    /// A cell that is not an address is an error.
    pub strict: bool,
}

/// What happened to the cells of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Cells.
    pub rows: u64,
    /// Addresses that a route covers.
    pub matched: u64,
    /// Addresses that no route covers.
    pub unmatched: u64,
    /// Cells that hold something that is not an address.
    pub unparsable: u64,
    /// Nulls, and text that is empty.
    pub empty: u64,
    /// Of the addresses, IPv4 ones.
    pub v4: u64,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.rows += other.rows;
        self.matched += other.matched;
        self.unmatched += other.unmatched;
        self.unparsable += other.unparsable;
        self.empty += other.empty;
        self.v4 += other.v4;
    }
}

/// The columns that were added for a column of addresses.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Annotated {
    /// Names and types.
    pub fields: Vec<FieldRef>,
    /// The columns, each as long as the addresses.
    pub columns: Vec<ArrayRef>,
    /// What happened.
    pub counts: Counts,
    /// The first cell that is not an address.
    pub first_unparsable: Option<(usize, String)>,
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
///
/// v4-mapped IPv6 addresses are looked up as IPv4 addresses. Integer values come out as `UInt32`, or
/// `UInt64` if one in the table needs it.
///
/// ```
/// # use fibula_annotate::{ColumnAnnotator, ColumnOptions};
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
/// let mut options = ColumnOptions::default();
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
    table: Box<dyn Table>,
    /// What was asked for; a prefix may be two columns.
    add: Vec<String>,
    outputs: Vec<Output>,
    /// Whether an output needs the route, not just its row.
    by_route: bool,
    /// Whether its length will do.
    by_length: bool,
    /// The rows of all routes, and of what has no route.
    rows: OnceLock<Vec<u32>>,
    /// The lengths of routes as they are stored, and of routes by length.
    lengths: [OnceLock<Lengths>; 2],
    /// Whether an output needs the row.
    of_rows: bool,
    strict: bool,
}

impl ColumnAnnotator {
    /// Prepares what is added: a value for every row of the table's columns. The table is a
    /// [`Fib`](fibula_fib::Fib), or a reference to one.
    ///
    /// # Errors
    /// If the table has no such column, or a default does not fit its column.
    pub fn new(
        table: impl Table + 'static,
        options: &ColumnOptions,
    ) -> Result<Self, AnnotateError> {
        let table: Box<dyn Table> = Box::new(table);
        if !table.has_columns() {
            return Err(AnnotateError::Live);
        }
        let columns = table.columns();
        let add = crate::annotator::names_to_add(columns, &options.add)?;
        if let Some((name, _)) = options.defaults.iter().find(|(name, _)| !add.contains(name)) {
            return Err(AnnotateError::Default { name: name.clone() });
        }
        let mut outputs = Vec::new();
        for name in &add {
            let default = options.defaults.iter().find(|(of, _)| of == name);
            let default = default.map(|(_, value)| value.as_str());
            outputs.extend(Output::named(name, columns, options.text, options.prefix, default)?);
        }
        let by_route = add.iter().any(|name| name == "prefix" || name == "covering");
        let by_length = !add.iter().any(|name| name == "covering");
        let of_rows = outputs.iter().any(Output::of_rows);
        Ok(Self {
            table,
            add,
            outputs,
            by_route,
            by_length,
            rows: OnceLock::new(),
            lengths: Default::default(),
            of_rows,
            strict: options.strict,
        })
    }

    /// The names and types of what is added for the address column `name`.
    pub fn fields(&self, name: &str) -> Vec<FieldRef> {
        let field = |output: &Output| {
            Arc::new(Field::new(added_name(name, &output.name), output.kind.clone(), true))
        };
        self.outputs.iter().map(field).collect()
    }

    pub(crate) fn table(&self) -> &dyn Table {
        &*self.table
    }

    pub(crate) fn add(&self) -> &[String] {
        &self.add
    }

    pub(crate) fn new_hits(&self) -> Hits {
        Hits::new(self.table(), self.by_route)
    }

    /// Looks up the addresses of the column `name`.
    ///
    /// # Errors
    /// If the column's type holds no addresses; with [`ColumnOptions::strict`] at a cell that is none.
    pub fn annotate(&self, name: &str, array: &dyn Array) -> Result<Annotated, AnnotateError> {
        self.counted(name, array, None)
    }

    pub(crate) fn counted(
        &self,
        name: &str,
        array: &dyn Array,
        mut hits: Option<&mut Hits>,
    ) -> Result<Annotated, AnnotateError> {
        let addresses = Addresses::new(array)?;
        // What is counted by route needs to know which.
        let numbering = self.by_route.then(|| match self.by_length && hits.is_none() {
            true => Numbering::lengths(),
            false => Numbering::stored(self.table()),
        });
        let lengths = &self.lengths[usize::from(numbering.is_some_and(|by| by.by_length))];
        let lengths = numbering
            .map(|numbering| lengths.get_or_init(|| Lengths::new(self.table(), numbering)));
        let mut growing: Vec<_> = self
            .outputs
            .iter()
            .map(|output| output.begin(self.table(), lengths, array.len()))
            .collect();
        let known = numbering.map_or(self.table.columns().len(), Numbering::none);
        let mut tally = Tally { known, ..Tally::default() };
        let work = Work { numbering, of_rows: self.of_rows || hits.is_some(), ..Work::default() };
        self.each_block(&addresses, array.len(), work, &mut |answers, v4| {
            tally.add(if self.by_route { &answers.routes } else { &answers.rows }, v4);
            if let Some(hits) = &mut hits {
                hits.block(self.table(), answers);
            }
            growing.iter_mut().try_for_each(|column| column.block(answers))
        })?;
        let first = tally.first_unparsable.map(|row| (row, keys::text(array, row)));
        if self.strict
            && let Some((row, text)) = first
        {
            return Err(AnnotateError::Cell { row: row as u64 + 1, column: name.to_owned(), text });
        }
        let columns = growing.into_iter().map(Grow::finish).collect::<Result<_, _>>()?;
        let fields = self.fields(name);
        Ok(Annotated { fields, columns, counts: tally.counts, first_unparsable: first })
    }

    /// Gives out the answers of all rows, block by block, with the number of IPv4 addresses.
    fn each_block(
        &self,
        addresses: &Addresses<'_>,
        rows: usize,
        mut work: Work,
        give: &mut dyn FnMut(&Answers, u64) -> Result<(), AnnotateError>,
    ) -> Result<(), AnnotateError> {
        match addresses {
            Addresses::Numbers(numbers) => {
                for block in numbers.chunks(BLOCK) {
                    self.look_up_numbers(block, &mut work);
                    give(&work.answers, block.len() as u64)?;
                }
            }
            Addresses::Cells(read) => {
                for start in (0..rows).step_by(BLOCK) {
                    let end = rows.min(start + BLOCK);
                    work.cells.clear();
                    read(start..end, &mut work.cells);
                    self.look_up(end - start, &mut work);
                    give(&work.answers, work.cells.v4.rows.len() as u64)?;
                }
            }
            Addresses::Dictionary { keys, values } => {
                let found = self.dictionary(values, work.numbering)?;
                // Behind the values stands what a null is.
                let null = values.len();
                for keys in keys.chunks(BLOCK) {
                    let place = |key: &Option<usize>| key.unwrap_or(null);
                    let Answers { rows, routes, v4, v6 } = &mut work.answers;
                    rows.clear();
                    rows.extend(keys.iter().map(|key| found.answers.rows[place(key)]));
                    routes.clear();
                    if self.by_route {
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
    fn dictionary(
        &self,
        values: &ArrayRef,
        numbering: Option<Numbering>,
    ) -> Result<Values, AnnotateError> {
        let mut work = Work { numbering, of_rows: true, ..Work::default() };
        let mut found = Values::default();
        let addresses = Addresses::new(values)?;
        if let Addresses::Cells(read) = &addresses {
            for start in (0..values.len()).step_by(BLOCK) {
                let end = values.len().min(start + BLOCK);
                work.cells.clear();
                read(start..end, &mut work.cells);
                self.look_up(end - start, &mut work);
                found.answers.rows.extend(&work.answers.rows);
                found.answers.routes.extend(&work.answers.routes);
                found.answers.v4.extend(&work.answers.v4);
                found.answers.v6.extend(&work.answers.v6);
                found.v4.resize(end, false);
                work.cells.v4.rows.iter().for_each(|&row| found.v4[start + row as usize] = true);
            }
        } else {
            // Numbers, or a dictionary of dictionaries.
            self.each_block(&addresses, values.len(), work, &mut |answers, v4| {
                found.answers.rows.extend(&answers.rows);
                found.answers.routes.extend(&answers.routes);
                found.answers.v4.extend(&answers.v4);
                found.answers.v6.extend(&answers.v6);
                found.v4.resize(found.answers.rows.len(), v4 > 0);
                Ok(())
            })?;
        }
        found.answers.rows.push(self.table.columns().len() + EMPTY as u32);
        found.answers.routes.push(numbering.map_or(0, Numbering::none) + EMPTY as u32);
        found.answers.v4.push(0);
        found.answers.v6.push(0);
        found.v4.push(false);
        Ok(found)
    }

    /// Looks up a block of IPv4 addresses that nothing stands between.
    fn look_up_numbers(&self, addrs: &[u32], work: &mut Work) {
        let Work { hops, answers, numbering, of_rows, .. } = work;
        hops.clear();
        hops.resize(addrs.len(), Hop::NONE);
        answers.rows.clear();
        answers.routes.clear();
        if let Some(numbering) = *numbering {
            u32::routes_of(self.table(), numbering.by_length, addrs, hops);
            answers.v4.clear();
            answers.v4.extend_from_slice(addrs);
            answers.v6.resize(addrs.len(), 0);
            let (routes, none) = (numbering.v4, numbering.none());
            answers.routes.extend(hops.iter().map(|&hop| route(hop, 0, routes, none)));
            if !*of_rows {
                return;
            }
            if !numbering.by_length {
                self.rows_of_routes(answers);
                return;
            }
        }
        let unmatched = self.table.columns().len();
        self.table.v4().engine().lookup_batch(addrs, hops);
        // Hop::NONE, the largest number, becomes the row of what is unmatched.
        answers.rows.extend(hops.iter().map(|hop| hop.to_bits().min(unmatched)));
    }

    /// Looks up a block of cells.
    fn look_up(&self, rows: usize, work: &mut Work) {
        let Work { cells, hops, answers, numbering, of_rows } = work;
        let unmatched = self.table.columns().len();
        // Every row is in one of the three, so what is here at first does not stay.
        answers.rows.resize(rows, unmatched);
        if let Some(numbering) = *numbering {
            answers.routes.resize(rows, numbering.none());
            answers.v4.resize(rows, 0);
            answers.v6.resize(rows, 0);
            self.family_routes(&cells.v4, numbering, 0, numbering.v4, hops, answers);
            self.family_routes(&cells.v6, numbering, numbering.v4, numbering.v6, hops, answers);
            for (&row, &addr) in cells.v4.rows.iter().zip(&cells.v4.addrs) {
                answers.v4[row as usize] = addr;
            }
            for (&row, &addr) in cells.v6.rows.iter().zip(&cells.v6.addrs) {
                answers.v6[row as usize] = addr;
            }
        }
        if numbering.is_none_or(|numbering| numbering.by_length && *of_rows) {
            self.family(&cells.v4, hops, answers);
            self.family(&cells.v6, hops, answers);
        }
        for &(row, other) in &cells.others {
            let without = match other {
                Other::Empty => EMPTY as u32,
                Other::Unparsable => UNPARSABLE as u32,
            };
            answers.rows[row as usize] = unmatched + without;
            if let Some(numbering) = numbering {
                answers.routes[row as usize] = numbering.none() + without;
            }
        }
        if *of_rows && numbering.is_some_and(|numbering| !numbering.by_length) {
            self.rows_of_routes(answers);
        }
    }

    fn rows_of_routes(&self, answers: &mut Answers) {
        let rows = self.rows.get_or_init(|| rows(self.table()));
        answers.rows.clear();
        answers.rows.extend(answers.routes.iter().map(|&route| rows[route as usize]));
    }

    fn family<A: Family>(&self, keys: &keys::Keys<A>, hops: &mut Vec<Hop>, answers: &mut Answers) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        let unmatched = self.table.columns().len();
        A::in_table(self.table()).engine().lookup_batch(&keys.addrs, hops);
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            answers.rows[at as usize] = hop.to_bits().min(unmatched);
        }
    }

    /// The same with routes, of which the family has so many from `first` on.
    fn family_routes<A: Family>(
        &self,
        keys: &keys::Keys<A>,
        numbering: Numbering,
        first: u32,
        routes: u32,
        hops: &mut Vec<Hop>,
        answers: &mut Answers,
    ) {
        hops.clear();
        hops.resize(keys.addrs.len(), Hop::NONE);
        A::routes_of(self.table(), numbering.by_length, &keys.addrs, hops);
        for (&at, &hop) in keys.rows.iter().zip(hops.iter()) {
            answers.routes[at as usize] = route(hop, first, routes, numbering.none());
        }
    }
}

/// The rows of all routes, IPv4 first, and of what has no route.
fn rows(table: &dyn Table) -> Vec<u32> {
    let (v4, v6) = (table.v4().routes(), table.v6().routes());
    let unmatched = table.columns().len();
    let rows = (0..v4.len()).map(|route| v4.get(route).hop);
    let rows = rows.chain((0..v6.len()).map(|route| v6.get(route).hop));
    // A hop beyond the rows, which a sound snapshot does not have, counts as none.
    let rows = rows.map(|hop| hop.to_bits().min(unmatched));
    rows.chain((0..WITHOUT as u32).map(|without| unmatched + without)).collect()
}

/// The number of a route among those of both families, whose number among those of its own `hop` is.
#[inline]
fn route(hop: Hop, first: u32, routes: u32, none: u32) -> u32 {
    if hop.to_bits() < routes { first + hop.to_bits() } else { none }
}

/// What blocks need, kept from one to the next.
#[derive(Default)]
struct Work {
    cells: Cells,
    hops: Vec<Hop>,
    answers: Answers,
    /// Whether routes are needed, and how they are numbered.
    numbering: Option<Numbering>,
    /// Whether rows are needed, beside routes.
    of_rows: bool,
}

/// The answers for the values of a dictionary.
#[derive(Default)]
struct Values {
    answers: Answers,
    v4: Vec<bool>,
}

/// Counts rows by what they are.
#[derive(Default)]
struct Tally {
    /// Answers below are rows of the table, or routes; those from there on say what is without.
    known: u32,
    counts: Counts,
    first_unparsable: Option<usize>,
}

impl Tally {
    fn add(&mut self, answers: &[u32], v4: u64) {
        let known = self.known;
        let without = answers.iter().filter(|&&answer| answer >= known).count();
        self.counts.v4 += v4;
        self.counts.matched += (answers.len() - without) as u64;
        if without > 0 {
            let mut kinds = [0; WITHOUT];
            for (at, &answer) in answers.iter().enumerate().filter(|(_, found)| **found >= known) {
                kinds[(answer - known) as usize] += 1;
                if answer - known == UNPARSABLE as u32 {
                    self.first_unparsable.get_or_insert(self.counts.rows as usize + at);
                }
            }
            self.counts.unmatched += kinds[UNMATCHED];
            self.counts.empty += kinds[EMPTY];
            self.counts.unparsable += kinds[UNPARSABLE];
        }
        self.counts.rows += answers.len() as u64;
    }
}
