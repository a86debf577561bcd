//! Rows of a Parquet file, for commands that do more with them than to annotate.

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use super::guard::guarded;
use super::parquet::{check, check_pages};
use super::shared::Shared;
use crate::AnnotateError;

/// A Parquet file whose rows are read a batch at a time. A damaged file is an error, whatever the damage is.
#[derive(Debug)]
pub struct ParquetRows {
    file: Shared,
    metadata: ArrowReaderMetadata,
}

impl ParquetRows {
    /// The first bytes of a Parquet file.
    pub const MAGIC: &[u8] = b"PAR1";

    /// Reads the footer.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn open(input: File) -> Result<Self, AnnotateError> {
        let file = Shared::new(input).map_err(AnnotateError::Read)?;
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::default()))?;
        check(&metadata, &file)?;
        Ok(Self { file, metadata })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Calls the function with all rows in order, at most so many at once. Batches have those columns alone whose places are
    /// named, in the file's order.
    ///
    /// # Errors
    /// The file is damaged, or changed since it was opened; what the function says.
    pub fn each<E: From<AnnotateError>>(
        &self,
        places: &[usize],
        rows: usize,
        mut each: impl FnMut(&RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        let schema = self.metadata.parquet_schema();
        for group in 0..self.metadata.metadata().num_row_groups() {
            check_pages(&self.metadata, &self.file, group, |root| places.contains(&root))?;
            let mut reader = guarded(|| {
                let (file, metadata) = (self.file.clone(), self.metadata.clone());
                ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
                    .with_row_groups(vec![group])
                    .with_projection(ProjectionMask::roots(schema, places.iter().copied()))
                    .with_batch_size(rows)
                    .build()
            })?;
            while let Some(batch) = guarded(|| reader.next().transpose())? {
                each(&batch)?;
            }
        }
        Ok(self.file.check_unchanged()?)
    }
}
