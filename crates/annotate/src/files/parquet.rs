//! Annotation of Parquet files. Only the address columns are decoded.
//!
//! ```text
//!   input    | row group 0: a b src c | row group 1: a b src c | ...
//!                        \  \  \  \ bytes as they are, with their statistics and indices
//!   output   | row group 0: a b src c src_asn | row group 1: ...
//!                                        ^ encoded by the thread that decoded src
//! ```
//!
//! The file is opened once and read by position. Of n threads, each takes every n-th row group. The groups are
//! written in order, and a thread is at most two groups ahead, so memory is bounded by the row groups.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use arrow_schema::{Field, Schema, SchemaRef};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::arrow::{
    ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ProjectionMask,
    add_encoded_arrow_schema_to_metadata,
};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::guard::{broken, damaged, guarded};
use super::shared::Shared;
use super::{BatchWork, ColumnWork, KeyColumns, Progress, footer, is_text, pages};
use crate::columns::ColumnAnnotator;
use crate::{AnnotateError, LogFormat, Summary};

/// Number of rows decoded and looked up at once.
const BATCH: usize = 32 << 10;

impl From<ParquetError> for AnnotateError {
    fn from(error: ParquetError) -> Self {
        damaged(error)
    }
}

impl ColumnAnnotator {
    /// Annotates a Parquet file. All columns are copied without being decoded, and keep their encodings, compression,
    /// statistics and Bloom filters. Added columns are compressed like the first address column. With
    /// [`AnnotateOptions::only`](crate::AnnotateOptions::only), all columns are decoded and encoded again.
    ///
    /// # Errors
    /// If the file is damaged or changes while it is read, if writing fails, or if the options do not fit its
    /// columns.
    pub fn annotate_parquet(
        &self,
        input: File,
        output: impl Write + Send,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, AnnotateError> {
        let (found, columns) = annotate(self, input, output, progress)?;
        Ok(found.summary(self, &columns))
    }
}

/// Writes a Parquet file with the columns of the input, followed by the added ones. Returns the counts.
pub(crate) fn annotate<W: ColumnWork>(
    work: &W,
    input: File,
    output: impl Write + Send,
    progress: &mut dyn FnMut(Progress),
) -> Result<(W::Batches, KeyColumns), AnnotateError> {
    let plan = Plan::new(work, input)?;
    if let Some(only) = work.options().only {
        let mut found = work.batches(&plan.columns);
        let written = plan.write_chosen(only, output, &mut found, progress);
        plan.file.check_unchanged()?;
        written?.flush().map_err(AnnotateError::Write)?;
        return Ok((found, plan.columns));
    }
    let mut writer =
        SerializedFileWriter::new(output, plan.root()?, Arc::new(plan.properties().0))?;
    let groups = plan.metadata.metadata().num_row_groups();
    let total = plan.rows_before(groups);
    let threads = work.options().threads.clamp(1, groups.max(1));

    let mut found = work.batches(&plan.columns);
    let written = std::thread::scope(|scope| {
        let (mut queues, mut workers) = (Vec::new(), Vec::new());
        for first in 0..threads {
            // One group is in the channel while the next is being encoded.
            let (give, take) = sync_channel(1);
            queues.push(take);
            let plan = &plan;
            workers.push(scope.spawn(move || plan.work(first, threads, &give)));
        }
        let written = plan.write(&mut writer, queues, total, progress);
        for worker in workers {
            // A worker that panicked has reported it, and the file is left unfinished.
            match worker.join() {
                Ok(worker) => found.merge(&worker),
                Err(_) => {
                    return Err(AnnotateError::File { what: "a thread ended early".to_owned() });
                }
            }
        }
        written
    });
    // If the file was replaced meanwhile, apparent damage may be bytes of the new file.
    plan.file.check_unchanged()?;
    written?;
    let mut output = writer.into_inner()?;
    output.flush().map_err(AnnotateError::Write)?;
    Ok((found, plan.columns))
}

/// An open file, before it is annotated.
pub(super) struct Plan<'a, W> {
    pub(super) work: &'a W,
    pub(super) file: Shared,
    pub(super) metadata: ArrowReaderMetadata,
    pub(super) columns: KeyColumns,
    pub(super) added: SchemaRef,
    /// The added columns in Parquet's schema.
    added_types: Vec<TypePtr>,
    compression: Compression,
    /// Whether pages are indexed. The writer supports an index for all columns or for none.
    indexed: bool,
}

/// A row group's added columns, encoded.
type Encoded = Result<Vec<ArrowColumnChunk>, AnnotateError>;

impl<'a, W: ColumnWork> Plan<'a, W> {
    fn new(work: &'a W, input: File) -> Result<Self, AnnotateError> {
        let file = Shared::new(input).map_err(AnnotateError::Read)?;
        let reading = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = footer::load(&file, reading)?;
        let schema = Arc::clone(metadata.schema());
        let mut first = || {
            // Only text columns are detected by their content, so other columns need not be read.
            let roots =
                (0..schema.fields().len()).filter(|&at| is_text(schema.field(at).data_type()));
            let mask = ProjectionMask::roots(metadata.parquet_schema(), roots);
            guarded(|| {
                let mut rows = 0;
                for group in 0..metadata.metadata().num_row_groups() {
                    check_pages(&metadata, &file, group, |root| {
                        is_text(schema.field(root).data_type())
                    })?;
                    rows += metadata.metadata().row_group(group).num_rows();
                    if rows >= 1024 {
                        break;
                    }
                }
                let (file, metadata) = (file.clone(), metadata.clone());
                let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata);
                let mut reader = reader.with_projection(mask).with_batch_size(1024).build()?;
                Ok::<_, AnnotateError>(reader.next().transpose()?)
            })
        };
        let columns = work.columns(&schema, LogFormat::Parquet, &mut first)?;
        let fields = work.added(&schema, &columns)?;
        let added = Arc::new(Schema::new(fields));
        let converted = ArrowSchemaConverter::new().convert(&added)?;
        let added_types = converted.root_schema().get_fields().to_vec();
        let compression = (0..metadata.parquet_schema().num_columns())
            .find(|&leaf| {
                metadata.parquet_schema().get_column_root_idx(leaf) == columns.keys[0].root
            })
            .and_then(|leaf| {
                Some(metadata.metadata().row_groups().first()?.column(leaf).compression())
            })
            .unwrap_or(Compression::SNAPPY);
        let indexed = metadata.metadata().offset_index().is_some();
        Ok(Self { work, file, columns, added, added_types, compression, indexed, metadata })
    }

    /// Number of rows in the groups before this one.
    pub(super) fn rows_before(&self, group: usize) -> u64 {
        let earlier = &self.metadata.metadata().row_groups()[..group];
        earlier.iter().map(|group| group.num_rows() as u64).sum()
    }

    /// The schema of the output.
    fn root(&self) -> Result<TypePtr, AnnotateError> {
        let root = self.metadata.parquet_schema().root_schema();
        let mut fields = root.get_fields().to_vec();
        fields.extend(self.added_types.iter().cloned());
        Ok(Arc::new(Type::group_type_builder(root.name()).with_fields(fields).build()?))
    }

    /// The writer's properties, and whether the file stores Arrow's own types of the columns.
    pub(super) fn properties(&self) -> (WriterProperties, bool) {
        let file = self.metadata.metadata().file_metadata();
        let pairs = file.key_value_metadata().cloned();
        let hinted = pairs.iter().flatten().any(|pair| pair.key == ARROW_SCHEMA_META_KEY);
        let mut builder = WriterProperties::builder()
            .set_compression(self.compression)
            .set_key_value_metadata(pairs);
        if !self.indexed {
            let chunks = EnabledStatistics::Chunk;
            builder = builder.set_statistics_enabled(chunks).set_offset_index_disabled(true);
        }
        let mut properties = builder.build();
        if hinted {
            // The output has more columns.
            add_encoded_arrow_schema_to_metadata(&self.whole(), &mut properties);
        }
        (properties, hinted)
    }

    /// Encodes every `step`-th row group, until the receiver is dropped.
    fn work(&self, first: usize, step: usize, give: &SyncSender<Encoded>) -> W::Batches {
        let mut found = self.work.batches(&self.columns);
        for group in (first..self.metadata.metadata().num_row_groups()).step_by(step) {
            let encoded = guarded(|| self.encode(group, &mut found));
            let failed = encoded.is_err();
            if give.send(encoded).is_err() || failed {
                break;
            }
        }
        found
    }

    fn encode(&self, group: usize, found: &mut W::Batches) -> Encoded {
        // The decoded columns are in the file's order.
        let roots = self.columns.roots();
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), roots.iter().copied());
        check_pages(&self.metadata, &self.file, group, |root| roots.contains(&root))?;
        let (file, metadata) = (self.file.clone(), self.metadata.clone());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata)
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(self.work.batch_rows().map_or(BATCH, |rows| rows.max(BATCH)))
            .build()?;
        // A writer for only the added columns provides the writers of their chunks.
        let root =
            Type::group_type_builder("added").with_fields(self.added_types.clone()).build()?;
        let properties = WriterProperties::builder().set_compression(self.compression).build();
        let alone =
            SerializedFileWriter::new(std::io::sink(), Arc::new(root), Arc::new(properties))?;
        let factory = ArrowRowGroupWriterFactory::new(&alone, Arc::clone(&self.added));
        let mut writers = factory.create_column_writers(group)?;

        let mut row = self.rows_before(group);
        let read = self.columns.in_batch(&roots);
        for batch in reader {
            let batch = batch?;
            let added = found.batch(self.work, &batch, &read, row, None)?;
            row += batch.num_rows() as u64;
            let fields: &[Arc<Field>] = self.added.fields();
            // Pages may end where a write ends, so however many rows are read at once, they are written by these steps.
            for start in (0..batch.num_rows()).step_by(BATCH) {
                let rows = BATCH.min(batch.num_rows() - start);
                let mut writers = writers.iter_mut();
                for (field, column) in fields.iter().zip(&added) {
                    for leaf in compute_leaves(field, &column.slice(start, rows))? {
                        if let Some(writer) = writers.next() {
                            writer.write(&leaf)?;
                        }
                    }
                }
            }
        }
        Ok(writers.into_iter().map(|writer| writer.close()).collect::<Result<_, _>>()?)
    }

    /// Writes the row groups in order: the copied columns, then the added ones.
    fn write<O: Write + Send>(
        &self,
        writer: &mut SerializedFileWriter<O>,
        queues: Vec<Receiver<Encoded>>,
        total: u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), AnnotateError> {
        let metadata = self.metadata.metadata();
        let (file, shared) = (self.file.clone(), self.metadata.clone());
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, shared);
        let mut rows = 0;
        for (index, group) in metadata.row_groups().iter().enumerate() {
            let mut out = writer.next_row_group()?;
            // The writer needs offsets of all columns, or of none.
            let columns = metadata.column_index().filter(|_| self.indexed);
            let offsets = metadata.offset_index().filter(|_| self.indexed);
            for (leaf, column) in group.columns().iter().enumerate() {
                let close = ColumnCloseResult {
                    bytes_written: column.compressed_size() as u64,
                    rows_written: group.num_rows() as u64,
                    metadata: column.clone(),
                    bloom_filter: guarded(|| {
                        reader.get_row_group_column_bloom_filter(index, leaf)
                    })?,
                    column_index: columns.and_then(|of| of.get(index)?.get(leaf)).cloned(),
                    offset_index: offsets.and_then(|of| of.get(index)?.get(leaf)).cloned(),
                };
                out.append_column(&self.file, close)?;
            }
            let ended = || AnnotateError::File { what: "a thread ended early".to_owned() };
            let encoded = queues[index % queues.len()].recv().map_err(|_| ended())??;
            for chunk in encoded {
                chunk.append_to_row_group(&mut out)?;
            }
            out.close()?;
            rows += group.num_rows() as u64;
            progress(Progress { rows, total: Some(total) });
        }
        Ok(())
    }
}

/// Checks positions and counts of the footer, which the library does not check.
pub(super) fn check(metadata: &ArrowReaderMetadata, file: &Shared) -> Result<(), AnnotateError> {
    let mut rows = 0u64;
    for group in metadata.metadata().row_groups() {
        rows = u64::try_from(group.num_rows())
            .ok()
            .and_then(|more| rows.checked_add(more))
            .ok_or_else(|| broken(format_args!("a group of {} rows", group.num_rows())))?;
        for column in group.columns() {
            let data = column.data_page_offset();
            let start =
                column.dictionary_page_offset().map_or(data, |dictionary| data.min(dictionary));
            file.check_range(start, column.compressed_size(), "a column")?;
            file.check_range(data, 0, "a column")?;
        }
    }
    Ok(())
}

/// Checks the pages of the columns to decode, given by their top-level fields.
pub(super) fn check_pages(
    metadata: &ArrowReaderMetadata,
    file: &Shared,
    group: usize,
    decoded: impl Fn(usize) -> bool,
) -> Result<(), AnnotateError> {
    let columns = metadata.metadata().row_group(group).columns();
    let root = |leaf| metadata.parquet_schema().get_column_root_idx(leaf);
    let decoded = columns.iter().enumerate().filter(|(leaf, _)| decoded(root(*leaf)));
    decoded.into_iter().try_for_each(|(_, column)| pages::check(column, file))
}
