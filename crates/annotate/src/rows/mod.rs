//! Annotation of rows of text, and of packets.
//!
//! ```text
//!   input
//!     | formats::LogDecoder   bytes -> a block: rows, and the addresses of each family
//!     | pipeline              addresses -> the answer of each cell, and counts for the summary
//!     v emit                  the bytes of the rows, with the text of the added values
//!   output
//! ```
//!
//! `process` passes each block from stage to stage and counts lines. `run` reads and writes on one thread, `parts` on
//! several.

#[cfg(test)]
mod capture_tests;
mod emit;
mod lists;
mod parts;
mod process;
mod render;
mod run;
mod stages;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
pub(crate) mod work;

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use self::parts::RemainingInput;
use self::run::{Progressed, Run, TEXT};
use self::stages::Stages;
use self::work::Work;
use crate::added::Addition;
use crate::block::MAX_ROWS;
use crate::clock::Clock;
use crate::formats::{Decode, decoder};
use crate::input::{CHUNK, Input};
use crate::pipeline::keys::Cells;
use crate::{AnnotateError, AnnotateOptions, LogFormat, LookupTable, Summary};

/// Annotates text and captures with the values of a table.
pub struct Annotator {
    table: Arc<dyn LookupTable>,
    format: LogFormat,
    options: AnnotateOptions,
    additions: Vec<Addition>,
    parting: Parting,
}

/// How an input is split among threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parting {
    /// Bytes that one thread processes before others start. A small input needs only this thread.
    pub(crate) from: u64,
    /// Bytes to read at once, which is also about the size of a part.
    pub(crate) chunk: usize,
    /// A read that returns fewer bytes comes from a slow input.
    pub(crate) slow: usize,
    /// Rows that a block may have beyond [`MAX_ROWS`].
    pub(crate) more_rows: usize,
    /// Whether a read waits until there is a whole chunk, however slow the input is.
    pub(crate) fills: bool,
}

/// The chunk for a table that wants large batches: some 100,000 rows. Buffers for input and output have about this
/// size, two or three for each thread.
const LARGE_CHUNK: usize = 8 << 20;

impl Parting {
    /// How an input is split for a table that wants this many addresses at once.
    fn for_batch(batch: Option<usize>) -> Self {
        let usual = Self::default();
        match batch {
            Some(rows) if rows > MAX_ROWS => {
                Self { chunk: LARGE_CHUNK, more_rows: rows - MAX_ROWS, fills: true, ..usual }
            }
            _ => usual,
        }
    }
}

impl Default for Parting {
    fn default() -> Self {
        Self { from: 1 << 20, chunk: CHUNK, slow: 16 << 10, more_rows: 0, fills: false }
    }
}

impl Annotator {
    /// Prepares annotation of inputs in this format. The table is a [`Fib`](fibula_fib::Fib), or a reference to one.
    ///
    /// # Errors
    /// If the table does not have a requested value column, options contradict each other, or the format is columnar.
    /// Options that depend on the input, such as its column names, are checked by [`Annotator::annotate`].
    pub fn new(
        table: impl LookupTable + 'static,
        format: LogFormat,
        options: &AnnotateOptions,
    ) -> Result<Self, AnnotateError> {
        let table: Arc<dyn LookupTable> = Arc::new(table);
        if !table.has_columns() {
            return Err(AnnotateError::Live);
        }
        let additions = Addition::all(table.columns(), options)?;
        Clock::new(&*table, options)?;
        // Each input gets its own decoder. This one only checks the options.
        decoder(format, options, &additions, &table)?;
        let (options, parting) = (options.clone(), Parting::for_batch(table.batch()));
        Ok(Self { table, format, options, additions, parting })
    }

    /// Reads `input` to its end and writes every row, in order, with the values of its addresses. Neither input nor
    /// output needs a buffer around it. Memory does not grow with the input. Rows of a slow input (such as a pipe
    /// that is still being written) are written as they arrive.
    ///
    /// # Errors
    /// If reading or writing fails, if the options do not fit the input, and with [`AnnotateOptions::strict`] at the
    /// first bad cell or record. Rows before the error are written. An output closed by its reader is not an error:
    /// see [`Summary::output_closed`].
    pub fn annotate(&self, input: impl Read, output: impl Write) -> Result<Summary, AnnotateError> {
        self.annotate_watched(input, output, &mut |_| {})
    }

    /// Like [`Annotator::annotate`]; after each block of rows, calls `watch` with the number of rows annotated so
    /// far.
    ///
    /// # Errors
    /// The errors of [`Annotator::annotate`].
    pub fn annotate_watched(
        &self,
        input: impl Read,
        mut output: impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Summary, AnnotateError> {
        let mut run = Run::new(self, None)?;
        let mut input = Input::new(input, self.parting.chunk, self.parting.fills);
        let done = run.all(&mut input, &mut output, progress);
        Ok(finish(run, done.map(drop))?.0)
    }

    /// Like [`Annotator::annotate_watched`], on [`AnnotateOptions::threads`] threads and two more for reading and
    /// writing. Output, summary and the first error are the same as with one thread. Rows of CSV, TSV and lists, lines
    /// of JSON, and packets that are not summed by flow are split among the threads. Only the calling thread processes
    /// other inputs, the first MiB, and everything if `threads` is 1. Memory is bounded by one or two MiB for each
    /// thread, and by 64 MiB for each if all rows have the maximum length.
    ///
    /// # Errors
    /// The errors of [`Annotator::annotate`].
    pub fn annotate_on_threads(
        &self,
        input: impl Read,
        mut output: impl Write + Send,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Summary, AnnotateError> {
        Ok(on_threads(self, input, &mut output, progress)?.0)
    }
}

impl Work for Annotator {
    type Keys = Cells;
    type Stages<'w> = Stages<'w>;

    fn format(&self) -> LogFormat {
        self.format
    }

    fn options(&self) -> &AnnotateOptions {
        &self.options
    }

    fn parting(&self) -> Parting {
        self.parting
    }

    fn decoder(&self) -> Result<Box<dyn Decode>, AnnotateError> {
        decoder(self.format, &self.options, &self.additions, &self.table)
    }

    fn clock(&self) -> Result<Option<Clock>, AnnotateError> {
        Clock::new(&*self.table, &self.options)
    }

    fn stages<'w>(&'w self, decoder: &dyn Decode) -> Stages<'w> {
        Stages::new(self, decoder)
    }
}

/// The summary of an input, and the stages that worked on it.
pub(crate) type Finished<'w, W> = (Summary, Option<<W as Work>::Stages<'w>>);

/// Reads `input` to its end on several threads, and writes every row, in order.
pub(crate) fn on_threads<'w, W: Work>(
    work: &'w W,
    input: impl Read,
    output: &mut (impl Write + Send),
    progress: &mut dyn FnMut(u64),
) -> Result<Finished<'w, W>, AnnotateError> {
    let Parting { from, chunk, slow, fills, .. } = work.parting();
    let threads = work.options().threads;
    // One thread checks whether the input is text.
    let mut run = Run::new(work, (threads > 1).then_some(from.max(TEXT)))?;
    let mut input = Input::new(input, chunk, fills);
    let done = match run.all(&mut input, output, progress) {
        Ok(Progressed::Begun) => {
            let rest = RemainingInput { input: &mut input, threads, slow };
            parts::annotate(&mut run, rest, output, progress)
        }
        other => other.map(drop),
    };
    finish(run, done)
}

/// Returns the summary, even if the output was closed by its reader.
fn finish<'w, W: Work>(
    run: Run<'w, W>,
    done: Result<(), AnnotateError>,
) -> Result<Finished<'w, W>, AnnotateError> {
    let closed = match done {
        Err(AnnotateError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => true,
        other => other.map(|()| false)?,
    };
    let (summary, stages) = run.finish();
    Ok((Summary { output_closed: closed, ..summary }, stages))
}
