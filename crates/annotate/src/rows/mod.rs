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
//! `run` reads, passes each block from stage to stage, writes, and knows the lines.

mod count;
mod emit;
mod lists;
mod lookup;
mod render;
mod run;

use std::io::{ErrorKind, Read, Write};

use self::run::Run;
use crate::added::Addition;
use crate::clock::Clock;
use crate::formats::decoder;
use crate::input::Input;
use crate::{AnnotateError, AnnotateOptions, LogFormat, LookupTable, Summary};

/// Annotates text and captures with what a table says about their addresses.
pub struct Annotator {
    table: Box<dyn LookupTable>,
    format: LogFormat,
    options: AnnotateOptions,
    additions: Vec<Addition>,
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
        Ok(Self { table, format, options: options.clone(), additions })
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
        let mut run = Run::new(self)?;
        let closed = match run.all(&mut Input::new(input), &mut output, progress) {
            Err(AnnotateError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => true,
            other => other.map(|()| false)?,
        };
        Ok(Summary { output_closed: closed, ..run.finish() })
    }
}
