//! Annotation of columnar files: Parquet and Arrow IPC.

use std::io::{self, Write};
use std::path::Path;

use fibula_annotate::{ColumnAnnotator, ColumnInput, LogFormat, Summary};

use super::failed::{failure, found_any};
use super::inputs::Job;
use super::tables::Tables;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Annotates a columnar file.
pub fn annotate(
    job: &Job,
    input: ColumnInput<'_>,
    annotator: &ColumnAnnotator,
    tables: &Tables,
) -> Result<Summary, Failure> {
    let format = match input {
        ColumnInput::Parquet(_) => LogFormat::Parquet,
        _ => LogFormat::Arrow,
    };
    let mut out = Watched::create(&job.output)?;
    let done = {
        let bar = Bar::new(&job.input.display().to_string());
        let mut show = |at| bar.show_rows(at);
        match input {
            ColumnInput::Parquet(file) => annotator.annotate_parquet(file, &mut out, &mut show),
            ColumnInput::ArrowFile(file) => annotator.annotate_ipc_file(file, &mut out, &mut show),
            ColumnInput::ArrowStream(data) => {
                annotator.annotate_ipc_stream(data, &mut out, &mut show)
            }
        }
    };
    out.check()?;
    let summary = done.map_err(|error| failure(job, &error))?;
    tables.unchanged()?;
    found_any(job, format, false, &summary)?;
    out.finish()?;
    Ok(summary)
}

/// An output that keeps its I/O error, because the file-format libraries report only that one occurred.
pub(crate) struct Watched {
    inner: Output,
    error: Option<io::Error>,
}

impl Watched {
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        Ok(Self { inner: Output::create(path)?, error: None })
    }

    /// Returns the error of an earlier write.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        self.error.take().map_or(Ok(()), |error| Err(Failure::from(error)))
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.inner.finish()
    }

    fn watch<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let again = io::Error::new(error.kind(), error.to_string());
            if error.kind() != io::ErrorKind::Interrupted {
                self.error.get_or_insert(error);
            }
            again
        })
    }
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.watch(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.watch(result)
    }
}
