//! Files of flows, one after the other. A file appears under its name when it is complete.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::SchemaRef;
use fibula_rib::{AtomicFile, Moment};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};

use crate::rows::{binary_head, binary_rows, json_lines};
use crate::sync::{Mutex, lock};
use crate::{CollectError, FlowFormat, FlowOutput, FlowPartition, FlowPlace};

/// Rows of a row group of Parquet.
const GROUP: usize = 1 << 18;
/// Columns of texts that have no dictionary: those of many values, and two of one or a few in runs, which compress as
/// well without.
const TEXTS: [&str; 6] = ["exporter", "export", "src", "dst", "nat_src", "nat_dst"];
/// Columns of numbers with many values.
const NUMBERS: [&str; 11] = [
    "time",
    "first",
    "last",
    "src_port",
    "dst_port",
    "packets",
    "bytes",
    "nat_src_port",
    "nat_dst_port",
    "reverse_packets",
    "reverse_bytes",
];

/// Standard output, which several threads share.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// The columns that were announced, for RowBinary.
    schema: Mutex<Option<SchemaRef>>,
}

/// What was written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) files: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) rows: AtomicU64,
}

/// The files of one thread.
pub(crate) struct FlowFiles {
    output: FlowOutput,
    stream: Arc<Stream>,
    written: Arc<Written>,
    /// The number of the thread, which is in the names of its files.
    number: usize,
    open: Option<OpenFile>,
    rendered: Vec<u8>,
}

struct OpenFile {
    writer: Box<FileFormat>,
    schema: SchemaRef,
    path: PathBuf,
    rows: u64,
    /// When the next file begins, in microseconds since 1970.
    until: u64,
}

/// Counts the bytes.
struct Counting<W> {
    inner: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

type Out = Counting<BufWriter<AtomicFile>>;

enum FileFormat {
    Parquet(ArrowWriter<Out>),
    Arrow(FileWriter<Out>),
    JsonLines(Out),
    RowBinary(Out),
}

impl FlowFiles {
    pub(crate) fn new(
        output: FlowOutput,
        stream: Arc<Stream>,
        written: Arc<Written>,
        number: usize,
    ) -> Self {
        Self { output, stream, written, number, open: None, rendered: Vec::new() }
    }

    /// When the file that is open ends, in microseconds since 1970.
    pub(crate) fn until(&self) -> Option<u64> {
        self.open.as_ref().map(|open| open.until)
    }

    /// Writes a batch whose rows were received at `time` or, within the same file's time, before.
    pub(crate) fn write(&mut self, batch: &RecordBatch, time: u64) -> Result<(), CollectError> {
        let rows = batch.num_rows() as u64;
        let folder = match &self.output.place {
            FlowPlace::Folder(folder) => folder.clone(),
            FlowPlace::StandardOutput => {
                self.print(batch).map_err(|error| CollectError::write(Path::new("-"), error))?;
                self.written.rows.fetch_add(rows, Ordering::Relaxed);
                return Ok(());
            }
            FlowPlace::Nowhere => return Ok(()),
        };
        let other = |open: &OpenFile| time >= open.until || open.schema != batch.schema();
        if self.open.as_ref().is_some_and(other) {
            self.finish()?;
        }
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(&folder, batch.schema(), time)?,
        };
        let (path, rendered) = (open.path.clone(), &mut self.rendered);
        open.writer.write(batch, rendered).map_err(|error| CollectError::write(&path, error))?;
        open.rows += rows;
        self.written.rows.fetch_add(rows, Ordering::Relaxed);
        let is_full = open.writer.len() >= self.output.rotate_bytes;
        self.open = Some(open);
        if is_full { self.finish() } else { Ok(()) }
    }

    /// Completes the file that is open.
    pub(crate) fn finish(&mut self) -> Result<(), CollectError> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let bytes = open.writer.finish().map_err(|error| CollectError::write(&open.path, error))?;
        self.written.files.fetch_add(1, Ordering::Relaxed);
        self.written.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn begin(&self, folder: &Path, schema: SchemaRef, time: u64) -> Result<OpenFile, CollectError> {
        let folder = folder.join(partition(self.output.partition, time));
        let failed = |error| CollectError::write(&folder, error);
        fs::create_dir_all(&folder).map_err(failed)?;
        let ending = self.output.format.name();
        let (stamp, number) = (stamp(time), self.number);
        let mut names = (0..).map(|again| match again {
            0 => format!("flows-{stamp}-{number}.{ending}"),
            _ => format!("flows-{stamp}-{number}-{again}.{ending}"),
        });
        let path = loop {
            // A file that is there, of an earlier run or full, is never replaced.
            match names.next().map(|name| folder.join(name)) {
                Some(path) if fs::symlink_metadata(&path).is_err() => break path,
                _ => {}
            }
        };
        let failed = |error| CollectError::write(&path, error);
        let file = AtomicFile::create(&path).map_err(failed)?;
        let out = Counting { inner: BufWriter::with_capacity(256 << 10, file), bytes: 0 };
        let writer = Box::new(FileFormat::new(self.output.format, out, &schema).map_err(failed)?);
        let rotate = u64::try_from(self.output.rotate.as_micros()).unwrap_or(u64::MAX).max(1);
        let until = (time / rotate).saturating_add(1).saturating_mul(rotate);
        Ok(OpenFile { writer, schema, path, rows: 0, until })
    }

    /// Writes the rows to standard output, in one piece.
    fn print(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let out = &mut self.rendered;
        out.clear();
        let mut announced = lock(&self.stream.schema);
        if self.output.format == FlowFormat::RowBinary {
            match &*announced {
                None => binary_head(batch.schema_ref(), out).map_err(io::Error::other)?,
                Some(schema) if *schema == batch.schema() => {}
                Some(_) => {
                    let what = "the new table has other columns, and RowBinary cannot change them";
                    return Err(io::Error::other(what));
                }
            }
            *announced = Some(batch.schema());
            binary_rows(batch, out).map_err(io::Error::other)?;
        } else {
            json_lines(batch, out).map_err(io::Error::other)?;
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(out)?;
        stdout.flush()
    }
}

impl FileFormat {
    fn new(format: FlowFormat, mut out: Out, schema: &SchemaRef) -> io::Result<Self> {
        Ok(match format {
            FlowFormat::Parquet => {
                let writer = ArrowWriter::try_new(out, Arc::clone(schema), Some(parquet()));
                Self::Parquet(writer.map_err(io::Error::other)?)
            }
            FlowFormat::Arrow => {
                let options = IpcWriteOptions::default();
                let options = options
                    .try_with_compression(Some(CompressionType::ZSTD))
                    .map_err(io::Error::other)?;
                let writer = FileWriter::try_new_with_options(out, schema, options);
                Self::Arrow(writer.map_err(io::Error::other)?)
            }
            FlowFormat::JsonLines => Self::JsonLines(out),
            FlowFormat::RowBinary => {
                let mut head = Vec::new();
                binary_head(schema, &mut head).map_err(io::Error::other)?;
                out.write_all(&head)?;
                Self::RowBinary(out)
            }
        })
    }

    fn write(&mut self, batch: &RecordBatch, rendered: &mut Vec<u8>) -> io::Result<()> {
        rendered.clear();
        match self {
            Self::Parquet(writer) => writer.write(batch).map_err(io::Error::other),
            Self::Arrow(writer) => writer.write(batch).map_err(io::Error::other),
            Self::JsonLines(out) => {
                json_lines(batch, rendered).map_err(io::Error::other)?;
                out.write_all(rendered)
            }
            Self::RowBinary(out) => {
                binary_rows(batch, rendered).map_err(io::Error::other)?;
                out.write_all(rendered)
            }
        }
    }

    /// About how many bytes the file will have.
    fn len(&self) -> u64 {
        match self {
            Self::Parquet(writer) => (writer.bytes_written() + writer.in_progress_size()) as u64,
            Self::Arrow(writer) => writer.get_ref().bytes,
            Self::JsonLines(out) | Self::RowBinary(out) => out.bytes,
        }
    }

    /// Completes the file. Returns its length in bytes.
    fn finish(self) -> io::Result<u64> {
        let out = match self {
            Self::Parquet(writer) => writer.into_inner().map_err(io::Error::other)?,
            Self::Arrow(writer) => writer.into_inner().map_err(io::Error::other)?,
            Self::JsonLines(out) | Self::RowBinary(out) => out,
        };
        out.inner.into_inner().map_err(io::IntoInnerError::into_error)?.commit()?;
        Ok(out.bytes)
    }
}

/// How files of Parquet are written. Dictionaries are for columns of few values: to look each value of the others up in
/// one takes a fifth of a collector's time.
fn parquet() -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP));
    for name in TEXTS.iter().chain(&NUMBERS) {
        properties = properties.set_column_dictionary_enabled((*name).into(), false);
    }
    for name in NUMBERS {
        properties = properties.set_column_encoding(name.into(), Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

/// The moment as `20260131T235959.123456Z`.
fn stamp(time: u64) -> String {
    let (date, clock) = split(time);
    format!("{}T{}.{:06}Z", date.replace('-', ""), clock.replace(':', ""), time % 1_000_000)
}

/// The date and the time of day.
fn split(time: u64) -> (String, String) {
    let seconds = i64::try_from(time / 1_000_000).unwrap_or(i64::MAX);
    // A moment at the beginning of a day has no time of day in its text.
    let text = Moment::from_unix(seconds).to_string();
    match text.trim_end_matches('Z').split_once('T') {
        Some((date, clock)) => (date.to_owned(), clock.to_owned()),
        None => (text, "00:00:00".to_owned()),
    }
}

/// The folder below the output's, for files that begin at this time.
fn partition(partition: FlowPartition, time: u64) -> PathBuf {
    let (date, clock) = split(time);
    let hour = &clock[..2];
    match partition {
        FlowPartition::None => PathBuf::new(),
        FlowPartition::Day => PathBuf::from(format!("date={date}")),
        FlowPartition::Hour => PathBuf::from(format!("date={date}/hour={hour}")),
    }
}

/// The time until a moment in microseconds since 1970.
pub(crate) fn until(moment: u64, now: u64) -> Duration {
    Duration::from_micros(moment.saturating_sub(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let noon = 1_714_564_800_000_000;
        assert_eq!(stamp(noon + 1_500_000), "20240501T120001.500000Z");
        let midnight = noon + 12 * 3_600_000_000;
        assert_eq!(stamp(midnight), "20240502T000000.000000Z");
        assert_eq!(
            partition(FlowPartition::Hour, midnight).to_str(),
            Some("date=2024-05-02/hour=00")
        );
        assert_eq!(partition(FlowPartition::Day, noon).to_str(), Some("date=2024-05-01"));
        assert_eq!(partition(FlowPartition::None, noon), PathBuf::new());
    }

    #[test]
    fn columns_without_dictionaries_are_there() {
        let fields = crate::columns::flow_fields();
        for name in TEXTS.iter().chain(&NUMBERS) {
            let field = fields.iter().find(|field| field.name() == name).unwrap();
            let is_text = field.data_type() == &arrow_schema::DataType::Utf8;
            assert_eq!(is_text, TEXTS.contains(name), "{name}");
        }
    }
}
