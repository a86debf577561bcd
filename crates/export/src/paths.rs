//! Writes all BGP paths of an archive: a row for each path of each peer.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, ListBuilder, StringBuilder, StringDictionaryBuilder,
    TimestampMicrosecondBuilder, UInt32Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use fibula_core::{Aggregator, AnyPrefix, BgpAttributes};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde::Serialize;

use crate::ExportError;

/// Rows of a batch, and of a row group.
const BATCH: usize = 128 << 10;

/// A format of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathsFormat {
    /// Parquet, compressed with zstd.
    Parquet,
    /// A stream of Arrow IPC, compressed with zstd.
    Arrow,
    /// JSON, an object a line. What a path does not have is left out.
    JsonLines,
}

/// A path to a prefix that a peer announces, or its withdrawal.
#[derive(Clone, Copy, Debug)]
pub struct BgpPath<'a> {
    /// Microseconds since 1970 (UTC); 0 if the source has no time.
    pub time: u64,
    /// The peer's address, if the source has it.
    pub peer_address: Option<IpAddr>,
    /// The peer's AS, 0 if unknown.
    pub peer_as: u32,
    /// The name of the peer's table, if it has several; empty otherwise.
    pub view: &'a str,
    /// The name of the routing instance; empty for the main one.
    pub vrf: &'a str,
    /// The prefix.
    pub prefix: AnyPrefix,
    /// The ADD-PATH identifier; 0 without one.
    pub path_id: u32,
    /// The attributes; `None` for a withdrawal.
    pub attributes: Option<&'a BgpAttributes<'a>>,
}

/// A row of JSON.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_address: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_as: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    view: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    vrf: &'a str,
    prefix: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_id: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_hop: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_as: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    local_pref: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    med: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    communities: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extended_communities: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregator_as: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregator_address: Option<Ipv4Addr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<bool>,
}

impl BgpPath<'_> {
    fn change(&self) -> &'static str {
        if self.attributes.is_some() { "announce" } else { "withdraw" }
    }

    fn time(&self) -> Option<u64> {
        Some(self.time).filter(|&time| time > 0)
    }
}

fn extended<'a>(bgp: Option<&BgpAttributes<'a>>) -> &'a str {
    bgp.map_or("", |bgp| bgp.extended_communities)
}

fn aggregator(bgp: Option<&BgpAttributes<'_>>) -> Option<Aggregator> {
    bgp.and_then(|bgp| bgp.aggregator)
}

/// The name of the ORIGIN attribute's value.
fn origin(bgp: &BgpAttributes<'_>) -> Option<&'static str> {
    match bgp.origin? {
        0 => Some("IGP"),
        1 => Some("EGP"),
        _ => Some("INCOMPLETE"),
    }
}

fn known(number: u32) -> Option<u32> {
    Some(number).filter(|&number| number > 0)
}

/// Writes paths, as they come.
///
/// Columns: `time` (UTC), `change` (`announce` or `withdraw`), `peer_address`, `peer_as`, `view`, `vrf`, `prefix`,
/// `path_id`, `next_hop`, `as_path` (text, sets in braces), `origin_as`, `origin` (`IGP`, `EGP`, `INCOMPLETE`),
/// `local_pref`, `med`, `communities` and `extended_communities` (lists of texts), `aggregator_as`,
/// `aggregator_address`, `best`. What a path does not have is null.
///
/// ```
/// use fibula_core::BgpAttributes;
/// use fibula_export::{BgpPath, PathsFormat, PathsWriter};
///
/// let attributes =
///     BgpAttributes { as_path: "64500 64501", origin_as: Some(64501), ..BgpAttributes::default() };
/// let mut out = Vec::new();
/// let mut writer = PathsWriter::new(PathsFormat::JsonLines, &mut out)?;
/// writer.write(&BgpPath {
///     time: 0,
///     peer_address: None,
///     peer_as: 0,
///     view: "",
///     vrf: "",
///     prefix: "10.0.0.0/8".parse()?,
///     path_id: 0,
///     attributes: Some(&attributes),
/// })?;
/// assert_eq!(writer.finish()?, 1);
/// let line = r#"{"change":"announce","prefix":"10.0.0.0/8","as_path":"64500 64501","origin_as":64501}"#;
/// assert_eq!(String::from_utf8(out)?.trim_end(), line);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PathsWriter<W: Write + Send> {
    output: Output<W>,
    batch: Batch,
    rows: u64,
}

enum Output<W: Write + Send> {
    Parquet(Box<ArrowWriter<W>>),
    Arrow(Box<StreamWriter<W>>),
    JsonLines(W),
}

impl<W: Write + Send> PathsWriter<W> {
    /// A writer to this output.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(format: PathsFormat, out: W) -> Result<Self, ExportError> {
        let schema = schema();
        let output = match format {
            PathsFormat::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(Default::default()))
                    .set_max_row_group_row_count(Some(BATCH))
                    .build();
                Output::Parquet(Box::new(ArrowWriter::try_new(out, schema, Some(properties))?))
            }
            PathsFormat::Arrow => {
                let options = IpcWriteOptions::default();
                let options = options.try_with_compression(Some(CompressionType::ZSTD))?;
                let writer = StreamWriter::try_new_with_options(out, &schema, options)?;
                Output::Arrow(Box::new(writer))
            }
            PathsFormat::JsonLines => Output::JsonLines(out),
        };
        Ok(Self { output, batch: Batch::default(), rows: 0 })
    }

    /// Writes a path.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&mut self, path: &BgpPath<'_>) -> Result<(), ExportError> {
        self.rows += 1;
        if let Output::JsonLines(out) = &mut self.output {
            return write_json(path, out);
        }
        self.batch.push(path);
        if self.batch.rows == BATCH { self.write_batch() } else { Ok(()) }
    }

    /// Writes what is left, and returns the number of rows.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish(mut self) -> Result<u64, ExportError> {
        if self.batch.rows > 0 {
            self.write_batch()?;
        }
        match self.output {
            Output::Parquet(writer) => drop(writer.close()?),
            Output::Arrow(mut writer) => writer.finish()?,
            Output::JsonLines(mut out) => out.flush()?,
        }
        Ok(self.rows)
    }

    fn write_batch(&mut self) -> Result<(), ExportError> {
        let batch = self.batch.finish()?;
        match &mut self.output {
            Output::Parquet(writer) => writer.write(&batch)?,
            Output::Arrow(writer) => writer.write(&batch)?,
            Output::JsonLines(_) => {}
        }
        Ok(())
    }
}

fn write_json(path: &BgpPath<'_>, out: &mut impl Write) -> Result<(), ExportError> {
    let bgp = path.attributes;
    let row = Row {
        time: path.time().map(|time| time as f64 / 1e6),
        change: path.change(),
        peer_address: path.peer_address,
        peer_as: known(path.peer_as),
        view: path.view,
        vrf: path.vrf,
        prefix: path.prefix.to_string(),
        path_id: known(path.path_id),
        next_hop: bgp.and_then(|bgp| bgp.next_hop),
        as_path: bgp.map(|bgp| bgp.as_path),
        origin_as: bgp.and_then(|bgp| bgp.origin_as),
        origin: bgp.and_then(origin),
        local_pref: bgp.and_then(|bgp| bgp.local_pref),
        med: bgp.and_then(|bgp| bgp.med),
        communities: bgp.map_or("", |bgp| bgp.communities).split_ascii_whitespace().collect(),
        extended_communities: extended(bgp).split_ascii_whitespace().collect(),
        aggregator_as: aggregator(bgp).map(|of| of.asn),
        aggregator_address: aggregator(bgp).map(|of| of.address),
        best: bgp.and_then(|bgp| bgp.best),
    };
    serde_json::to_writer(&mut *out, &row).map_err(std::io::Error::from)?;
    Ok(out.write_all(b"\n")?)
}

fn schema() -> Arc<Schema> {
    let few = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let list = || DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Arc::new(Schema::new(vec![
        Field::new("time", utc, true),
        Field::new("change", few(), false),
        Field::new("peer_address", few(), true),
        Field::new("peer_as", DataType::UInt32, true),
        Field::new("view", few(), true),
        Field::new("vrf", few(), true),
        Field::new("prefix", DataType::Utf8, false),
        Field::new("path_id", DataType::UInt32, true),
        Field::new("next_hop", few(), true),
        Field::new("as_path", DataType::Utf8, true),
        Field::new("origin_as", DataType::UInt32, true),
        Field::new("origin", few(), true),
        Field::new("local_pref", DataType::UInt32, true),
        Field::new("med", DataType::UInt32, true),
        Field::new("communities", list(), true),
        Field::new("extended_communities", list(), true),
        Field::new("aggregator_as", DataType::UInt32, true),
        Field::new("aggregator_address", few(), true),
        Field::new("best", DataType::Boolean, true),
    ]))
}

/// Columns of few different texts.
type Few = StringDictionaryBuilder<Int32Type>;

/// The rows of a batch.
#[derive(Default)]
struct Batch {
    rows: usize,
    time: TimestampMicrosecondBuilder,
    change: Few,
    peer_address: Few,
    peer_as: UInt32Builder,
    view: Few,
    vrf: Few,
    prefix: StringBuilder,
    path_id: UInt32Builder,
    next_hop: Few,
    as_path: StringBuilder,
    origin_as: UInt32Builder,
    origin: Few,
    local_pref: UInt32Builder,
    med: UInt32Builder,
    communities: ListBuilder<StringBuilder>,
    extended_communities: ListBuilder<StringBuilder>,
    aggregator_as: UInt32Builder,
    aggregator_address: Few,
    best: BooleanBuilder,
    text: String,
}

impl Batch {
    fn push(&mut self, path: &BgpPath<'_>) {
        let bgp = path.attributes;
        self.rows += 1;
        self.time.append_option(path.time().and_then(|time| i64::try_from(time).ok()));
        self.change.append_value(path.change());
        append(&mut self.peer_address, &mut self.text, path.peer_address);
        self.peer_as.append_option(known(path.peer_as));
        self.view.append_option(Some(path.view).filter(|name| !name.is_empty()));
        self.vrf.append_option(Some(path.vrf).filter(|name| !name.is_empty()));
        self.text.clear();
        let _ = std::fmt::Write::write_fmt(&mut self.text, format_args!("{}", path.prefix));
        self.prefix.append_value(&self.text);
        self.path_id.append_option(known(path.path_id));
        append(&mut self.next_hop, &mut self.text, bgp.and_then(|bgp| bgp.next_hop));
        self.as_path.append_option(bgp.map(|bgp| bgp.as_path));
        self.origin_as.append_option(bgp.and_then(|bgp| bgp.origin_as));
        self.origin.append_option(bgp.and_then(origin));
        self.local_pref.append_option(bgp.and_then(|bgp| bgp.local_pref));
        self.med.append_option(bgp.and_then(|bgp| bgp.med));
        append_words(&mut self.communities, bgp.map_or("", |bgp| bgp.communities));
        append_words(&mut self.extended_communities, extended(bgp));
        self.aggregator_as.append_option(aggregator(bgp).map(|of| of.asn));
        let address = aggregator(bgp).map(|of| of.address.into());
        append(&mut self.aggregator_address, &mut self.text, address);
        self.best.append_option(bgp.and_then(|bgp| bgp.best));
    }

    fn finish(&mut self) -> Result<RecordBatch, ExportError> {
        self.rows = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.time.finish().with_timezone("UTC")),
            Arc::new(self.change.finish()),
            Arc::new(self.peer_address.finish()),
            Arc::new(self.peer_as.finish()),
            Arc::new(self.view.finish()),
            Arc::new(self.vrf.finish()),
            Arc::new(self.prefix.finish()),
            Arc::new(self.path_id.finish()),
            Arc::new(self.next_hop.finish()),
            Arc::new(self.as_path.finish()),
            Arc::new(self.origin_as.finish()),
            Arc::new(self.origin.finish()),
            Arc::new(self.local_pref.finish()),
            Arc::new(self.med.finish()),
            Arc::new(self.communities.finish()),
            Arc::new(self.extended_communities.finish()),
            Arc::new(self.aggregator_as.finish()),
            Arc::new(self.aggregator_address.finish()),
            Arc::new(self.best.finish()),
        ];
        Ok(RecordBatch::try_new(schema(), columns)?)
    }
}

/// A list of the words; null if there are none.
fn append_words(column: &mut ListBuilder<StringBuilder>, words: &str) {
    for word in words.split_ascii_whitespace() {
        column.values().append_value(word);
    }
    column.append(!words.is_empty());
}

fn append(column: &mut Few, text: &mut String, address: Option<IpAddr>) {
    let Some(address) = address else { return column.append_null() };
    text.clear();
    let _ = std::fmt::Write::write_fmt(text, format_args!("{address}"));
    column.append_value(text);
}

impl From<ArrowError> for ExportError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => Self::Write(error),
            error => ParquetError::from(error).into(),
        }
    }
}
