//! Annotation of columnar files: Parquet and Arrow IPC.

use std::io::{self, Write};

use fibula_annotate::{ColumnAnnotator, Summary};

use super::failed::failure;
use super::inputs::Job;
use super::reading::Columns;
use super::tables::Tables;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Bar;

/// Annotates a columnar file.
pub fn annotate(
    job: &Job,
    input: Columns,
    annotator: &ColumnAnnotator,
    tables: &Tables,
) -> Result<Summary, Failure> {
    let mut out = Watched { inner: Output::create(&job.output)?, error: None };
    let done = {
        let bar = Bar::new(&job.input.display().to_string());
        let mut show = |at| bar.show_rows(at);
        match input {
            Columns::Parquet(file) => annotator.annotate_parquet(file, &mut out, &mut show),
            Columns::ArrowFile(file) => annotator.annotate_ipc_file(file, &mut out, &mut show),
            Columns::ArrowStream(data) => annotator.annotate_ipc_stream(data, &mut out, &mut show),
        }
    };
    if let Some(error) = out.error {
        return Err(Failure::from(error));
    }
    let summary = done.map_err(|error| failure(job, &error))?;
    tables.unchanged()?;
    out.inner.finish()?;
    Ok(summary)
}

/// An output that keeps its I/O error, because the file-format libraries report only that one occurred.
struct Watched {
    inner: Output,
    error: Option<io::Error>,
}

impl Watched {
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
