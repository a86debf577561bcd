//! Parquet and Arrow as tables: the crate that has their libraries gives the cells to the crate that has the rules.

use fibula_ingest::ReadColumns;

/// The reader of Parquet and Arrow for [`ReadOptions::columnar`](fibula_ingest::ReadOptions::columnar); `None` without
/// the feature `columnar`.
pub fn reader() -> Option<&'static ReadColumns<'static>> {
    #[cfg(feature = "columnar")]
    return Some(&with_libraries::read);
    #[cfg(not(feature = "columnar"))]
    None
}

#[cfg(feature = "columnar")]
mod with_libraries {
    use fibula_annotate::{ColumnInput, TableBatch, read_table};
    use fibula_core::Value;
    use fibula_ingest::{ColumnCells, ColumnarInput, TypedColumn};

    struct Cells<'a> {
        columns: &'a [TypedColumn],
        batch: &'a TableBatch,
    }

    impl ColumnCells for Cells<'_> {
        fn columns(&self) -> &[TypedColumn] {
            self.columns
        }

        fn rows(&self) -> usize {
            self.batch.rows()
        }

        fn value(&self, column: usize, row: usize) -> Value<'_> {
            self.batch.value(column, row)
        }
    }

    pub(super) fn read(
        input: ColumnarInput,
        give: &mut dyn FnMut(&dyn ColumnCells) -> bool,
    ) -> Result<(), String> {
        let input = match input {
            ColumnarInput::Parquet(file) => ColumnInput::Parquet(file),
            ColumnarInput::ArrowFile(file) => ColumnInput::ArrowFile(file),
            ColumnarInput::ArrowStream(stream) => ColumnInput::ArrowStream(stream),
        };
        let mut columns = Vec::new();
        let mut each = |batch: &TableBatch| {
            if columns.is_empty() {
                let typed = batch.columns().iter().cloned().map(|column| TypedColumn {
                    name: column.name,
                    kind: column.kind,
                    scalar: column.scalar,
                    unusable: column.unusable,
                });
                columns.extend(typed);
            }
            give(&Cells { columns: &columns, batch })
        };
        read_table(input, &mut each).map_err(|error| error.to_string())
    }
}
