//! Reads rows of Parquet and Arrow files, for commands that do more than annotate.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use super::guard::guarded;
use super::ipc::{FileBatches, StreamBatches};
use super::parquet::{check, check_pages};
use super::shared::Shared;
use crate::AnnotateError;

/// A Parquet file whose rows are read batch by batch. Any damage in the file becomes an error.
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
    /// If the file cannot be read, or is damaged.
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

    /// Calls the function with all rows in order, in batches of limited size. The batches have only the columns at
    /// the given positions, in the file's order.
    ///
    /// # Errors
    /// If the file is damaged or has changed since it was opened, and any error of the function.
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

/// The rows of an Arrow IPC file or stream, batch by batch. Any damage becomes an error.
pub struct ArrowRows<'r> {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, AnnotateError>> + 'r>,
}

impl<'r> ArrowRows<'r> {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged.
    pub fn file(input: File) -> Result<Self, AnnotateError> {
        let batches = FileBatches::new(BufReader::new(input))?;
        Ok(Self { schema: Arc::clone(&batches.context.schema), batches: Box::new(batches) })
    }

    /// Reads the schema of a stream.
    ///
    /// # Errors
    /// If the stream cannot be read, or is damaged.
    pub fn stream(input: impl Read + 'r) -> Result<Self, AnnotateError> {
        let batches = StreamBatches::new(BufReader::new(input))?;
        Ok(Self { schema: Arc::clone(&batches.context.schema), batches: Box::new(batches) })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Calls the function with all rows in order, in the input's batches. They have only the columns at the given
    /// positions.
    ///
    /// # Errors
    /// If the input is damaged, and any error of the function.
    pub fn each<E: From<AnnotateError>>(
        self,
        places: &[usize],
        mut each: impl FnMut(&RecordBatch) -> Result<(), E>,
    ) -> Result<(), E> {
        for batch in self.batches {
            each(&batch?.project(places).map_err(AnnotateError::from)?)?;
        }
        Ok(())
    }
}
