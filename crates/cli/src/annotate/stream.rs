//! `fibula annotate --stream`: a filter between two programs, with a table that may be replaced meanwhile.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fibula::sources::WatchedSources;
use fibula_annotate::{
    AnnotateError, LookupTable, StreamHost, StreamOptions, Summary, annotate_stream,
};
use fibula_core::grouped;
use fibula_fib::Fib;

use super::Args;
use super::failed::failure;
use super::inputs::Job;
use super::tables::Tables;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::progress::{note, silence};

/// Annotates standard input until it ends, or until the process is asked to end.
pub fn run(args: &Args, stream: &StreamOptions) -> Result<Outcome, Failure> {
    if args.quiet {
        silence();
    }
    let sources = args.sources()?;
    let stopped = Rc::new(Cell::new(false));
    let input = StandardInput::new(Rc::clone(&stopped))?;
    let files = WatchedSources::all(&sources);
    let mut host =
        Host { args, fib: open(args)?, old: None, files, stopped, has_failed: false, renewals: 0 };
    let mut out = Output::create(Path::new("-"))?;
    let table = Arc::new(host.fib.clone());
    let done = annotate_stream(table, &args.options(), stream, input, &mut out, &mut host);
    let job =
        Job { input: PathBuf::from("standard input"), output: PathBuf::from("standard output") };
    let summary = done.map_err(|error| failure(&job, &error))?;
    if summary.output_closed {
        return Err(Failure::output_closed());
    }
    host.fib.unchanged()?;
    out.finish()?;
    report(&summary, host.renewals);
    Ok(Outcome::Done)
}

/// The table of the command line.
fn open(args: &Args) -> Result<Fib, Failure> {
    match Tables::open(args)? {
        Tables::One(fib) => Ok(fib),
        Tables::Dated(_) | Tables::OnDevice(_) => {
            Err(Failure::new("a stream has one table, without dates and on the CPU"))
        }
    }
}

/// Prints the counts: one line if all cells were addresses.
fn report(summary: &Summary, renewals: u64) {
    let tables = match renewals {
        0 => String::new(),
        1 => ", 1 new table".to_owned(),
        more => format!(", {} new tables", grouped(more)),
    };
    note(format_args!(
        "{} rows, {} addresses, {} matched{tables}",
        grouped(summary.rows),
        grouped(summary.addresses),
        grouped(summary.matched)
    ));
    for (count, what, first) in [
        (summary.unparsable, "cells with text that is not an address", &summary.first_unparsable),
        (summary.empty, "cells without an address", &None),
        (summary.damaged, "damaged records", &summary.first_damaged),
    ] {
        if count > 0 {
            note(format_args!("{} {what}", grouped(count)));
            if let Some(first) = first {
                note(format_args!("  the first: {first}"));
            }
        }
    }
}

/// Opens the table again when one of its files is replaced.
struct Host<'a> {
    args: &'a Args,
    fib: Fib,
    /// The table before `fib`, until a new one is taken.
    old: Option<Fib>,
    files: WatchedSources,
    stopped: Rc<Cell<bool>>,
    /// Whether the last replacement could not be used. Only the first of several failures is reported, because a file
    /// that is being written may fail at each block.
    has_failed: bool,
    renewals: u64,
}

impl Host<'_> {
    fn keep(&mut self, why: &dyn std::fmt::Display) {
        if !std::mem::replace(&mut self.has_failed, true) {
            note(format_args!("the new table is not used, the old one stays: {why}"));
        }
    }
}

impl StreamHost for Host<'_> {
    fn renewed(&mut self) -> Option<Arc<dyn LookupTable>> {
        if !self.files.are_new() {
            return None;
        }
        match open(self.args) {
            Ok(fib) => {
                self.old = Some(std::mem::replace(&mut self.fib, fib.clone()));
                self.has_failed = false;
                self.renewals += 1;
                Some(Arc::new(fib))
            }
            Err(failure) => {
                self.keep(&failure);
                None
            }
        }
    }

    fn refused(&mut self, error: &AnnotateError) {
        self.renewals -= 1;
        if let Some(old) = self.old.take() {
            self.fib = old;
        }
        self.keep(error);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.get()
    }
}

/// Standard input, which ends when the process is asked to end.
struct StandardInput {
    #[cfg(unix)]
    wake: std::os::unix::net::UnixStream,
    #[cfg_attr(not(unix), expect(dead_code, reason = "signals end the process there"))]
    stopped: Rc<Cell<bool>>,
}

#[cfg(unix)]
impl StandardInput {
    fn new(stopped: Rc<Cell<bool>>) -> Result<Self, Failure> {
        Ok(Self { wake: crate::signals::wake()?, stopped })
    }
}

#[cfg(unix)]
impl Read for StandardInput {
    /// Reads what is there, and waits if nothing is.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, poll};
        let input = rustix::stdio::stdin();
        loop {
            let mut ready =
                [PollFd::new(&input, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(rustix::io::Errno::INTR) => continue,
                done => done?,
            };
            if !ready[1].revents().is_empty() {
                self.stopped.set(true);
                return Ok(0);
            }
            if !ready[0].revents().is_empty() {
                return Ok(rustix::io::read(input, into)?);
            }
        }
    }
}

#[cfg(not(unix))]
impl StandardInput {
    fn new(stopped: Rc<Cell<bool>>) -> Result<Self, Failure> {
        Ok(Self { stopped })
    }
}

#[cfg(not(unix))]
impl Read for StandardInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        io::stdin().lock().read(into)
    }
}
