//! What is added, prepared so that a row's number is all that it takes to find it.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, PrimitiveArray, StringArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use fibula_core::{Addr, AnyPrefix, Prefix, Value};
use fibula_fib::{ColumnKind, Columns};
use fibula_simd::{Isa, Kernel, Level, Simd};

use super::{PrefixForm, TextForm};
use crate::table::Family;
use crate::write::{MAX_PREFIX, put_v4_prefix, put_v6_prefix, write_prefix};
use crate::{AnnotateError, Table as Annotating};

/// Rows of a block of answers; a multiple of 64, so that blocks of bits are whole words.
pub(crate) const BLOCK: usize = 2048;

/// What a block of addresses found. Behind the rows of the table, and behind its routes, stand three
/// more numbers for addresses that have none.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    /// Rows of the table's columns.
    pub(crate) rows: Vec<u32>,
    /// Its routes as they are numbered, if they were asked for.
    pub(crate) routes: Vec<u32>,
    /// The addresses of rows that have an IPv4 route, then; anything for the others.
    pub(crate) v4: Vec<u32>,
    /// The same for IPv6.
    pub(crate) v6: Vec<u128>,
}

/// How routes are numbered: those of IPv4, those of IPv6, and behind them what has none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    pub(crate) v4: u32,
    pub(crate) v6: u32,
    /// Routes of a length have one number.
    pub(crate) by_length: bool,
}

impl Numbering {
    /// In their stored order.
    pub(crate) fn stored(table: &dyn Annotating) -> Self {
        let (v4, v6) = (table.v4().routes().len(), table.v6().routes().len());
        Self { v4: v4 as u32, v6: v6 as u32, by_length: false }
    }

    /// By length.
    pub(crate) fn lengths() -> Self {
        Self { v4: 33, v6: 129, by_length: true }
    }

    /// The number of what has no route, less what it is.
    pub(crate) fn none(self) -> u32 {
        self.v4 + self.v6
    }
}

/// What an address is that has no row, less the number of rows.
pub(crate) const UNMATCHED: usize = 0;
pub(crate) const EMPTY: usize = 1;
pub(crate) const UNPARSABLE: usize = 2;
/// How many these are.
pub(crate) const WITHOUT: usize = 3;

/// One column that is added.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its name behind the address column's, and its type.
    pub(crate) name: String,
    pub(crate) kind: DataType,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Prefix,
    PrefixBytes,
    PrefixLength,
    Covering,
    Ints32(Table<u32>),
    Ints64(Table<u64>),
    /// Codes of the dictionary's texts.
    Dictionary(Table<i32>, ArrayRef),
    Text(Table<i32>, StringArray),
}

/// A value for every row, and for the three without one.
#[derive(Debug)]
struct Table<T> {
    values: Vec<T>,
    valid: Vec<bool>,
    /// Rows below are all valid and the others are not, if that is so.
    limit: Option<u32>,
}

impl<T: Copy + Default> Table<T> {
    fn new(rows: u32, default: Option<T>, value: impl Fn(u32) -> Option<T>) -> Self {
        let values = (0..rows).map(value).chain([default, None, None]);
        let (values, valid): (Vec<T>, Vec<bool>) =
            values.map(|value| (value.unwrap_or_default(), value.is_some())).unzip();
        let limit = valid.iter().position(|valid| !valid).unwrap_or(valid.len());
        let whole = valid[limit..].iter().all(|valid| !valid);
        Self { values, valid, limit: whole.then_some(limit as u32) }
    }
}

impl Output {
    /// The columns that add `name`: one, or two for a prefix in binary.
    pub(crate) fn named(
        name: &str,
        columns: &Columns,
        text: TextForm,
        prefix: PrefixForm,
        default: Option<&str>,
    ) -> Result<Vec<Self>, AnnotateError> {
        let output = |name: &str, kind, content| Self { name: name.to_owned(), kind, content };
        if matches!(name, "prefix" | "covering") && default.is_some() {
            return Err(AnnotateError::Default { name: name.to_owned() });
        }
        if name == "prefix" {
            return Ok(match prefix {
                PrefixForm::Text => {
                    vec![output(name, DataType::Utf8, Content::Prefix)]
                }
                PrefixForm::Binary => vec![
                    output(name, DataType::Binary, Content::PrefixBytes),
                    output("prefix_len", DataType::UInt8, Content::PrefixLength),
                ],
            });
        }
        if name == "covering" {
            let item = Field::new_list_field(DataType::Utf8, true);
            return Ok(vec![output(name, DataType::List(Arc::new(item)), Content::Covering)]);
        }
        let column = columns.find(name).ok_or_else(|| AnnotateError::UnknownValue {
            name: name.to_owned(),
            known: columns.names().map(str::to_owned).collect(),
        })?;
        let (kind, content) = match columns.kind(column) {
            ColumnKind::Int => ints(name, columns, column, default)?,
            ColumnKind::Str => strings(columns, column, default, text)?,
        };
        Ok(vec![output(name, kind, content)])
    }

    /// Whether it is a value of rows, not something of routes.
    pub(crate) fn of_rows(&self) -> bool {
        use Content::{Covering, Prefix, PrefixBytes, PrefixLength};
        !matches!(self.content, Prefix | PrefixBytes | PrefixLength | Covering)
    }

    /// A new column to be filled.
    pub(crate) fn begin<'a>(
        &'a self,
        table: &'a dyn Annotating,
        lengths: Option<&'a Lengths>,
        rows: usize,
    ) -> Box<dyn Grow + 'a> {
        let lengths = lengths.unwrap_or(Lengths::NO_ROUTES);
        match &self.content {
            Content::Prefix => Box::new(Prefixes::new(lengths, rows)),
            Content::PrefixBytes => Box::new(Texts {
                binary: true,
                ..Texts::new(rows, |answers: &Answers, i: usize, out: &mut Vec<u8>| {
                    match lengths.by_route[answers.routes[i] as usize] {
                        Lengths::NONE => return false,
                        len if len < Lengths::V6 => {
                            out.extend((answers.v4[i] & u32::netmask(len)).to_be_bytes());
                        }
                        len => {
                            let mask = u128::netmask(len - Lengths::V6);
                            out.extend((answers.v6[i] & mask).to_be_bytes());
                        }
                    }
                    true
                })
            }),
            Content::PrefixLength => {
                Box::new(PrefixLengths { lengths, found: Vec::with_capacity(rows) })
            }
            Content::Covering => {
                Box::new(Lists { table, lists: ListBuilder::new(StringBuilder::new()) })
            }
            Content::Ints32(table) => Box::new(Gather::<UInt32Type>::new(table, rows, None)),
            Content::Ints64(table) => Box::new(Gather::<UInt64Type>::new(table, rows, None)),
            Content::Dictionary(table, values) => {
                Box::new(Gather::<Int32Type>::new(table, rows, Some(values)))
            }
            Content::Text(table, values) => {
                Box::new(Texts::new(rows, move |answers: &Answers, i: usize, out: &mut Vec<u8>| {
                    let row = answers.rows[i] as usize;
                    if table.valid[row] {
                        out.extend_from_slice(values.value(table.values[row] as usize).as_bytes());
                    }
                    table.valid[row]
                }))
            }
        }
    }
}

fn ints(
    name: &str,
    columns: &Columns,
    column: usize,
    default: Option<&str>,
) -> Result<(DataType, Content), AnnotateError> {
    let default = default.map(|text| {
        text.parse::<u64>().map_err(|_| AnnotateError::DefaultKind {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    });
    let default = default.transpose()?;
    let int = |value| match value {
        Value::Int(int) => Some(int),
        _ => None,
    };
    let values =
        (0..columns.distinct(column)).filter_map(|code| int(columns.decode(column, code as u32)));
    let value = |row| int(columns.value(column, row));
    Ok(if values.chain(default).all(|int| int <= u64::from(u32::MAX)) {
        let narrow = |int: u64| int as u32;
        let table = Table::new(columns.len(), default.map(narrow), |row| value(row).map(narrow));
        (DataType::UInt32, Content::Ints32(table))
    } else {
        (DataType::UInt64, Content::Ints64(Table::new(columns.len(), default, value)))
    })
}

fn strings(
    columns: &Columns,
    column: usize,
    default: Option<&str>,
    form: TextForm,
) -> Result<(DataType, Content), AnnotateError> {
    let text = |code: usize| match columns.decode(column, code as u32) {
        Value::Str(text) => text.to_owned(),
        Value::Int(int) => int.to_string(),
        Value::Null => String::new(),
    };
    let mut texts: Vec<String> = (0..columns.distinct(column)).map(text).collect();
    let place = default.map(|default| {
        texts.iter().position(|text| text == default).unwrap_or_else(|| {
            texts.push(default.to_owned());
            texts.len() - 1
        })
    });
    let bytes: usize = texts.iter().map(String::len).sum();
    if bytes > i32::MAX as usize || texts.len() > i32::MAX as usize {
        return Err(AnnotateError::Limit { what: "bytes of text in a column of the table" });
    }
    let table = Table::new(columns.len(), place.map(|code| code as i32), |row| {
        columns.code(column, row).map(|code| code as i32)
    });
    let texts = StringArray::from_iter_values(texts);
    Ok(match form {
        TextForm::Dictionary => {
            let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            (kind, Content::Dictionary(table, Arc::new(texts)))
        }
        TextForm::Plain => (DataType::Utf8, Content::Text(table, texts)),
    })
}

/// The prefix of a route, IPv4 routes first.
#[inline]
pub(crate) fn prefix(table: &dyn Annotating, route: u32) -> Option<AnyPrefix> {
    let (v4, v6) = (table.v4().routes(), table.v6().routes());
    let route = route as usize;
    if route < v4.len() {
        return Some(AnyPrefix::V4(v4.get(route).prefix));
    }
    let route = route - v4.len();
    (route < v6.len()).then(|| AnyPrefix::V6(v6.get(route).prefix))
}

/// A column on its way.
pub(crate) trait Grow {
    /// Adds the values of a block: [`BLOCK`] rows, fewer only in the last.
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError>;
    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError>;
}

/// Which rows are valid.
#[derive(Default)]
struct Validity {
    words: Vec<u64>,
    rows: usize,
}

impl Validity {
    #[inline]
    fn block<T>(&mut self, rows: &[u32], table: &Table<T>) {
        match table.limit {
            Some(limit) => self.extend(rows, |row| row < limit),
            None => self.extend(rows, |row| table.valid[row as usize]),
        }
    }

    #[inline]
    fn extend<T: Copy>(&mut self, rows: &[T], valid: impl Fn(T) -> bool) {
        debug_assert!(self.rows.is_multiple_of(64), "a block behind the last");
        self.words.extend(rows.chunks(64).map(|rows| {
            rows.iter().enumerate().fold(0, |word, (i, &row)| word | u64::from(valid(row)) << i)
        }));
        self.rows += rows.len();
    }

    fn finish(self) -> Option<NullBuffer> {
        let bits = BooleanBuffer::new(Buffer::from_vec(self.words), 0, self.rows);
        Some(NullBuffer::new(bits)).filter(|nulls| nulls.null_count() > 0)
    }
}

/// Numbers, or codes of a dictionary.
struct Gather<'a, T: ArrowPrimitiveType> {
    table: &'a Table<T::Native>,
    values: Vec<T::Native>,
    validity: Validity,
    dictionary: Option<&'a ArrayRef>,
}

impl<'a, T: ArrowPrimitiveType> Gather<'a, T> {
    fn new(table: &'a Table<T::Native>, rows: usize, dictionary: Option<&'a ArrayRef>) -> Self {
        let values = Vec::with_capacity(rows);
        Self { table, values, validity: Validity::default(), dictionary }
    }
}

impl Grow for Gather<'_, UInt32Type> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.add(answers);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(self.array()))
    }
}

impl Grow for Gather<'_, UInt64Type> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.add(answers);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(self.array()))
    }
}

impl Grow for Gather<'_, Int32Type> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.add(answers);
        Ok(())
    }
    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let dictionary = self.dictionary;
        let codes = self.array();
        Ok(match dictionary {
            Some(values) => Arc::new(DictionaryArray::<Int32Type>::try_new(codes, values.clone())?),
            None => Arc::new(codes),
        })
    }
}

impl<T: ArrowPrimitiveType> Gather<'_, T> {
    fn add(&mut self, answers: &Answers) {
        let values = self.table.values.as_slice();
        self.values.extend(answers.rows.iter().map(|&row| values[row as usize]));
        self.validity.block(&answers.rows, self.table);
    }

    fn array(self) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(self.values), self.validity.finish())
    }
}

/// Text, or bytes: `write` appends that of a row, and says whether there is any.
struct Texts<W> {
    write: W,
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    valid: Vec<bool>,
    validity: Validity,
    binary: bool,
}

impl<W: Fn(&Answers, usize, &mut Vec<u8>) -> bool> Texts<W> {
    fn new(rows: usize, write: W) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        Self {
            write,
            bytes: Vec::with_capacity(rows.saturating_mul(16)),
            offsets,
            valid: Vec::with_capacity(BLOCK),
            validity: Validity::default(),
            binary: false,
        }
    }
}

impl<W: Fn(&Answers, usize, &mut Vec<u8>) -> bool> Grow for Texts<W> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.valid.clear();
        self.bytes.reserve(answers.rows.len() * MAX_PREFIX);
        for i in 0..answers.rows.len() {
            self.valid.push((self.write)(answers, i, &mut self.bytes));
            // Whether it fits is checked for the block as a whole, before the offsets are used.
            self.offsets.push(self.bytes.len() as i32);
        }
        self.validity.extend(&self.valid, |valid| valid);
        fits(&self.bytes)
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let (bytes, nulls) = (Buffer::from_vec(self.bytes), self.validity.finish());
        Ok(if self.binary {
            Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
        } else {
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        })
    }
}

/// What it takes to write the prefix of a route, beside an address that it covers: its length.
///
/// A table's prefixes are more than the caches hold, and fetching them takes longer than all other
/// work. So a prefix is made of the address, less the bits beyond the route's length: a byte a route is
/// all that is fetched.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// Of IPv6 routes plus [`Lengths::V6`]; [`Lengths::NONE`] for what has no route.
    by_route: Vec<u8>,
}

impl Lengths {
    const V6: u8 = 64;
    const NONE: u8 = u8::MAX;
    /// For outputs that have nothing to do with routes.
    const NO_ROUTES: &'static Self = &Self { by_route: Vec::new() };

    /// Of routes as they are numbered.
    pub(crate) fn new(table: &dyn Annotating, numbering: Numbering) -> Self {
        if numbering.by_length {
            let all = (0..=32).chain(Self::V6..=Self::V6 + 128);
            return Self { by_route: all.chain([Self::NONE; WITHOUT]).collect() };
        }
        let (v4, v6) = (table.v4().routes(), table.v6().routes());
        let by_route = (0..v4.len()).map(|route| v4.get(route).prefix.len());
        let by_route =
            by_route.chain((0..v6.len()).map(|route| Self::V6 + v6.get(route).prefix.len()));
        Self { by_route: by_route.chain([Self::NONE; WITHOUT]).collect() }
    }
}

/// Prefixes as text.
struct Prefixes<'a> {
    lengths: &'a Lengths,
    bytes: Vec<u8>,
    offsets: Vec<i32>,
    validity: Validity,
    /// Those of a block.
    block: Vec<u8>,
    level: Level,
}

/// Writes the prefixes of a block.
struct Write<'a> {
    lengths: &'a [u8],
    answers: &'a Answers,
    bytes: &'a mut Vec<u8>,
    offsets: &'a mut Vec<i32>,
}

impl Kernel for Write<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        /// So many that their texts stay in the first-level cache.
        const ROWS: usize = 128;
        /// What is copied of each; longer texts are rare.
        const WHOLE: usize = 32;
        let Self { lengths, answers, bytes, offsets } = self;
        let mut texts = [[0; MAX_PREFIX]; ROWS];
        let (mut v4, mut v6) = ([0u8; ROWS], [0u8; ROWS]);
        for (block, lengths) in lengths.chunks(ROWS).enumerate() {
            let first = block * ROWS;
            let mut sizes = [0; ROWS];
            // One family, then the other, as when they were read.
            let (mut v4_len, mut v6_len) = (0, 0);
            for (row, &len) in (0..).zip(lengths) {
                (v4[v4_len], v6[v6_len]) = (row, row);
                v4_len += usize::from(len < Lengths::V6);
                v6_len += usize::from(len >= Lengths::V6 && len != Lengths::NONE);
            }
            for &row in &v4[..v4_len] {
                let row = usize::from(row) % ROWS;
                sizes[row] = put_v4_prefix(answers.v4[first + row], lengths[row], &mut texts[row]);
            }
            for &row in &v6[..v6_len] {
                let row = usize::from(row) % ROWS;
                let len = lengths[row] - Lengths::V6;
                sizes[row] = put_v6_prefix(answers.v6[first + row], len, &mut texts[row]);
            }
            for (text, &size) in texts.iter().zip(&sizes[..lengths.len()]) {
                let end = bytes.len() + size;
                bytes.extend_from_slice(&text[..WHOLE]);
                if size > WHOLE {
                    bytes.extend_from_slice(&text[WHOLE..]);
                }
                bytes.truncate(end);
                offsets.push(end as i32);
            }
        }
    }
}

impl<'a> Prefixes<'a> {
    fn new(lengths: &'a Lengths, rows: usize) -> Self {
        let mut offsets = Vec::with_capacity(rows + 1);
        offsets.push(0);
        let bytes = Vec::with_capacity(rows.saturating_mul(18) + MAX_PREFIX);
        let block = Vec::with_capacity(BLOCK);
        let level = Level::new(Isa::detect());
        Self { lengths, bytes, offsets, validity: Validity::default(), block, level }
    }
}

impl Grow for Prefixes<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        // Fetched first, in a loop so short that many loads are on their way at the same time: those
        // that miss the caches wait together.
        let by_route = self.lengths.by_route.as_slice();
        self.block.clear();
        self.block.extend(answers.routes.iter().map(|&route| by_route[route as usize]));
        // Whether all fit is checked for the block as a whole, before the offsets are used.
        let (bytes, offsets) = (&mut self.bytes, &mut self.offsets);
        self.level.run(Write { lengths: &self.block, answers, bytes, offsets });
        self.validity.extend(&self.block, |len| len != Lengths::NONE);
        fits(&self.bytes)
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        let bytes = Buffer::from_vec(self.bytes);
        Ok(Arc::new(StringArray::try_new(offsets, bytes, self.validity.finish())?))
    }
}

/// Whether 32-bit offsets reach all bytes of a column.
fn fits(bytes: &[u8]) -> Result<(), AnnotateError> {
    match i32::try_from(bytes.len()) {
        Ok(_) => Ok(()),
        Err(_) => Err(AnnotateError::Limit { what: "bytes of text in a column of one batch" }),
    }
}

/// Lengths of prefixes.
struct PrefixLengths<'a> {
    lengths: &'a Lengths,
    found: Vec<Option<u8>>,
}

impl Grow for PrefixLengths<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        self.found.extend(answers.routes.iter().map(|&route| {
            match self.lengths.by_route[route as usize] {
                Lengths::NONE => None,
                len if len < Lengths::V6 => Some(len),
                len => Some(len - Lengths::V6),
            }
        }));
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(PrimitiveArray::<UInt8Type>::from(self.found)))
    }
}

/// All prefixes that cover an address, longest first.
struct Lists<'a> {
    table: &'a dyn Annotating,
    lists: ListBuilder<StringBuilder>,
}

impl Grow for Lists<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        let known = self.table.v4().routes().len() + self.table.v6().routes().len();
        let mut text = Vec::new();
        for &route in &answers.routes {
            for prefix in covering(self.table, route) {
                text.clear();
                write_prefix(prefix, &mut text);
                self.lists.values().append_value(String::from_utf8_lossy(&text));
            }
            // An address that nothing covers has an empty list, no address has none.
            self.lists.append(route as usize <= known + UNMATCHED);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        Ok(Arc::new(self.lists.finish()))
    }
}

/// The prefix of a route and those that cover it, longest first.
pub(crate) fn covering(table: &dyn Annotating, route: u32) -> Vec<AnyPrefix> {
    fn family<A: Family>(
        table: &dyn Annotating,
        prefix: Prefix<A>,
        any: fn(Prefix<A>) -> AnyPrefix,
    ) -> Vec<AnyPrefix> {
        let routes = A::in_table(table).routes();
        let all = routes.covering(prefix.addr()).map(|route| routes.get(route).prefix);
        // Longer ones that begin at the same address do not cover the whole prefix.
        all.filter(|other| other.len() <= prefix.len()).map(any).collect()
    }
    match prefix(table, route) {
        Some(AnyPrefix::V4(prefix)) => family(table, prefix, AnyPrefix::V4),
        Some(AnyPrefix::V6(prefix)) => family(table, prefix, AnyPrefix::V6),
        None => Vec::new(),
    }
}
