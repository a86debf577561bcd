//! Annotation of columnar files: Parquet and Arrow IPC.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use fibula_annotate::{AnnotateError, ColumnAnnotator, LogFormat, Progress, Summary};

use super::failed::failure;
use super::inputs::Job;
use super::tables::Tables;
use crate::failure::Failure;
use crate::input;
use crate::output::Output;
use crate::progress::Bar;

/// Annotates a columnar file.
pub fn annotate(
    job: &Job,
    format: LogFormat,
    annotator: &ColumnAnnotator,
    tables: &Tables,
) -> Result<Summary, Failure> {
    let mut out = Watched { inner: Output::create(&job.output)?, error: None };
    let done = {
        let bar = Bar::new(&job.input.display().to_string());
        let mut show = |at| bar.show_rows(at);
        match format {
            LogFormat::Parquet => {
                let input = File::open(&job.input)
                    .map_err(|error| Failure::io(job.input.display(), &error))?;
                annotator.annotate_parquet(input, &mut out, &mut show)
            }
            _ => arrow(job, annotator, &mut out, &mut show)?,
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

fn arrow(
    job: &Job,
    annotator: &ColumnAnnotator,
    out: &mut impl Write,
    show: &mut dyn FnMut(Progress),
) -> Result<Result<Summary, AnnotateError>, Failure> {
    if job.input.is_file() {
        let fail = |error| Failure::io(job.input.display(), &error);
        let mut file = File::open(&job.input).map_err(fail)?;
        let mut magic = Vec::new();
        (&mut file).take(6).read_to_end(&mut magic).map_err(fail)?;
        if magic == b"ARROW1" {
            file.rewind().map_err(fail)?;
            return Ok(annotator.annotate_ipc_file(file, out, show));
        }
    }
    Ok(annotator.annotate_ipc_stream(input::open(&job.input)?, out, show))
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
