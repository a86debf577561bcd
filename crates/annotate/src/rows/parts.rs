//! Splits an input into parts and processes them on several threads, which decode, look up and render.
//!
//! ```text
//!   this thread    reads, cuts between records ----> parts ----> workers, one for each requested thread
//!       ^                                                           |
//!       +---- empty buffers <---- writer, in the input's order <----+
//! ```
//!
//! The number of parts is fixed, which bounds memory: a thread that is ahead waits for a free part. Each part begins
//! and ends with a record, so the cuts do not affect the output. Workers count lines from the beginning of a part. The
//! writer handles the parts in the input's order: it adds the number of lines before each part, and the first fault it
//! meets is the input's first.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{ScopedJoinHandle, scope};

use super::process::{Done, Process};
use super::run::Run;
use super::work::Work;
use crate::AnnotateError;
use crate::formats::pcap::Position;
use crate::input::Input;

/// Buffers of more than so many chunks are freed instead of reused.
const LARGE: usize = 8;

/// A part of an input. Its buffers are reused.
#[derive(Default)]
struct Part {
    number: u64,
    /// A read buffer. The part is at `place`; other bytes are ignored.
    data: Vec<u8>,
    place: Range<usize>,
    /// Where the part is in the input, if the decoder needs to know it.
    position: Option<Position>,
    out: Vec<u8>,
    rows: u64,
    done: Done,
    failed: Option<AnnotateError>,
}

/// The rest of an input, which begins with a record.
pub(super) struct RemainingInput<'i, R> {
    pub(super) input: &'i mut Input<R>,
    pub(super) threads: usize,
    /// After a read of fewer bytes than this, all rows are written before the next read.
    pub(super) slow: usize,
}

/// Annotates the rest of an input.
pub(super) fn annotate<R: Read, W: Work>(
    run: &mut Run<'_, W>,
    rest: RemainingInput<'_, R>,
    output: &mut (impl Write + Send),
    progress: &mut dyn FnMut(u64),
) -> Result<(), AnnotateError> {
    let rows = AtomicU64::new(run.process.rows());
    let large = LARGE * rest.input.chunk();
    let (to_workers, parts) = channel();
    let parts = Mutex::new(parts);
    let (to_writer, processed) = channel();
    let (give_back, free) = channel();
    let (read, written) = scope(|scope| {
        let mut workers = Vec::new();
        for process in (0..rest.threads).filter_map(|_| run.process.fork()) {
            let (parts, to_writer) = (&parts, to_writer.clone());
            workers.push(scope.spawn(move || work(process, parts, &to_writer)));
        }
        drop(to_writer);
        let (rows, written) = (&rows, Written::default());
        let writer = Writer { output: &mut *output, give_back, rows, large, written };
        let writer = scope.spawn(move || writer.all(&processed));
        // Two parts for each worker, so that the next one is ready, and one each for the reader and the writer.
        let empty = (0..2 * workers.len() + 2).map(|_| Part::default()).collect();
        let rest = RemainingInput { input: &mut *rest.input, ..rest };
        let mut reader =
            Reader { rest, to_workers, free, empty, parts: 0, all: 2 * workers.len() + 2 };
        let read = reader.all(run, &mut || progress(rows.load(Ordering::Relaxed)));
        // Without a reader, the workers end when no part is left, and then the writer ends.
        drop(reader);
        let written = joined(writer);
        workers.into_iter().for_each(|worker| run.process.merge(&joined(worker)));
        (read, written)
    });
    let Written { done, bytes, failed } = written;
    let before = &run.process.done;
    let failed = failed.map(|error| error.behind(before.lines, before.bytes));
    run.process.done.extend(done);
    run.bytes_written += bytes;
    // The writer's fault is returned first, because it lies earlier in the input than the reader's.
    failed.map_or(Ok(()), Err)?;
    if let Err(end) = read {
        // A part ends where no byte behind it decides how it is read, which may be before the last complete record.
        run.complete_records(rest.input, output)?;
        return Err(match end {
            ReadEnd::TooLong => run.too_long(0),
            ReadEnd::Failed(error) => AnnotateError::Read(error),
        });
    }
    progress(run.process.rows());
    run.process.check_end()
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Processes parts until there are no more.
fn work<'r, W: Work>(
    mut process: Process<'r, W>,
    parts: &Mutex<Receiver<Part>>,
    to_writer: &Sender<Part>,
) -> Process<'r, W> {
    loop {
        let next = parts.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(mut part): Result<Part, _> = next else { return process };
        let before = process.rows();
        part.out.clear();
        let number = part.number;
        let processed = catch_unwind(AssertUnwindSafe(|| {
            let (done, result) =
                process.part(part.position.take(), &part.data[part.place.clone()], &mut part.out);
            Part { rows: process.rows() - before, done, failed: result.err(), ..part }
        }));
        let (part, panic) = match processed {
            Ok(part) => (part, None),
            // The writer must not wait for this part, nor write the parts after it.
            Err(panic) => {
                let failed = AnnotateError::File { what: "a thread ended early".to_owned() };
                (Part { number, failed: Some(failed), ..Part::default() }, Some(panic))
            }
        };
        let sent = to_writer.send(part);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        if sent.is_err() {
            return process; // the writer has met a fault
        }
    }
}

/// Cuts an input into parts.
struct Reader<'i, R> {
    rest: RemainingInput<'i, R>,
    to_workers: Sender<Part>,
    free: Receiver<Part>,
    empty: Vec<Part>,
    /// Number of parts sent to workers so far.
    parts: u64,
    /// Total number of parts.
    all: usize,
}

/// Why reading stopped.
enum ReadEnd {
    TooLong,
    Failed(std::io::Error),
}

impl<R: Read> Reader<'_, R> {
    /// Reads to the end, or until the writer has stopped.
    fn all<W: Work>(
        &mut self,
        run: &mut Run<'_, W>,
        progress: &mut dyn FnMut(),
    ) -> Result<(), ReadEnd> {
        loop {
            let data = self.rest.input.data();
            let end = self.rest.input.at_end();
            let position = run.process.position();
            let used = if end { data.len() } else { run.process.cut(data) };
            if used > 0 && self.give(used, position).is_none() {
                return Ok(());
            }
            progress();
            if end {
                return Ok(());
            }
            // With a slow input, all rows are written before the next read. This also detects a closed output.
            if self.rest.input.is_very_slow(self.rest.slow) && self.drain().is_none() {
                return Ok(());
            }
            match self.rest.input.more() {
                Ok(true) => {}
                Ok(false) => return Err(ReadEnd::TooLong),
                Err(error) => return Err(ReadEnd::Failed(error)),
            }
        }
    }

    /// Sends the first `used` bytes of the data to the workers; `None` if the writer has stopped.
    fn give(&mut self, used: usize, position: Option<Position>) -> Option<()> {
        let mut part = match self.empty.pop() {
            Some(part) => part,
            None => self.free.recv().ok()?,
        };
        (part.number, part.position) = (self.parts, position);
        part.place = self.rest.input.exchange(used, &mut part.data);
        self.parts += 1;
        self.to_workers.send(part).ok()
    }

    /// Waits until all parts are written; `None` if the writer has stopped.
    fn drain(&mut self) -> Option<()> {
        while self.empty.len() < self.all {
            self.empty.push(self.free.recv().ok()?);
        }
        Some(())
    }
}

/// Writes parts in the input's order.
struct Writer<'w, W> {
    output: &'w mut W,
    give_back: Sender<Part>,
    rows: &'w AtomicU64,
    /// Larger buffers are freed instead of reused.
    large: usize,
    written: Written,
}

/// The results of the writer.
#[derive(Default)]
struct Written {
    done: Done,
    bytes: u64,
    failed: Option<AnnotateError>,
}

impl<W: Write> Writer<'_, W> {
    /// Writes until the workers have ended, or up to the first fault.
    fn all(mut self, processed: &Receiver<Part>) -> Written {
        if let Err(error) = self.try_all(processed) {
            self.written.failed = Some(error);
        }
        self.written
    }

    fn try_all(&mut self, processed: &Receiver<Part>) -> Result<(), AnnotateError> {
        let (mut next, mut early) = (0, BTreeMap::new());
        loop {
            let part = match processed.try_recv() {
                Ok(part) => part,
                Err(TryRecvError::Empty) => {
                    self.output.flush().map_err(AnnotateError::Write)?;
                    match processed.recv() {
                        Ok(part) => part,
                        Err(_) => return Ok(()),
                    }
                }
                Err(TryRecvError::Disconnected) => break,
            };
            early.insert(part.number, part);
            while let Some(part) = early.remove(&next) {
                self.part(part)?;
                next += 1;
            }
        }
        self.output.flush().map_err(AnnotateError::Write)
    }

    fn part(&mut self, mut part: Part) -> Result<(), AnnotateError> {
        self.output.write_all(&part.out).map_err(AnnotateError::Write)?;
        let Written { done, bytes, .. } = &mut self.written;
        *bytes += part.out.len() as u64;
        if let Some(error) = part.failed.take() {
            return Err(error.behind(done.lines, done.bytes));
        }
        done.extend(std::mem::take(&mut part.done));
        self.rows.fetch_add(part.rows, Ordering::Relaxed);
        // A single large record must not leave large buffers in all parts.
        for buffer in [&mut part.data, &mut part.out] {
            if buffer.len() > self.large {
                *buffer = Vec::new();
            }
        }
        // The reader may have ended.
        let _ = self.give_back.send(part);
        Ok(())
    }
}
