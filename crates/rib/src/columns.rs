use std::fmt;

use fibula_core::{ColumnKind, ScalarType, Value};

use crate::TableError;
use crate::array::Array;
use crate::intern::Interner;

/// The code of a cell that holds no value.
pub(crate) const NULL: u32 = u32::MAX;

/// The attributes of a table: rows, which are numbered by hops, and named columns.
///
/// Each column is dictionary-coded: a row holds a code, and the dictionary has the distinct values in order of first
/// appearance. Rows are distinct combinations, so a table of a million routes has only as many rows as there are
/// different attribute sets. The same type serves new tables and mapped files.
///
/// ```
/// use fibula_core::Value;
/// use fibula_rib::{ColumnKind, ColumnsBuilder};
///
/// let mut rows = ColumnsBuilder::new(&[("asn", ColumnKind::Int), ("name", ColumnKind::Str)]);
/// rows.push(&[Value::Int(64500), Value::Str("EXAMPLE")])?;
/// rows.push(&[Value::Int(64501), Value::Null])?;
/// let columns = rows.finish()?;
/// assert_eq!((columns.len(), columns.width()), (2, 2));
/// assert_eq!(columns.find("name"), Some(1));
/// assert_eq!(columns.value(0, 1), Value::Int(64501));
/// # Ok::<(), fibula_rib::TableError>(())
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Columns {
    pub(crate) rows: u32,
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, PartialEq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// A code for each row: an index into the dictionary, or [`NULL`].
    pub(crate) codes: Array<u32>,
    pub(crate) dictionary: Dictionary,
    /// The original type of its texts in the sources.
    pub(crate) scalar: Option<ScalarType>,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Dictionary {
    Int(Array<u64>),
    /// Value `i` is `text[offsets[i]..offsets[i + 1]]`, valid UTF-8.
    Str {
        offsets: Array<u32>,
        text: Array<u8>,
    },
}

impl Dictionary {
    pub(crate) fn kind(&self) -> ColumnKind {
        match self {
            Self::Int(_) => ColumnKind::Int,
            Self::Str { .. } => ColumnKind::Str,
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Int(values) => values.len(),
            Self::Str { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    fn value(&self, code: u32) -> Value<'_> {
        let at = code as usize;
        match self {
            Self::Int(values) => values.get(at).map_or(Value::Null, |&v| Value::Int(v)),
            Self::Str { offsets, text } => {
                let place = || Some(*offsets.get(at)? as usize..*offsets.get(at + 1)? as usize);
                // A snapshot's text was checked as a whole when it was opened; checking the few bytes
                // of one value again is cheaper than having `unsafe` code here.
                place()
                    .and_then(|place| text.get(place))
                    .and_then(|bytes| std::str::from_utf8(bytes).ok())
                    .map_or(Value::Null, Value::Str)
            }
        }
    }
}

impl Columns {
    /// Number of rows.
    pub fn len(&self) -> u32 {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// The names of the columns, in order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|c| c.name.as_str())
    }

    /// The names of the columns in an output that has columns `own` in front: a name that is one of these gets a
    /// number, as one does that a file has twice.
    pub fn names_beside(&self, own: &[&str]) -> Vec<String> {
        let beside = |name: &str| {
            let (mut beside, mut number) = (name.to_owned(), 1);
            while own.contains(&&*beside) || (number > 1 && self.find(&beside).is_some()) {
                number += 1;
                beside = format!("{name}_{number}");
            }
            beside
        };
        self.names().map(beside).collect()
    }

    /// The kind of the column's values.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn kind(&self, column: usize) -> ColumnKind {
        self.columns[column].dictionary.kind()
    }

    /// The original type of the column's texts, if it was the same in all sources.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn scalar_type(&self, column: usize) -> Option<ScalarType> {
        self.columns[column].scalar
    }

    /// Sets the original type of a column's texts.
    pub(crate) fn set_scalar_type(&mut self, column: &str, scalar: Option<ScalarType>) {
        if let Some(column) = self.columns.iter_mut().find(|known| known.name == column) {
            column.scalar = scalar;
        }
    }

    /// The index of the column with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == name)
    }

    /// The value of a cell; [`Value::Null`] beyond the last row.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline]
    pub fn value(&self, column: usize, row: u32) -> Value<'_> {
        match self.code(column, row) {
            Some(code) => self.columns[column].dictionary.value(code),
            None => Value::Null,
        }
    }

    /// The dictionary code of a cell: equal codes of a column mean equal values. `None` for null, and beyond the last
    /// row.
    ///
    /// # Panics
    /// If there is no such column.
    #[inline]
    pub fn code(&self, column: usize, row: u32) -> Option<u32> {
        self.columns[column].codes.get(row as usize).copied().filter(|&code| code != NULL)
    }

    /// Number of distinct values of a column.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn distinct(&self, column: usize) -> usize {
        self.columns[column].dictionary.len()
    }

    /// The value with this dictionary code, [`Value::Null`] if there is none.
    ///
    /// # Panics
    /// If there is no such column.
    pub fn decode(&self, column: usize, code: u32) -> Value<'_> {
        self.columns[column].dictionary.value(code)
    }

    /// The rows with these numbers, in this order, for a table whose routes get further columns. A row may be chosen
    /// several times. A number that is not a row gives a row without values.
    #[must_use]
    pub fn select(&self, rows: &[u32]) -> Self {
        let code = |column: &Column, row: u32| column.codes.get(row as usize).copied();
        let columns = self.columns.iter().map(|column| {
            let codes: Vec<u32> =
                rows.iter().map(|&row| code(column, row).unwrap_or(NULL)).collect();
            let Column { name, dictionary, scalar, .. } = column;
            Column {
                name: name.clone(),
                codes: codes.into(),
                dictionary: dictionary.clone(),
                scalar: *scalar,
            }
        });
        Self { rows: rows.len() as u32, columns: columns.collect() }
    }

    /// These columns together with others of the same rows. A column of the others replaces one with the same name.
    ///
    /// ```
    /// # use fibula_core::Value;
    /// # use fibula_rib::{ColumnKind, Columns, ColumnsBuilder};
    /// let mut more = ColumnsBuilder::new(&[("rpki", ColumnKind::Str)]);
    /// more.push(&[Value::Str("valid")])?;
    /// more.push(&[Value::Null])?;
    /// let asn = Columns::numbered("asn", 8);
    /// let both = asn.select(&[7, 7]).with(more.finish()?);
    /// assert_eq!(both.names().collect::<Vec<_>>(), ["asn", "rpki"]);
    /// assert_eq!((both.value(0, 1), both.value(1, 0)), (Value::Int(7), Value::Str("valid")));
    /// # Ok::<(), fibula_rib::TableError>(())
    /// ```
    ///
    /// # Panics
    /// If the numbers of rows are different.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        assert_eq!(self.rows, others.rows, "as many rows");
        self.columns.retain(|column| others.find(&column.name).is_none());
        self.columns.extend(others.columns);
        self
    }

    /// The same columns under other names, one for each.
    ///
    /// # Panics
    /// If there are more columns than names.
    #[must_use]
    pub fn renamed(mut self, names: &[String]) -> Self {
        assert!(names.len() >= self.columns.len(), "a name for each column");
        for (column, name) in self.columns.iter_mut().zip(names) {
            name.clone_into(&mut column.name);
        }
        self
    }

    /// A table of `rows` rows with one integer column of row numbers, for tables whose hops have no other meaning.
    pub fn numbered(name: &str, rows: u32) -> Self {
        let column = Column {
            name: name.to_owned(),
            codes: (0..rows).collect::<Vec<_>>().into(),
            dictionary: Dictionary::Int((0..u64::from(rows)).collect::<Vec<_>>().into()),
            scalar: None,
        };
        Self { rows, columns: vec![column] }
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.names().collect();
        f.debug_struct("Columns").field("rows", &self.rows).field("names", &names).finish()
    }
}

const TOO_MANY_ROWS: TableError = TableError::Limit { what: "attribute rows" };

/// Collects rows into [`Columns`].
pub struct ColumnsBuilder {
    pub(crate) columns: Vec<Growing>,
    rows: u32,
    /// The rows given by [`ColumnsBuilder::intern`] as their codes, and the numbers of those rows.
    distinct: Interner<u32>,
    numbers: Vec<u32>,
}

pub(crate) struct Growing {
    pub(crate) name: String,
    codes: Vec<u32>,
    values: Values,
}

enum Values {
    Int(Interner<u64>),
    Str(Interner<u8>),
}

impl ColumnsBuilder {
    /// Makes a builder with these columns and without rows.
    pub fn new(columns: &[(impl AsRef<str>, ColumnKind)]) -> Self {
        let (distinct, numbers) = (Interner::default(), Vec::new());
        let mut this = Self { columns: Vec::new(), rows: 0, distinct, numbers };
        for (name, kind) in columns {
            this.add_column(name.as_ref(), *kind);
        }
        this
    }

    /// One more column; the rows so far have no value in it.
    pub(crate) fn add_column(&mut self, name: &str, kind: ColumnKind) {
        let values = match kind {
            ColumnKind::Int => Values::Int(Interner::default()),
            ColumnKind::Str => Values::Str(Interner::default()),
        };
        let codes = vec![NULL; self.rows as usize];
        self.columns.push(Growing { name: name.to_owned(), codes, values });
    }

    /// Adds a row with one value for each column in order (missing ones are [`Value::Null`]), and returns its number.
    /// An integer in a text column is stored in decimal.
    ///
    /// # Errors
    /// [`TableError::Kind`] for text in an integer column; [`TableError::Limit`] beyond 2^32 - 1 rows.
    pub fn push(&mut self, row: &[Value<'_>]) -> Result<u32, TableError> {
        let codes = self.codes(row)?;
        self.append(&codes)
    }

    /// The number of the row with these values. If an earlier call had the same values, it is that row; otherwise a
    /// new row is added.
    ///
    /// # Errors
    /// The errors of [`ColumnsBuilder::push`].
    pub fn intern(&mut self, row: &[Value<'_>]) -> Result<u32, TableError> {
        let codes = self.codes(row)?;
        let known = self.distinct.intern(&codes).ok_or(TOO_MANY_ROWS)? as usize;
        if known == self.numbers.len() {
            let number = self.append(&codes)?;
            self.numbers.push(number);
        }
        Ok(self.numbers[known])
    }

    fn codes(&mut self, row: &[Value<'_>]) -> Result<Vec<u32>, TableError> {
        let values = row.iter().copied().chain(std::iter::repeat(Value::Null));
        self.columns.iter_mut().zip(values).map(|(column, value)| column.code(value)).collect()
    }

    /// All codes of the row are known before any column grows: a refused row leaves no trace.
    pub(crate) fn append(&mut self, codes: &[u32]) -> Result<u32, TableError> {
        let number = self.rows;
        if number == u32::MAX {
            return Err(TOO_MANY_ROWS);
        }
        for (column, &code) in self.columns.iter_mut().zip(codes) {
            column.codes.push(code);
        }
        self.rows += 1;
        Ok(number)
    }

    /// The place of the column with this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Number of rows so far.
    pub fn len(&self) -> u32 {
        self.rows
    }

    /// Whether there are no rows yet.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Finishes the columns.
    ///
    /// # Errors
    /// [`TableError::Limit`] if the distinct values of a text column exceed 4 GiB.
    pub fn finish(self) -> Result<Columns, TableError> {
        let columns = self.columns.into_iter().map(Growing::finish).collect::<Result<_, _>>()?;
        Ok(Columns { rows: self.rows, columns })
    }
}

impl Growing {
    pub(crate) fn code(&mut self, value: Value<'_>) -> Result<u32, TableError> {
        let code = match (&mut self.values, value) {
            (_, Value::Null) => Some(NULL),
            (Values::Int(ints), Value::Int(v)) => ints.intern(&[v]),
            (Values::Str(strings), Value::Str(v)) => strings.intern(v.as_bytes()),
            (Values::Str(strings), Value::Int(v)) => strings.intern(v.to_string().as_bytes()),
            (Values::Int(_), Value::Str(_)) => {
                return Err(TableError::Kind { column: self.name.clone() });
            }
        };
        code.ok_or(TableError::Limit { what: "distinct values in a column" })
    }

    fn finish(self) -> Result<Column, TableError> {
        let dictionary = match self.values {
            Values::Int(ints) => Dictionary::Int(ints.into_parts().0.into()),
            Values::Str(strings) => {
                let (text, ends) = strings.into_parts();
                let limit = TableError::Limit { what: "bytes of text in a column" };
                u32::try_from(text.len()).map_err(|_| limit)?;
                let offsets: Vec<u32> =
                    std::iter::once(0).chain(ends.iter().map(|&end| end as u32)).collect();
                Dictionary::Str { offsets: offsets.into(), text: text.into() }
            }
        };
        Ok(Column { name: self.name, codes: self.codes.into(), dictionary, scalar: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_and_are_shared() {
        let mut rows = ColumnsBuilder::new(&[("n", ColumnKind::Int), ("s", ColumnKind::Str)]);
        let cells = [
            [Value::Int(u64::MAX), Value::Str("")],
            [Value::Null, Value::Str("häß")],
            [Value::Int(0), Value::Null],
            [Value::Int(u64::MAX), Value::Int(17)],
        ];
        for (i, row) in cells.iter().enumerate() {
            assert_eq!(rows.push(row), Ok(i as u32));
        }
        assert!(matches!(rows.push(&[Value::Str("x")]), Err(TableError::Kind { .. })));
        let columns = rows.finish().unwrap();
        assert_eq!(columns.value(0, 0), Value::Int(u64::MAX));
        assert_eq!(columns.value(1, 0), Value::Str(""));
        assert_eq!(columns.value(1, 1), Value::Str("häß"));
        assert_eq!(columns.value(1, 2), Value::Null);
        assert_eq!(columns.value(1, 3), Value::Str("17"));
        assert_eq!(columns.value(1, 4), Value::Null);
        assert_eq!((columns.distinct(0), columns.distinct(1)), (2, 3));
        assert_eq!(columns.code(0, 0), columns.code(0, 3));
    }
}
