//! Annotation of Arrow IPC, files and streams, batch by batch. The output is a file or a stream like the input.

mod check;
mod read;

use std::io::{BufReader, Read, Seek, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, Schema, SchemaRef};

pub(super) use self::read::{FileBatches, StreamBatches};
use super::chosen::chosen;
use super::{Found, Progress, added_fields, places, time_place};
use crate::columns::ColumnAnnotator;
use crate::{AnnotateError, LogFormat, Summary};

/// Receives each batch with the schema, and `None` at the end.
type Give<'a> = dyn FnMut(&Schema, Option<&RecordBatch>) -> Result<(), ArrowError> + 'a;

impl ColumnAnnotator {
    /// Annotates an Arrow IPC file (also called Feather).
    ///
    /// # Errors
    /// If the file is damaged, writing fails, or the options do not fit its columns.
    pub fn annotate_ipc_file(
        &self,
        input: impl Read + Seek,
        output: impl Write,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, AnnotateError> {
        let batches = FileBatches::new(BufReader::new(input))?;
        let schema = Arc::clone(&batches.context.schema);
        let mut writer = None;
        let mut output = Some(output);
        let summary = self.batches(batches, schema, progress, &mut |schema, batch| {
            let writer = match &mut writer {
                Some(writer) => writer,
                None => match output.take() {
                    Some(output) => writer.insert(FileWriter::try_new_buffered(output, schema)?),
                    None => return Ok(()),
                },
            };
            match batch {
                Some(batch) => writer.write(batch),
                None => writer.finish(),
            }
        })?;
        if let Some(writer) = writer {
            writer.into_inner()?.flush().map_err(AnnotateError::Write)?;
        }
        Ok(summary)
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
        let batches = StreamBatches::new(BufReader::new(input))?;
        let schema = Arc::clone(&batches.context.schema);
        let mut writer = None;
        let mut output = Some(output);
        self.batches(batches, schema, progress, &mut |schema, batch| {
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
            writer.flush()
        })
    }

    /// Annotates batches. `give` is called with each batch and its schema, and with `None` at the end.
    fn batches(
        &self,
        mut batches: impl Iterator<Item = Result<RecordBatch, AnnotateError>>,
        schema: SchemaRef,
        progress: &mut dyn FnMut(Progress),
        give: &mut Give<'_>,
    ) -> Result<Summary, AnnotateError> {
        let mut next = batches.next().transpose()?;
        let places =
            places(&schema, &self.options().columns, LogFormat::Arrow, || Ok(next.clone()))?;
        let time = time_place(&schema, self.options().time.as_ref())?;
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        fields.extend(added_fields(self, &schema, &places)?.into_iter().map(Arc::new));
        let written = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
        let mut found = Found::new(self, places.len());
        while let Some(batch) = next {
            let only = self.options().only;
            let mut matched = only.map(|_| vec![false; batch.num_rows()]);
            let added = found.batch(
                self,
                &batch,
                &places,
                time.as_ref(),
                found.rows,
                matched.as_deref_mut(),
            )?;
            let mut columns = batch.columns().to_vec();
            columns.extend(added);
            let mut batch = RecordBatch::try_new(Arc::clone(&written), columns)?;
            if let (Some(matched), Some(only)) = (matched, only) {
                let kept = chosen(&batch, &matched, only)?;
                found.left_out += (batch.num_rows() - kept.num_rows()) as u64;
                batch = kept;
            }
            give(&written, Some(&batch))?;
            progress(Progress { rows: found.rows, total: None });
            next = batches.next().transpose()?;
        }
        give(&written, None)?;
        Ok(found.summary(self, &places))
    }
}
