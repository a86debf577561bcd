//! Annotation of Arrow IPC, files and streams, batch by batch. The output is a file or a stream like the input.

mod check;
mod filter;
mod lz4;
mod read;
mod room;

use std::io::{BufReader, Read, Seek, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{Schema, SchemaRef};

pub(crate) use self::filter::filter;
pub(super) use self::read::{FileBatches, StreamBatches};
use super::chosen::chosen;
use super::{BatchWork, ColumnWork, KeyColumns, Progress, in_order};
use crate::columns::ColumnAnnotator;
use crate::{AnnotateError, LogFormat, Summary};

/// Receives each batch with the schema, and `None` at the end.
pub(crate) type Give<'a> =
    dyn FnMut(&SchemaRef, Option<&RecordBatch>) -> Result<(), AnnotateError> + 'a;

/// The counts of a file or stream, and its columns with keys.
pub(crate) type Counted<W> = Result<(<W as ColumnWork>::Batches, KeyColumns), AnnotateError>;

impl ColumnAnnotator {
    /// Annotates an Arrow IPC file (also called Feather). Several threads take batches in turn; memory is bounded by
    /// two batches for each thread.
    ///
    /// # Errors
    /// If the file is damaged, writing fails, or the options do not fit its columns.
    pub fn annotate_ipc_file(
        &self,
        input: impl Read + Seek,
        output: impl Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, AnnotateError> {
        let (found, columns) = file(self, input, output, progress)?;
        Ok(found.summary(self, &columns))
    }

    /// Annotates an Arrow IPC stream. Batches are written as they arrive.
    ///
    /// # Errors
    /// The errors of [`ColumnAnnotator::annotate_ipc_file`].
    pub fn annotate_ipc_stream(
        &self,
        input: impl Read,
        output: impl Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, AnnotateError> {
        let (found, columns) = stream(self, input, output, progress)?;
        Ok(found.summary(self, &columns))
    }
}

/// Writes a file with the columns of the input, followed by the added ones.
pub(crate) fn file<W: ColumnWork>(
    work: &W,
    input: impl Read + Seek,
    output: impl Write,
    progress: &mut dyn FnMut(Progress),
) -> Counted<W> {
    let mut output = Some(output);
    let mut writer = None;
    let counted = file_batches(work, input, progress, &mut |schema, batch| {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => match output.take() {
                Some(output) => writer.insert(FileWriter::try_new_buffered(output, schema)?),
                None => return Ok(()),
            },
        };
        match batch {
            Some(batch) => writer.write(batch)?,
            None => writer.finish()?,
        }
        Ok(())
    })?;
    if let Some(writer) = writer {
        writer.into_inner()?.flush().map_err(AnnotateError::Write)?;
    }
    Ok(counted)
}

/// Writes a stream with the columns of the input, followed by the added ones, batch by batch as they arrive.
pub(crate) fn stream<W: ColumnWork>(
    work: &W,
    input: impl Read,
    output: impl Write,
    progress: &mut dyn FnMut(Progress),
) -> Counted<W> {
    let mut output = Some(output);
    let mut writer = None;
    stream_batches(work, input, progress, &mut |schema, batch| {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => match output.take() {
                Some(output) => writer.insert(StreamWriter::try_new_buffered(output, schema)?),
                None => return Ok(()),
            },
        };
        match batch {
            Some(batch) => writer.write(batch)?,
            None => writer.finish()?,
        }
        Ok(writer.flush()?)
    })
}

/// Gives the batches of a file, from several threads.
pub(crate) fn file_batches<W: ColumnWork>(
    work: &W,
    input: impl Read + Seek,
    progress: &mut dyn FnMut(Progress),
    give: &mut Give<'_>,
) -> Counted<W> {
    let read = FileBatches::new(BufReader::new(input), work.options().batch_bytes)?;
    let schema = Arc::clone(&read.context.schema);
    batches(work, work.options().threads, (schema, read), progress, give)
}

/// Gives the batches of a stream as they arrive.
pub(crate) fn stream_batches<W: ColumnWork>(
    work: &W,
    input: impl Read,
    progress: &mut dyn FnMut(Progress),
    give: &mut Give<'_>,
) -> Counted<W> {
    let read = StreamBatches::new(BufReader::new(input), work.options().batch_bytes)?;
    let schema = Arc::clone(&read.context.schema);
    batches(work, 1, (schema, read), progress, give)
}

/// Gives batches with the added columns. `give` is called with each batch and its schema, and with `None` at the end.
fn batches<W: ColumnWork>(
    work: &W,
    threads: usize,
    (schema, mut read): (SchemaRef, impl Iterator<Item = Result<RecordBatch, AnnotateError>>),
    progress: &mut dyn FnMut(Progress),
    give: &mut Give<'_>,
) -> Counted<W> {
    let mut next = read.next().transpose()?;
    let columns = work.columns(&schema, LogFormat::Arrow, &mut || Ok(next.clone()))?;
    let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
    fields.extend(work.added(&schema, &columns)?.into_iter().map(Arc::new));
    let written = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let only = work.options().only;
    let most = work.options().batch_rows.map_or(usize::MAX, |rows| rows.max(1));
    let add = |found: &mut W::Batches, (batch, first_row): (RecordBatch, u64)| {
        let mut matched = only.map(|_| vec![false; batch.num_rows()]);
        let added = found.batch(work, &batch, &columns, first_row, matched.as_deref_mut())?;
        let all = batch.columns().iter().cloned().chain(added).collect();
        let mut whole = RecordBatch::try_new(Arc::clone(&written), all)?;
        if let (Some(matched), Some(only)) = (matched, only) {
            whole = chosen(&whole, &matched, only)?;
            found.leave_out((batch.num_rows() - whole.num_rows()) as u64);
        }
        Ok::<_, AnnotateError>((whole, first_row + batch.num_rows() as u64))
    };
    let states = (0..threads.max(1)).map(|_| work.batches(&columns)).collect();
    let take = |added: Result<(RecordBatch, u64), AnnotateError>| {
        let (batch, rows) = added?;
        give(&written, Some(&batch))?;
        progress(Progress { rows, total: None });
        Ok(())
    };
    let mut states = in_order(states, add, take, |ordered| {
        let mut rows = 0;
        while let Some(batch) = next {
            let first_row = rows;
            rows += batch.num_rows() as u64;
            for at in (0..batch.num_rows().max(1)).step_by(most) {
                let part = batch.slice(at, most.min(batch.num_rows() - at));
                ordered.push((part, first_row + at as u64))?;
            }
            next = read.next().transpose()?;
        }
        Ok(())
    })?;
    give(&written, None)?;
    let mut found = states.swap_remove(0);
    states.iter().for_each(|other| found.merge(other));
    Ok((found, columns))
}
