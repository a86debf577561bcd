//! Rows of text, and packets: in, and with what is added out.
//!
//! ```text
//!   input
//!     | formats::LogDecoder   bytes -> a block: rows, and the addresses of each family
//!     | lookup                addresses -> hops, and prefixes where they are asked for
//!     | count                 how much of what, for the summary
//!     v emit                  the bytes of the rows with the text of their hops
//!   output
//! ```
//!
//! `process` passes each block from stage to stage and knows the lines. `run` reads and writes on one thread, `parts` on
//! several.

mod count;
mod emit;
mod lists;
mod lookup;
mod parts;
mod process;
mod render;
mod run;
#[cfg(test)]
mod tests;

use std::io::{ErrorKind, Read, Write};

use self::parts::Rest;
use self::run::{Progressed, Run, TEXT};
use crate::added::Addition;
use crate::clock::Clock;
use crate::formats::decoder;
use crate::input::{CHUNK, Input};
use crate::{AnnotateError, AnnotateOptions, LogFormat, LookupTable, Summary};

/// Annotates text and captures with what a table says about their addresses.
pub struct Annotator {
    table: Box<dyn LookupTable>,
    format: LogFormat,
    options: AnnotateOptions,
    additions: Vec<Addition>,
    parting: Parting,
}

/// How an input is parted among threads.
#[derive(Clone, Copy, Debug)]
struct Parting {
    /// Bytes that one thread reads first: a small input is done by then.
    from: u64,
    /// Bytes read at once, and so about those of a part.
    chunk: usize,
    /// A read of fewer bytes is one of a slow input.
    slow: usize,
}

impl Default for Parting {
    fn default() -> Self {
        Self { from: 1 << 20, chunk: CHUNK, slow: 16 << 10 }
    }
}

impl Annotator {
    /// Prepares annotation of inputs of this format. The table is a [`Fib`](fibula_fib::Fib), or a
    /// reference to one.
    ///
    /// # Errors
    /// If the table has no such value column, if options contradict each other, if the format has
    /// columns in place of rows. What depends on the input, such as its column names, is checked by
    /// [`Annotator::annotate`].
    pub fn new(
        table: impl LookupTable + 'static,
        format: LogFormat,
        options: &AnnotateOptions,
    ) -> Result<Self, AnnotateError> {
        let table: Box<dyn LookupTable> = Box::new(table);
        if !table.has_columns() {
            return Err(AnnotateError::Live);
        }
        let additions = Addition::all(table.columns(), options)?;
        Clock::new(&*table, options)?;
        // A decoder is made for each input; here it checks the options.
        decoder(format, options, &additions)?;
        let (options, parting) = (options.clone(), Parting::default());
        Ok(Self { table, format, options, additions, parting })
    }

    /// Reads `input` to its end and writes every row, in order, with what the table says about its
    /// addresses. Needs no buffering around either of them; memory does not grow with the input. Rows
    /// of a slow input (a pipe that is still being written) come out as they come in.
    ///
    /// # Errors
    /// If reading or writing fails, if the options do not fit the input, and with
    /// [`AnnotateOptions::strict`] at the first bad cell or record. Rows before the error were
    /// written. An output that was closed by its reader is not an error: [`Summary::output_closed`].
    pub fn annotate(&self, input: impl Read, output: impl Write) -> Result<Summary, AnnotateError> {
        self.annotate_watched(input, output, &mut |_| {})
    }

    /// As [`Annotator::annotate`], and says after each block of rows how many rows were annotated so far.
    ///
    /// # Errors
    /// As [`Annotator::annotate`].
    pub fn annotate_watched(
        &self,
        input: impl Read,
        mut output: impl Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Summary, AnnotateError> {
        let mut run = Run::new(self, None)?;
        let mut input = Input::new(input, self.parting.chunk);
        let done = run.all(&mut input, &mut output, progress);
        finish(run, done.map(drop))
    }

    /// As [`Annotator::annotate_watched`], on as many threads as [`AnnotateOptions::threads`] says, and two more that read
    /// and write. Output and summary are the same, and so is the first error. Of CSV, TSV, lists and lines of JSON the
    /// rows are parted among the threads; other inputs, the first MiB, and all of it if `threads` is 1, take this thread
    /// alone. Memory is bounded by a MiB or two for each thread, and by 64 MiB for each if all rows are as long as can be.
    ///
    /// # Errors
    /// As [`Annotator::annotate`].
    pub fn annotate_on_threads(
        &self,
        input: impl Read,
        mut output: impl Write + Send,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Summary, AnnotateError> {
        let Parting { from, chunk, slow } = self.parting;
        let threads = self.options.threads;
        // What tells that an input is no text is looked at by one.
        let mut run = Run::new(self, (threads > 1).then_some(from.max(TEXT)))?;
        let mut input = Input::new(input, chunk);
        let done = match run.all(&mut input, &mut output, progress) {
            Ok(Progressed::Begun) => {
                let rest = Rest { input: &mut input, threads, slow };
                parts::annotate(&mut run, rest, &mut output, progress)
            }
            other => other.map(drop),
        };
        finish(run, done)
    }
}

/// The summary, also if the reader of the output went away.
fn finish(run: Run<'_>, done: Result<(), AnnotateError>) -> Result<Summary, AnnotateError> {
    let closed = match done {
        Err(AnnotateError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => true,
        other => other.map(|()| false)?,
    };
    Ok(Summary { output_closed: closed, ..run.finish() })
}
