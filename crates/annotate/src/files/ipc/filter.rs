//! A filter of Arrow IPC streams: each batch is answered before the next one is read.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, FieldRef, Schema};

use super::StreamBatches;
use crate::files::{BatchWork, ColumnWork, KeyColumns};
use crate::rows::stream::StreamHost;
use crate::{AnnotateError, AnnotateOptions, ColumnAnnotator, LogFormat, LookupTable, Summary};

/// The size of the input's buffer.
const CHUNK: usize = 256 << 10;

/// Annotates streams that follow each other. Each begins with the schema, which is written before its first batch is
/// read, because the other program may wait for it. The counts are added to `total`.
pub(crate) fn filter(
    table: Arc<dyn LookupTable>,
    options: &AnnotateOptions,
    only_added: bool,
    input: impl Read,
    output: impl Write,
    host: &mut dyn StreamHost,
    total: &mut Summary,
) -> Result<(), AnnotateError> {
    let mut output = Output { inner: output, failed: None };
    let done = streams(table, options, only_added, input, &mut output, host, total);
    match output.failed {
        Some(error) => Err(AnnotateError::Write(error)),
        None => done,
    }
}

/// An output that keeps its error, because the library reports only its text.
struct Output<W> {
    inner: W,
    failed: Option<io::Error>,
}

impl<W> Output<W> {
    fn keep<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.map_err(|error| {
            let kind = error.kind();
            self.failed = self.failed.take().or(Some(error));
            kind.into()
        })
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let done = self.inner.write(bytes);
        self.keep(done)
    }

    fn flush(&mut self) -> io::Result<()> {
        let done = self.inner.flush();
        self.keep(done)
    }
}

fn streams(
    table: Arc<dyn LookupTable>,
    options: &AnnotateOptions,
    only_added: bool,
    input: impl Read,
    output: &mut impl Write,
    host: &mut dyn StreamHost,
    total: &mut Summary,
) -> Result<(), AnnotateError> {
    let mut annotator = ColumnAnnotator::new(table, options)?;
    let mut input = BufReader::with_capacity(CHUNK, input);
    while !host.is_stopped() && !input.fill_buf().map_err(AnnotateError::Read)?.is_empty() {
        let mut read = match StreamBatches::new(&mut input, options.batch_bytes) {
            // The stream was stopped within its schema.
            Err(_) if host.is_stopped() => return Ok(()),
            read => read?,
        };
        let schema = Arc::clone(&read.context.schema);
        let columns = annotator.columns(&schema, LogFormat::Arrow, &mut || Ok(None))?;
        let added = added(&annotator, &schema, &columns, only_added)?;
        let kept = if only_added { &[][..] } else { &schema.fields()[..] };
        let fields: Vec<FieldRef> =
            kept.iter().cloned().chain(added.iter().cloned().map(Arc::new)).collect();
        let written = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut writer = StreamWriter::try_new(&mut *output, &written)?;
        writer.flush()?;
        let mut found = annotator.batches(&columns);
        let first_row = total.rows;
        let mut rows = first_row;
        let done = loop {
            let batch = match read.next() {
                None => break Ok(()),
                Some(Err(_)) if host.is_stopped() => break Ok(()),
                Some(Err(error)) => break Err(error),
                Some(Ok(batch)) => batch,
            };
            if let Some(table) = host.renewed() {
                match renewed(
                    table,
                    options,
                    |new| self::added(new, &schema, &columns, only_added),
                    &added,
                ) {
                    Ok(next) => annotator = next,
                    Err(error) => host.refused(&error),
                }
            }
            let values = found.batch(&annotator, &batch, &columns, rows, None)?;
            rows += batch.num_rows() as u64;
            let kept = if only_added { &[][..] } else { batch.columns() };
            let all = kept.iter().cloned().chain(values).collect();
            writer.write(&RecordBatch::try_new(Arc::clone(&written), all)?)?;
            writer.flush()?;
        };
        total.extend(found.summary(&annotator, &columns));
        done?;
        drop(read);
        // Only the last stream gets an end marker: a program that reads as many rows as it sent (a pool of ClickHouse)
        // would take the marker for the answer to its next stream.
        if host.is_stopped() || input.fill_buf().map_err(AnnotateError::Read)?.is_empty() {
            writer.finish()?;
            writer.flush()?;
        }
    }
    Ok(())
}

/// The added columns. Values that are written alone can have the names of any columns.
fn added(
    annotator: &ColumnAnnotator,
    schema: &Schema,
    columns: &KeyColumns,
    only_added: bool,
) -> Result<Vec<Field>, AnnotateError> {
    let empty = Schema::empty();
    annotator.added(if only_added { &empty } else { schema }, columns)
}

/// An annotator with a new table, which must add the same columns.
fn renewed(
    table: Arc<dyn LookupTable>,
    options: &AnnotateOptions,
    added: impl Fn(&ColumnAnnotator) -> Result<Vec<Field>, AnnotateError>,
    old: &[Field],
) -> Result<ColumnAnnotator, AnnotateError> {
    let next = ColumnAnnotator::new(table, options)?;
    let new = added(&next)?;
    if new != old {
        let names = |fields: &[Field]| {
            let one = |field: &Field| format!("{} {}", field.name(), field.data_type());
            fields.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let (new, old) = (names(&new), names(old));
        let what = format!("the new table has the columns {new}, the stream began with {old}");
        return Err(AnnotateError::Stream { what });
    }
    Ok(next)
}
