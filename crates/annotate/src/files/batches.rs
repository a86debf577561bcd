//! The batches of a columnar input, for work that writes other rows than the input has.

use std::fs::File;
use std::io::{BufReader, Read};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};

use super::footer;
use super::guard::guarded;
use super::ipc::{FileBatches, StreamBatches};
use super::parquet::check_pages;
use super::shared::Shared;
use crate::AnnotateError;

/// The bytes of a columnar input.
pub enum ColumnInput<'r> {
    /// A Parquet file.
    Parquet(File),
    /// An Arrow IPC file.
    ArrowFile(File),
    /// An Arrow IPC stream.
    ArrowStream(Box<dyn Read + 'r>),
}

/// A columnar input whose rows are read batch by batch. Any damage becomes an error.
pub(crate) struct Batches<'r>(Source<'r>);

enum Source<'r> {
    Parquet { file: Shared, metadata: ArrowReaderMetadata },
    Arrow { schema: SchemaRef, batches: ArrowBatches<'r>, is_stream: bool },
}

type ArrowBatches<'r> = Box<dyn Iterator<Item = Result<RecordBatch, AnnotateError>> + 'r>;

impl<'r> Batches<'r> {
    /// Reads the columns' names and types.
    pub(crate) fn open(input: ColumnInput<'r>) -> Result<Self, AnnotateError> {
        let source = match input {
            ColumnInput::Parquet(file) => {
                let file = Shared::new(file).map_err(AnnotateError::Read)?;
                let options = ArrowReaderOptions::default();
                let metadata = footer::load(&file, options)?;
                Source::Parquet { file, metadata }
            }
            ColumnInput::ArrowFile(file) => {
                let batches = FileBatches::new(BufReader::new(file), None)?;
                let schema = Arc::clone(&batches.context.schema);
                Source::Arrow { schema, batches: Box::new(batches), is_stream: false }
            }
            ColumnInput::ArrowStream(stream) => {
                let batches = StreamBatches::new(BufReader::new(stream), None)?;
                let schema = Arc::clone(&batches.context.schema);
                Source::Arrow { schema, batches: Box::new(batches), is_stream: true }
            }
        };
        Ok(Self(source))
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        match &self.0 {
            Source::Parquet { metadata, .. } => metadata.schema(),
            Source::Arrow { schema, .. } => schema,
        }
    }

    /// Whether more batches may arrive later.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.0, Source::Arrow { is_stream: true, .. })
    }

    /// Calls the function with all rows in order, in batches of at most `rows`. They have only the columns at these
    /// positions, which are in the input's order.
    pub(crate) fn each(
        self,
        columns: &[usize],
        rows: usize,
        mut each: impl FnMut(RecordBatch) -> Result<(), AnnotateError>,
    ) -> Result<(), AnnotateError> {
        let (file, metadata) = match self.0 {
            Source::Parquet { file, metadata } => (file, metadata),
            Source::Arrow { batches, .. } => {
                for batch in batches {
                    let batch = batch?.project(columns)?;
                    for start in (0..batch.num_rows()).step_by(rows) {
                        each(batch.slice(start, rows.min(batch.num_rows() - start)))?;
                    }
                }
                return Ok(());
            }
        };
        for group in 0..metadata.metadata().num_row_groups() {
            check_pages(&metadata, &file, group, |root| columns.contains(&root))?;
            let mut reader = guarded(|| {
                let mask =
                    ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
                ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata.clone())
                    .with_row_groups(vec![group])
                    .with_projection(mask)
                    .with_batch_size(rows)
                    .build()
            })?;
            while let Some(batch) = guarded(|| reader.next().transpose())? {
                each(batch)?;
            }
        }
        file.check_unchanged()
    }
}
