//! The values of all dates: one set of columns for tables that have columns of their own.

use fibula_core::{ScalarType, Value};

use crate::columns::NULL;
use crate::intern::Interner;
use crate::{Columns, ColumnsBuilder, TableError};

/// Columns by name, and the distinct rows of all tables so far.
pub(super) struct Values {
    columns: ColumnsBuilder,
    /// The codes of each row, without empty cells at the end: a table with more columns than earlier ones finds their
    /// rows again.
    rows: Interner<u32>,
    /// What the texts of each column are, as long as all tables agree.
    scalars: Vec<Option<ScalarType>>,
}

impl Default for Values {
    fn default() -> Self {
        let none: [(&str, crate::ColumnKind); 0] = [];
        let (rows, scalars) = (Interner::default(), Vec::new());
        Self { columns: ColumnsBuilder::new(&none), rows, scalars }
    }
}

impl Values {
    /// The numbers of a table's rows among all rows.
    ///
    /// # Errors
    /// [`TableError::Kind`] for text in a column that had integers so far; [`TableError::Limit`].
    pub(super) fn rows(&mut self, table: &Columns) -> Result<Vec<u32>, TableError> {
        let places: Vec<usize> =
            (0..table.width()).map(|column| self.place(table, column)).collect();
        // Each distinct value is looked up once; rows are then compared by numbers alone.
        let mut codes = Vec::new();
        for (column, &place) in places.iter().enumerate() {
            let known = &mut self.columns.columns[place];
            let values = (0..table.distinct(column) as u32).map(|code| table.decode(column, code));
            let of_value = |value: Value<'_>| known.code(value);
            codes.push(values.map(of_value).collect::<Result<Vec<u32>, TableError>>()?);
        }
        let mut row = vec![NULL; self.columns.columns.len()];
        let mut numbers = Vec::with_capacity(table.len() as usize);
        for number in 0..table.len() {
            for (column, &place) in places.iter().enumerate() {
                row[place] =
                    table.code(column, number).map_or(NULL, |code| codes[column][code as usize]);
            }
            let filled = row.iter().rposition(|&code| code != NULL).map_or(0, |last| last + 1);
            let limit = TableError::Limit { what: "attribute rows" };
            let found = self.rows.intern(&row[..filled]).ok_or(limit)?;
            if found == self.columns.len() {
                self.columns.append(&row)?;
            }
            numbers.push(found);
        }
        Ok(numbers)
    }

    /// The place of a table's column; a new one if no table had it.
    fn place(&mut self, table: &Columns, column: usize) -> usize {
        let name = table.names().nth(column).unwrap_or_default();
        let scalar = table.scalar_type(column);
        match self.columns.position(name) {
            Some(place) => {
                if self.scalars[place] != scalar {
                    self.scalars[place] = None;
                }
                place
            }
            None => {
                self.columns.add_column(name, table.kind(column));
                self.scalars.push(scalar);
                self.scalars.len() - 1
            }
        }
    }

    /// The columns.
    ///
    /// # Errors
    /// [`TableError::Limit`] if the distinct values of a text column exceed 4 GiB.
    pub(super) fn finish(self) -> Result<Columns, TableError> {
        let names: Vec<String> =
            self.columns.columns.iter().map(|column| column.name.clone()).collect();
        let mut columns = self.columns.finish()?;
        for (name, scalar) in names.iter().zip(self.scalars) {
            columns.set_scalar_type(name, scalar);
        }
        Ok(columns)
    }
}
