//! Writes selected rows of Parquet files: all columns are decoded and encoded again.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::Schema;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};

use super::guard::guarded;
use super::parquet::{Plan, check_pages};
use super::{BatchWork, ColumnWork, Progress};
use crate::{AnnotateError, Only};

/// Rows decoded at once.
const BATCH: usize = 8 << 10;
/// For a table that wants large batches, so many times fewer rows than it wants: all columns are decoded here.
const FEWER: usize = 8;

/// The rows that `only` selects.
pub(super) fn chosen(
    batch: &RecordBatch,
    matched: &[bool],
    only: Only,
) -> Result<RecordBatch, AnnotateError> {
    let keep = matched.iter().map(|&matched| Some(matched == (only == Only::Matched)));
    Ok(filter_record_batch(batch, &BooleanArray::from_iter(keep))?)
}

impl<W: ColumnWork> Plan<'_, W> {
    /// Writes the rows that `only` selects, with the added columns.
    pub(super) fn write_chosen<O: Write + Send>(
        &self,
        only: Only,
        output: O,
        found: &mut W::Batches,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<O, AnnotateError> {
        let (metadata, shared) = (self.metadata.metadata(), self.file.clone());
        let (properties, hinted) = self.properties();
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(!hinted);
        let schema = Arc::new(self.whole());
        let mut writer =
            guarded(|| ArrowWriter::try_new_with_options(output, Arc::clone(&schema), options))?;
        let total = self.rows_before(metadata.num_row_groups());
        let batch_rows = self.work.batch_rows().map_or(BATCH, |rows| BATCH.max(rows / FEWER));
        let mut rows = 0;
        for group in 0..metadata.num_row_groups() {
            check_pages(&self.metadata, &self.file, group, |_| true)?;
            let mut reader = guarded(|| {
                ParquetRecordBatchReaderBuilder::new_with_metadata(
                    shared.clone(),
                    self.metadata.clone(),
                )
                .with_row_groups(vec![group])
                .with_batch_size(batch_rows)
                .build()
            })?;
            while let Some(batch) = guarded(|| reader.next().transpose())? {
                let mut matched = vec![false; batch.num_rows()];
                let chosen_rows = Some(&mut matched[..]);
                let added = found.batch(self.work, &batch, &self.columns, rows, chosen_rows)?;
                let columns = batch.columns().iter().cloned().chain(added).collect();
                let whole = RecordBatch::try_new(Arc::clone(&schema), columns)?;
                // Pages may end where a write ends, so however many rows are read at once, they are written by these
                // steps.
                for start in (0..batch.num_rows()).step_by(BATCH) {
                    let rows = BATCH.min(batch.num_rows() - start);
                    let matched = &matched[start..start + rows];
                    let kept = chosen(&whole.slice(start, rows), matched, only)?;
                    found.leave_out((rows - kept.num_rows()) as u64);
                    guarded(|| writer.write(&kept))?;
                }
                rows += batch.num_rows() as u64;
                progress(Progress { rows, total: Some(total) });
            }
        }
        guarded(|| writer.into_inner())
    }

    /// The Arrow schema of the output.
    pub(super) fn whole(&self) -> Schema {
        let schema = self.metadata.schema();
        let fields = schema.fields().iter().chain(self.added.fields()).cloned();
        Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
    }
}
