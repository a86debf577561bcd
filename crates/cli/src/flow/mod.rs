//! `fibula flow`: a collector of flows.

mod args;
mod opened;
mod report;

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula::sources::WatchedSources;
use fibula_collect::{CollectError, Collector};

pub use self::args::Args;
use self::opened::Opened;
use crate::failure::{Failure, Outcome};
use crate::progress::{note, silence};
use crate::same;
use crate::signals::{self, Asked};
use crate::source;

/// How often is looked whether tables were replaced.
const TICK: Duration = Duration::from_secs(1);
/// How often templates are saved.
const SAVE: Duration = Duration::from_secs(60);
/// How often metrics are written.
const METRICS: Duration = Duration::from_secs(10);

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    if args.quiet {
        silence();
    }
    let options = args.collect()?;
    let read = args.read.read();
    args.rpki.check(false, &args.layer)?;
    let mut sources = args.tables(&read).sources()?;
    for tables in args.vrfs()?.iter().map(|(_, tables)| tables).chain(args.own().iter()) {
        sources.extend(source::tables(tables, &read)?);
    }
    for output in options.templates.iter().chain(&args.metrics) {
        same::refuse_tables(&sources, output)?;
        args.rpki.refuse(output)?;
    }
    let signals = signals::asked()?;
    let mut watched = WatchedSources::all(&sources);
    let mut table = Opened::new(args)?;
    let collector = Collector::start(options, Some(Arc::clone(&table.prepared)))?;
    for address in collector.addresses() {
        note(format_args!("receiving at {address}"));
    }
    // Now, rather than in a minute, it is clear whether these files can be written.
    collector.save_templates()?;
    if let Some(file) = &args.metrics {
        report::write_metrics(&collector.counts(), file)?;
    }
    let buffer = collector.receive_buffer();
    if buffer < args.receive_buffer() {
        note(format_args!(
            "the system keeps {buffer} bytes for each socket: raise net.core.rmem_max, or set --receive-buffer"
        ));
    }
    let mut saved = Timer::new(SAVE);
    let mut metrics = Timer::new(METRICS);
    let mut reported = Timer::new(args.report);
    let mut has_failed = false;
    while collector.is_running() {
        let asked = wait(&signals, TICK)?;
        if asked == Some(Asked::Stop) {
            break;
        }
        if watched.are_new() || asked == Some(Asked::Reload) {
            match Opened::new(args) {
                Ok(new) => {
                    collector.replace(Some(Arc::clone(&new.prepared)));
                    table = new;
                    has_failed = false;
                    note("the new table is used");
                }
                // A file that is being written may fail at each look.
                Err(failure) if !std::mem::replace(&mut has_failed, true) => {
                    note(format_args!("the new table is not used, the old one stays: {failure}"));
                }
                Err(_) => {}
            }
        }
        if saved.is_due()
            && let Err(error) = collector.save_templates()
        {
            note(format_args!("templates are not saved: {error}"));
        }
        if let Some(file) = args.metrics.as_ref().filter(|_| metrics.is_due())
            && let Err(failure) = report::write_metrics(&collector.counts(), file)
        {
            note(format_args!("metrics are not written: {failure}"));
        }
        if reported.is_due() {
            report::line(&collector.counts());
        }
    }
    // The system's count ends with the sockets.
    let dropped_by_system = collector.counts().dropped_by_system;
    let done = collector.stop();
    table.unchanged()?;
    let mut counts = match done {
        Err(error) if error.is_closed_output() => return Err(Failure::output_closed()),
        done => done?,
    };
    counts.dropped_by_system = dropped_by_system;
    if let Some(file) = &args.metrics {
        report::write_metrics(&counts, file)?;
    }
    if args.json {
        report::json(&counts)
    } else {
        report::summary(&counts)
    }
    Ok(Outcome::Done)
}

impl From<CollectError> for Failure {
    fn from(error: CollectError) -> Self {
        let failure = Self::new(&error);
        match error {
            CollectError::Listen { .. } => {
                failure.hint("another program may listen there: ss -lunp shows it")
            }
            CollectError::Annotate(fibula_annotate::AnnotateError::UnknownValue { .. }) => {
                failure.hint("--add takes prefix and these names")
            }
            CollectError::Annotate(fibula_annotate::AnnotateError::SameName { .. }) => failure.hint(
                "leave the column out with --add, or name the table: --layer NAME=TABLE calls it src_NAME_...",
            ),
            CollectError::Write { ref path, .. } if path != Path::new("-") => {
                failure.hint("the files written before are complete; the last one's rows are lost")
            }
            _ => failure,
        }
    }
}

/// Something that is done again and again.
struct Timer {
    every: Duration,
    last: Instant,
}

impl Timer {
    fn new(every: Duration) -> Self {
        Self { every, last: Instant::now() }
    }

    /// Whether it is to be done now. Never if the time is zero.
    fn is_due(&mut self) -> bool {
        let is_due = !self.every.is_zero() && self.last.elapsed() >= self.every;
        if is_due {
            self.last = Instant::now();
        }
        is_due
    }
}

/// Waits for a signal, no longer than this.
fn wait(signals: &[(Asked, UnixStream); 2], time: Duration) -> Result<Option<Asked>, Failure> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut ready = [0, 1].map(|at| PollFd::new(&signals[at].1, PollFlags::IN));
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: time.subsec_nanos().into() };
    match poll(&mut ready, Some(&time)) {
        Err(rustix::io::Errno::INTR) => return Ok(None),
        done => done.map_err(|error| Failure::io("cannot wait for signals", &error.into()))?,
    };
    let is_ready = ready.map(|ready| !ready.revents().is_empty());
    let Some((asked, stream)) =
        signals.iter().zip(is_ready).find(|(_, ready)| *ready).map(|(s, _)| s)
    else {
        return Ok(None);
    };
    let mut bytes = [0; 16];
    std::io::Read::read(&mut &*stream, &mut bytes)?;
    Ok(Some(*asked))
}
