//! The layer that does I/O: opens, decompresses, detects, feeds a decoder, keeps count.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use fibula_core::Update;

use crate::mmdb::MmdbDecoder;
use crate::mrt::{MrtDecoder, MrtOptions};
use crate::text::TextDecoder;
use crate::{
    Consumer, Damage, Decoder, Format, PeerInfo, PeerState, Progress, ReadError, ReadOptions,
    ReadReport, Sink, SourceInfo, SourceSpec, Stopped, Tail, compress, detect,
};

/// Bytes asked of the decompressor at a time.
const BLOCK: usize = 256 << 10;

/// Reads a source to its end, into `consumer`.
///
/// Compression and, if [`Format::Auto`], the format are told from the content. What is damaged is
/// reported to the consumer and skipped; a cut archive gives what was decoded, and damage.
///
/// ```no_run
/// use fibula_core::Update;
/// use fibula_ingest::{Consumer, Damage, ReadOptions, SourceInfo, SourceSpec};
///
/// struct Count(u64);
/// impl Consumer for Count {
///     fn begin(&mut self, info: &SourceInfo) { println!("{} is {}", info.name, info.format); }
///     fn update(&mut self, _: &Update<'_>) { self.0 += 1; }
///     fn damage(&mut self, damage: &Damage) { eprintln!("{damage}"); }
/// }
///
/// let mut count = Count(0);
/// let spec = SourceSpec::new("updates.20151023.0000.gz");
/// let report = fibula_ingest::read(&spec, &mut ReadOptions::default(), &mut count)?;
/// assert_eq!(count.0, report.updates);
/// # Ok::<(), fibula_ingest::ReadError>(())
/// ```
///
/// # Errors
/// [`ReadError`]: I/O, an unknown format, or under [`ReadOptions::strict`] the first damage.
pub fn read(
    source: &SourceSpec,
    options: &mut ReadOptions<'_>,
    consumer: &mut dyn Consumer,
) -> Result<ReadReport, ReadError> {
    let io_error = |error| ReadError::Io { file: source.name(), error };
    let stat = Stat::default();
    if source.is_stdin() {
        return drive(source, io::stdin().lock(), stat, options, consumer);
    }
    let file = File::open(&source.path).map_err(io_error)?;
    let meta = file.metadata().map_err(io_error)?;
    let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let stat = Stat {
        total: meta.is_file().then_some(meta.len()),
        modified: modified.map(|since| since.as_secs()),
    };
    drive(source, file, stat, options, consumer)
}

/// As [`read`], from any reader; `source` gives the name and the format.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    source: &SourceSpec,
    input: impl Read + 'static,
    options: &mut ReadOptions<'_>,
    consumer: &mut dyn Consumer,
) -> Result<ReadReport, ReadError> {
    drive(source, input, Stat::default(), options, consumer)
}

/// What the file system knows of a source.
#[derive(Clone, Copy, Default)]
struct Stat {
    total: Option<u64>,
    modified: Option<u64>,
}

fn drive(
    source: &SourceSpec,
    input: impl Read + 'static,
    stat: Stat,
    options: &mut ReadOptions<'_>,
    consumer: &mut dyn Consumer,
) -> Result<ReadReport, ReadError> {
    let name = source.name();
    let mut feed =
        Feed::open(input).map_err(|error| ReadError::Io { file: name.clone(), error })?;
    let format = match source.format {
        Format::Auto => detect::detect(Path::new(&source.path), feed.head())
            .ok_or_else(|| ReadError::UnknownFormat { file: name.clone() })?,
        format => format,
    };
    let mut decoder = decoder(format, options);
    let mut sink = Adapter {
        consumer,
        file: Arc::from(name.as_str()),
        modified: stat.modified,
        strict: options.strict,
        fatal: None,
        misfit: None,
        report: ReadReport::default(),
    };
    let result = pump(&mut feed, &mut *decoder, &mut sink, |records, bytes_read| {
        if let Some(progress) = &mut options.progress {
            progress(Progress { bytes_read, bytes_total: stat.total, records });
        }
    });
    if let Some(damage) = sink.fatal {
        return Err(ReadError::Damaged(damage));
    }
    if let Some(what) = sink.misfit {
        return Err(ReadError::Misfit { file: name, what });
    }
    match result {
        Err(Pump::Io(error)) => Err(ReadError::Io { file: name, error }),
        Ok(()) | Err(Pump::Stopped(Stopped)) => {
            Ok(ReadReport { records: decoder.records(), bytes: feed.offset, ..sink.report })
        }
    }
}

fn decoder(format: Format, options: &ReadOptions<'_>) -> Box<dyn Decoder> {
    match format {
        Format::Mrt => Box::new(MrtDecoder::new(MrtOptions {
            as_path: options.as_path,
            communities: options.communities,
        })),
        Format::Mmdb => Box::new(MmdbDecoder::default()),
        text => Box::new(TextDecoder::new(options.text.clone(), text)),
    }
}

enum Pump {
    Io(io::Error),
    Stopped(Stopped),
}

/// Feeds the decoder until the input ends or the sink stops it.
fn pump(
    feed: &mut Feed,
    decoder: &mut dyn Decoder,
    sink: &mut Adapter<'_>,
    mut progress: impl FnMut(u64, u64),
) -> Result<(), Pump> {
    loop {
        let (tail, trouble) = match feed.fill() {
            Ok(true) => (Tail::More, None),
            Ok(false) => (Tail::End, None),
            Err(error) => match feed.raw.failed.take() {
                // The disk or the pipe failed, not the archive.
                Some(error) => return Err(Pump::Io(error)),
                None => (Tail::Cut, Some(error)),
            },
        };
        let taken = decoder.decode(feed.pending(), tail, sink).map_err(Pump::Stopped)?;
        feed.consume(taken);
        progress(decoder.records(), feed.raw.count.get());
        if let Some(error) = trouble {
            let what = format!("the {} stream is damaged or cut short: {error}", feed.compression);
            let _ = sink.damage(&Damage::new(0, feed.offset + feed.pending().len() as u64, what));
        }
        if tail.is_last() {
            return Ok(());
        }
    }
}

/// The decompressed input and the part of it that the decoder has not consumed: `buf[start..end]`.
struct Feed {
    source: Box<dyn Read>,
    raw: Raw,
    compression: compress::Compression,
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buf[start]` in the decompressed stream.
    offset: u64,
    /// The result that ended the input, to be told again: readers need not repeat theirs.
    ended: Option<Result<(), io::Error>>,
}

impl Feed {
    fn open(input: impl Read + 'static) -> io::Result<Self> {
        let raw = Raw::default();
        let counting = Counting { input, raw: raw.clone() };
        let (compression, source) = compress::open(counting)?;
        let buf = vec![0; BLOCK];
        Ok(Self { source, raw, compression, buf, start: 0, end: 0, offset: 0, ended: None })
    }

    fn pending(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    fn consume(&mut self, bytes: usize) {
        let bytes = bytes.min(self.pending().len());
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// The beginning of the input, enough to tell the format. An error waits for [`Feed::fill`].
    fn head(&mut self) -> &[u8] {
        while self.end < detect::HEAD && self.ended.is_none() {
            let result = self.fill();
            if !matches!(result, Ok(true)) {
                self.ended = Some(result.map(drop));
            }
        }
        self.pending()
    }

    /// Reads on; `false` at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        if let Some(ended) = self.ended.take() {
            return ended.map(|()| false);
        }
        self.make_room();
        match self.source.read(&mut self.buf[self.end..]) {
            Ok(read) => {
                self.end += read;
                Ok(read > 0)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(e),
        }
    }

    fn make_room(&mut self) {
        if self.buf.len() - self.end >= BLOCK / 2 {
            return;
        }
        self.buf.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        // A decoder that consumes nothing waits for something large: grow in proportion, so that what
        // is looked at again stays linear.
        if self.buf.len() - self.end < BLOCK {
            self.buf.resize(self.end + BLOCK.max(self.end), 0);
        }
    }
}

/// What the innermost reader notes for the loop outside the decompressor.
#[derive(Clone, Default)]
struct Raw {
    count: Rc<Cell<u64>>,
    failed: Rc<RefCell<Option<io::Error>>>,
}

struct Counting<R> {
    input: R,
    raw: Raw,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buf) {
            Ok(n) => {
                self.raw.count.set(self.raw.count.get() + n as u64);
                Ok(n)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => Err(e),
            Err(e) => {
                let kind = e.kind();
                *self.raw.failed.borrow_mut() = Some(e);
                Err(kind.into())
            }
        }
    }
}

/// Names the file in what the decoder says, counts, and stops it if strict.
struct Adapter<'a> {
    consumer: &'a mut dyn Consumer,
    file: Arc<str>,
    modified: Option<u64>,
    strict: bool,
    fatal: Option<Damage>,
    misfit: Option<String>,
    report: ReadReport,
}

impl Sink for Adapter<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        self.report.format = info.format;
        let date = info.date.or(self.modified);
        self.consumer.begin(&SourceInfo { name: self.file.to_string(), date, ..info.clone() });
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        self.consumer.peer(index, peer);
    }
    fn peer_state(&mut self, state: &PeerState) {
        if state.is_down() {
            self.consumer.peer_down(state.peer, state.time);
        }
    }
    fn update(&mut self, update: &Update<'_>) {
        self.report.updates += 1;
        self.consumer.update(update);
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        let damage = Damage { file: self.file.clone(), ..damage.clone() };
        self.report.damaged += 1;
        if self.strict {
            self.fatal.get_or_insert(damage);
            return ControlFlow::Break(());
        }
        self.consumer.damage(&damage);
        ControlFlow::Continue(())
    }
    fn misfit(&mut self, what: String) {
        self.misfit = Some(what);
    }
    fn ignored(&mut self, what: &'static str) {
        match self.report.ignored.iter_mut().find(|(name, _)| *name == what) {
            Some((_, count)) => *count += 1,
            None => self.report.ignored.push((what, 1)),
        }
    }
}
