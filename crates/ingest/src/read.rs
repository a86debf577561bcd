//! The I/O layer: opens files, decompresses, detects the format, feeds the decoder and counts.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use fibula_core::{Update, Vrf};

use crate::bgp::BgpOptions;
use crate::bmp::BmpDecoder;
use crate::columnar::{ColumnarFeed, ColumnarStop};
use crate::detect::Detected;
use crate::fpm::FpmDecoder;
use crate::json::JsonDecoder;
use crate::mmdb::MmdbDecoder;
use crate::mrt::MrtDecoder;
use crate::ris::RisDecoder;
use crate::text::TextDecoder;
use crate::whole::unpacks_too_far;
use crate::{
    ColumnarInput, Compression, Damage, Decoder, DriveError, Driver, Format, PeerInfo, PeerState,
    PullResult, ReadError, ReadOptions, ReadProgress, ReadReport, Sink, SourceInfo, SourceSpec,
    StopReason, Tail, compress, container, detect, driver, lines,
};

/// Bytes that may wait for the end of their record; no record of text or MRT is as long.
const LONGEST_RECORD: usize = 64 << 20;
/// mmdb and JSON are read as a whole; pointers of mmdb have 32 bits.
const LONGEST_FILE: u64 = 4 << 30;
/// Bytes at the end of an mmdb file that have the beginning of its metadata, and the mark of that.
const MMDB_TAIL: u64 = 128 << 10;
const MMDB_MARK: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// Arrow files begin so, streams do not.
const ARROW_FILE: &[u8] = b"ARROW1";

/// Reads a source to its end, and passes it to `sink`.
///
/// The compression and, with [`Format::Auto`], the format are detected from the content. Damaged parts are reported
/// to the sink and skipped. The call waits while the source has no data (a pipe that would block, a socket that timed
/// out). After an error, the sink may have received some of the routes.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// use fibula_core::{Update, Vrf};
/// use fibula_ingest::{Damage, ReadOptions, Sink, SourceInfo, SourceSpec};
///
/// struct Count(u64);
/// impl Sink for Count {
///     fn begin(&mut self, info: &SourceInfo) { println!("{} is {}", info.name, info.format); }
///     fn update(&mut self, _: &Update<'_>) { self.0 += 1; }
///     fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
///         eprintln!("{damage}");
///         ControlFlow::Continue(())
///     }
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
/// [`ReadError`]: I/O, a file that is written while it is read, an unknown format, a damaged or truncated archive
/// ([`ReadOptions::salvage`]), a source without routes or one most of which is damaged ([`ReadOptions::allow_empty`]),
/// or with [`ReadOptions::strict`] the first damage.
pub fn read(
    source: &SourceSpec,
    options: &mut ReadOptions<'_>,
    sink: &mut dyn Sink,
) -> Result<ReadReport, ReadError> {
    let io_error = |error| ReadError::Io { file: source.name(), error };
    let stat = Stat::default();
    if source.is_stdin() {
        return drive(source, io::stdin().lock(), stat, options, sink);
    }
    let mut file = File::open(&source.path).map_err(io_error)?;
    let meta = file.metadata().map_err(io_error)?;
    let modified = meta.modified().ok().and_then(|t| t.duration_since(UNIX_EPOCH).ok());
    let stat = Stat {
        // Parquet and Arrow files are read from their ends.
        file: if meta.is_file() { Some(file.try_clone().map_err(io_error)?) } else { None },
        total: meta.is_file().then_some(meta.len()),
        modified: modified.map(|since| since.as_secs()),
        has_no_mmdb_mark: match meta.is_file() {
            true => has_no_mmdb_mark(&mut file, meta.len()).map_err(io_error)?,
            false => false,
        },
    };
    let same = file.try_clone().map_err(io_error)?;
    let report = drive(source, file, stat, options, sink)?;
    // Two writings in one tick of the file system's clock look alike.
    let now = same.metadata().map_err(io_error)?;
    let is_changed = (now.len(), now.modified().ok()) != (meta.len(), meta.modified().ok());
    match meta.is_file() && is_changed {
        true => Err(io_error(io::Error::other(
            "it changed while it was read: read it again when it is complete, or put the new one in its place by \
             renaming",
        ))),
        false => Ok(report),
    }
}

/// Like [`read`], from any reader; `source` has the name and the format.
///
/// # Errors
/// The errors of [`read`].
pub fn read_from(
    source: &SourceSpec,
    input: impl Read + 'static,
    options: &mut ReadOptions<'_>,
    sink: &mut dyn Sink,
) -> Result<ReadReport, ReadError> {
    drive(source, input, Stat::default(), options, sink)
}

/// The file system's data about a source.
#[derive(Default)]
struct Stat {
    /// The file, if it is a regular one.
    file: Option<File>,
    total: Option<u64>,
    modified: Option<u64>,
    /// The file is longer than most, and its end is not that of an mmdb file.
    has_no_mmdb_mark: bool,
}

/// Whether the end of a file is not that of an mmdb file. Not looked at in files that are read in no time.
fn has_no_mmdb_mark(file: &mut File, len: u64) -> io::Result<bool> {
    if len <= LONGEST_RECORD as u64 {
        return Ok(false);
    }
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(len - MMDB_TAIL))?;
    file.take(MMDB_TAIL).read_to_end(&mut tail)?;
    file.rewind()?;
    Ok(!tail.windows(MMDB_MARK.len()).any(|window| window == MMDB_MARK))
}

fn drive(
    source: &SourceSpec,
    input: impl Read + 'static,
    stat: Stat,
    options: &mut ReadOptions<'_>,
    sink: &mut dyn Sink,
) -> Result<ReadReport, ReadError> {
    let name = source.name();
    let io_error = |error| ReadError::Io { file: name.clone(), error };
    let mut input = Input::open(input).map_err(io_error)?;
    let format = match source.format {
        Format::Auto => match detect::detect(Path::new(&source.path), &input.head) {
            Detected::Format(format) => format,
            Detected::NoTable(what) => return Err(ReadError::NoTable { file: name, what }),
        },
        format => format,
    };
    if options.only_updates && !format.has_updates() {
        return Err(ReadError::NoUpdates { file: name, format });
    }
    if matches!(format, Format::Parquet | Format::Arrow) {
        return columnar(name, format, input, stat, options, sink);
    }
    let is_whole = matches!(format, Format::Mmdb | Format::Json);
    let limit = match is_whole {
        true => usize::try_from(LONGEST_FILE).unwrap_or(usize::MAX),
        false => LONGEST_RECORD,
    };
    if is_whole && stat.total.is_some_and(|total| total > LONGEST_FILE) {
        let what = "it has more than 4 GiB, more than any file of this format";
        return Err(ReadError::NoTable { file: name, what: what.into() });
    }
    if format == Format::Mmdb && stat.has_no_mmdb_mark && input.compression == Compression::None {
        let what =
            "no MaxMind database: its end has no metadata; perhaps the download was cut short";
        return Err(ReadError::NoTable { file: name, what: what.into() });
    }
    let mut driver = Driver::new(decoder(format, options), limit);
    let mut sink = Named::new(sink, &name, &stat, options.strict);
    let salvage = options.salvage;
    let result = pump(&mut input, &mut driver, &mut sink, salvage, |records, bytes_read| {
        if let Some(progress) = &mut options.progress {
            progress(ReadProgress { bytes_read, bytes_total: stat.total, records });
        }
    });
    if let Some(damage) = sink.fatal {
        return Err(ReadError::Damaged(damage));
    }
    match result {
        Ok(None) => {
            let (records, bytes) = (driver.records(), driver.offset());
            let report = ReadReport { records, bytes, ..sink.report };
            match options.allow_empty {
                true => Ok(report),
                false => check(report, sink.first, name),
            }
        }
        Ok(Some(error)) => {
            let (compression, offset) = (input.compression, driver.offset());
            Err(ReadError::Archive { file: name, compression, offset, error })
        }
        Err(DriveError::Io(error)) => Err(io_error(error)),
        Err(error @ DriveError::Stopped(StopReason::BySink)) => {
            Err(io_error(io::Error::other(error.to_string())))
        }
        Err(DriveError::Stopped(StopReason::Misfit(what))) => {
            Err(ReadError::Misfit { file: name, what })
        }
        Err(error @ DriveError::TooLong { .. }) => {
            let what = match is_whole {
                true => format!("the archive unpacks to more bytes than any {format} file has"),
                false => error.to_string(),
            };
            let damage = Damage::new(driver.records() + 1, driver.offset(), what);
            Err(ReadError::Damaged(Damage { file: sink.file, ..damage }))
        }
    }
}

/// Reads a table of Parquet or Arrow.
fn columnar(
    file: String,
    format: Format,
    input: Input,
    stat: Stat,
    options: &mut ReadOptions<'_>,
    sink: &mut dyn Sink,
) -> Result<ReadReport, ReadError> {
    let ReadOptions { columnar, text, progress, .. } = options;
    let mut sink = Named::new(sink, &file, &stat, options.strict);
    let refused = |what: String| ReadError::NoTable { file: file.clone(), what: what.into() };
    let Some(read) = columnar else {
        return Err(refused(format!("this is {}", container(&input.head).unwrap_or("no text"))));
    };
    let is_stream = format == Format::Arrow && !input.head.starts_with(ARROW_FILE);
    let own = stat.file.filter(|_| input.compression == Compression::None);
    let input = match (format, own) {
        _ if is_stream => ColumnarInput::ArrowStream(Box::new(input)),
        (Format::Parquet, Some(file)) => ColumnarInput::Parquet(file),
        (_, Some(file)) => ColumnarInput::ArrowFile(file),
        (_, None) => {
            return Err(refused(
                "Parquet and Arrow files are read from their end: name the file itself, not a pipe or an archive of it"
                    .to_owned(),
            ));
        }
    };
    let mut feed = ColumnarFeed::new(format.name(), text);
    let mut stop = None;
    let read = read(input, &mut |cells| {
        stop = feed.batch(cells, &mut sink).err();
        if let Some(progress) = progress {
            let (bytes_read, bytes_total, records) = (0, stat.total, feed.records);
            progress(ReadProgress { bytes_read, bytes_total, records });
        }
        stop.is_none()
    });
    match (stop, sink.fatal) {
        (_, Some(damage)) => return Err(ReadError::Damaged(damage)),
        (Some(ColumnarStop::Misfit(what)), _) => return Err(ReadError::Misfit { file, what }),
        (Some(ColumnarStop::BySink), _) => {
            let error = io::Error::other(StopReason::BySink.to_string());
            return Err(ReadError::Io { file, error });
        }
        (None, None) => read.map_err(refused)?,
    }
    let report = ReadReport { records: feed.records, ..sink.report };
    match options.allow_empty {
        true => Ok(report),
        false => check(report, sink.first, file),
    }
}

fn decoder(format: Format, options: &ReadOptions<'_>) -> Box<dyn Decoder> {
    let ReadOptions { as_path, communities, extended_communities, .. } = *options;
    let bgp = BgpOptions { as_path, communities, extended_communities };
    match format {
        Format::Mrt => Box::new(MrtDecoder::new(bgp)),
        Format::Bmp => Box::new(BmpDecoder::new(bgp)),
        Format::Ris => Box::new(RisDecoder::new(bgp)),
        Format::Mmdb => Box::new(MmdbDecoder::default()),
        Format::Fpm => Box::new(FpmDecoder::default()),
        Format::Json => Box::new(JsonDecoder::new(options.text.host_bits)),
        other => lines::decoder(other, options.all_paths)
            .unwrap_or_else(|| Box::new(TextDecoder::new(options.text.clone(), other))),
    }
}

/// Whether the input was a table, rather than an empty download or a file of another kind.
fn check(report: ReadReport, first: Option<Damage>, file: String) -> Result<ReadReport, ReadError> {
    let ReadReport { records, updates, damaged, .. } = report;
    // A record of MRT, BMP or RIS Live need not be about a route; blank lines and comments of a text count as records.
    let is_mrt = matches!(report.format, "mrt" | "bmp" | "ris" | "bgpdump");
    let is_damaged = damaged > records / 2 || (damaged > updates && !is_mrt);
    match first {
        Some(first) if is_damaged => Err(ReadError::MostlyDamaged { damaged, records, first }),
        _ if updates == 0 && !(is_mrt && records > 0) => Err(ReadError::Empty { file }),
        _ => Ok(report),
    }
}

/// Drives the decoder until the input ends or the sink stops it. Gives what is wrong with the archive
/// around the input, if that was not to be salvaged.
fn pump(
    input: &mut Input,
    driver: &mut Driver,
    sink: &mut Named<'_>,
    salvage: bool,
    mut progress: impl FnMut(u64, u64),
) -> Result<Option<io::Error>, DriveError> {
    let trouble = loop {
        match driver.pull(input, sink) {
            Ok(PullResult::Bytes(_)) => {
                let (bytes, raw) = (driver.pending().len(), input.raw.count.get());
                if unpacks_too_far(bytes as u64, raw) {
                    return Err(DriveError::TooLong { bytes });
                }
                progress(driver.records(), raw);
            }
            Ok(PullResult::Paused) => {}
            Ok(PullResult::End) => break None,
            Err(DriveError::Io(error)) => match input.raw.failed.take() {
                // The disk or the pipe failed, not the archive.
                Some(error) => return Err(DriveError::Io(error)),
                None if salvage => break Some(error),
                None => return Ok(Some(error)),
            },
            Err(error) => return Err(error),
        }
    };
    driver.finish(if trouble.is_some() { Tail::Cut } else { Tail::End }, sink)?;
    progress(driver.records(), input.raw.count.get());
    if let Some(error) = trouble {
        let what = format!("the {} stream is damaged or cut short: {error}", input.compression);
        let _ = sink.damage(&Damage::new(0, driver.offset(), what));
    }
    Ok(None)
}

/// A decompressed input whose beginning was looked at.
struct Input {
    raw: Raw,
    compression: Compression,
    /// The beginning, which is enough to detect the format; `at` bytes of it were read again.
    head: Vec<u8>,
    at: usize,
    /// The error in the beginning, to be reported at its position, because readers need not repeat errors.
    error: Option<io::Error>,
    rest: Box<dyn Read>,
}

impl Input {
    fn open(input: impl Read + 'static) -> io::Result<Self> {
        let raw = Raw::default();
        let patient = Patient { input, raw: raw.clone() };
        let (compression, mut rest) = compress::open(patient)?;
        let mut head = Vec::new();
        let error = (&mut rest).take(detect::HEAD as u64).read_to_end(&mut head).err();
        Ok(Self { raw, compression, head, at: 0, error, rest })
    }
}

impl Read for Input {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at < self.head.len() {
            let read = (&self.head[self.at..]).read(buf)?;
            self.at += read;
            return Ok(read);
        }
        self.error.take().map_or_else(|| self.rest.read(buf), Err)
    }
}

/// The state that the innermost reader passes to the loop outside the decompressor.
#[derive(Clone, Default)]
struct Raw {
    count: Rc<Cell<u64>>,
    failed: Rc<RefCell<Option<io::Error>>>,
}

/// Waits while its reader has nothing to give: decompressors cannot go on after a pause in the middle
/// of a block.
struct Patient<R> {
    input: R,
    raw: Raw,
}

impl<R: Read> Read for Patient<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        const LONGEST: Duration = Duration::from_millis(50);
        let mut pause = Duration::from_millis(1);
        loop {
            match self.input.read(buf) {
                Ok(n) => {
                    self.raw.count.set(self.raw.count.get() + n as u64);
                    return Ok(n);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if driver::is_pause(&error) => {
                    thread::sleep(pause);
                    pause = LONGEST.min(pause * 2);
                }
                Err(error) => {
                    let kind = error.kind();
                    *self.raw.failed.borrow_mut() = Some(error);
                    return Err(kind.into());
                }
            }
        }
    }
}

/// Adds the file's name to the decoder's reports, counts them, and stops the decoder if strict.
struct Named<'a> {
    sink: &'a mut dyn Sink,
    file: Arc<str>,
    modified: Option<u64>,
    strict: bool,
    fatal: Option<Damage>,
    first: Option<Damage>,
    report: ReadReport,
}

impl<'a> Named<'a> {
    fn new(sink: &'a mut dyn Sink, file: &str, stat: &Stat, strict: bool) -> Self {
        let (file, modified, report) = (file.into(), stat.modified, ReadReport::default());
        Self { sink, file, modified, strict, fatal: None, first: None, report }
    }
}

impl Sink for Named<'_> {
    fn begin(&mut self, info: &SourceInfo) {
        self.report.format = info.format;
        let date = info.date.or(self.modified);
        self.sink.begin(&SourceInfo { name: self.file.to_string(), date, ..info.clone() });
    }
    fn peer(&mut self, index: u32, peer: &PeerInfo) {
        self.sink.peer(index, peer);
    }
    fn vrf(&mut self, index: Vrf, name: &str) {
        self.sink.vrf(index, name);
    }
    fn remark(&mut self, key: &'static str, value: &str) {
        if key == "column" {
            self.report.remarks.push(value.to_owned());
        }
        self.sink.remark(key, value);
    }
    fn record(&mut self, record: u64, takes: bool) {
        self.sink.record(record, takes);
    }
    fn peer_state(&mut self, state: &PeerState) {
        self.sink.peer_state(state);
    }
    fn update(&mut self, update: &Update<'_>) {
        self.report.updates += 1;
        self.sink.update(update);
    }
    fn end_of_rib(&mut self, peer: u32) {
        self.sink.end_of_rib(peer);
    }
    fn damage(&mut self, damage: &Damage) -> ControlFlow<()> {
        let damage = Damage { file: self.file.clone(), ..damage.clone() };
        self.report.damaged += 1;
        if self.first.is_none() {
            self.first = Some(damage.clone());
        }
        if self.strict || self.sink.damage(&damage).is_break() {
            self.fatal.get_or_insert(damage);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
    fn ignored(&mut self, what: &'static str) {
        count(&mut self.report.ignored, what);
        self.sink.ignored(what);
    }
    fn noted(&mut self, what: &'static str) {
        count(&mut self.report.noted, what);
        self.sink.noted(what);
    }
}

fn count(counts: &mut Vec<(&'static str, u64)>, what: &'static str) {
    match counts.iter_mut().find(|(name, _)| *name == what) {
        Some((_, count)) => *count += 1,
        None => counts.push((what, 1)),
    }
}
