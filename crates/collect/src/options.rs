//! What to receive, and where to write it.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::AnyPrefix;
use fibula_flows::FlowLimits;

use crate::Talkers;

/// The format of written flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowFormat {
    /// Parquet, compressed with zstd.
    #[default]
    Parquet,
    /// Arrow IPC files, compressed with zstd.
    Arrow,
    /// JSON, an object a line. What a flow does not have is left out.
    JsonLines,
    /// ClickHouse's RowBinaryWithNamesAndTypes.
    RowBinary,
}

impl FlowFormat {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Parquet, Self::Arrow, Self::JsonLines, Self::RowBinary];

    /// Its name, which is also the ending of its files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::JsonLines => "jsonl",
            Self::RowBinary => "rowbinary",
        }
    }

    /// Whether rows can be written one after the other, without an end.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        matches!(self, Self::JsonLines | Self::RowBinary)
    }
}

impl fmt::Display for FlowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FlowFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("flows are written as {}", known.join(", ")))
    }
}

/// Folders below the output's, as Hive names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowPartition {
    /// None: all files lie in one folder.
    #[default]
    None,
    /// `date=2026-01-31`, in UTC.
    Day,
    /// `date=2026-01-31/hour=23`, in UTC.
    Hour,
}

impl FromStr for FlowPartition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "day" => Ok(Self::Day),
            "hour" => Ok(Self::Hour),
            _ => Err("folders are by none, day or hour"),
        }
    }
}

/// Where flows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowPlace {
    /// Files in this folder.
    Folder(PathBuf),
    /// Rows on standard output, of a format that [is a stream](FlowFormat::is_stream).
    StandardOutput,
    /// Nowhere: they are only sent on.
    Nowhere,
}

/// How flows are written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FlowOutput {
    /// Where.
    pub place: FlowPlace,
    /// The format.
    pub format: FlowFormat,
    /// A file ends at each multiple of this time since 1970, UTC. Default: 5 minutes.
    pub rotate: Duration,
    /// A file ends when it has about this number of bytes. Default: 256 MiB.
    pub rotate_bytes: u64,
    /// Folders by the time at which a file begins.
    pub partition: FlowPartition,
}

/// Where flows are sent on, as IPFIX over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowForward {
    /// The collector.
    pub to: SocketAddr,
    /// The number of the enterprise whose elements the values of the table are; without one they are not sent.
    pub enterprise: Option<u32>,
}

impl FlowOutput {
    /// A place and a format, with the usual files.
    #[must_use]
    pub fn new(place: FlowPlace, format: FlowFormat) -> Self {
        Self {
            place,
            format,
            rotate: Duration::from_secs(300),
            rotate_bytes: 256 << 20,
            partition: FlowPartition::None,
        }
    }
}

/// What to receive, and where to write it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CollectOptions {
    /// The addresses to receive at.
    pub listen: Vec<SocketAddr>,
    /// Sockets at each address. Each has a thread that receives and one that decodes, looks up and writes; the system
    /// gives all datagrams of an exporter's address and port to the same one. Default: 1.
    pub sockets: usize,
    /// The networks whose exporters are heard; empty for all.
    pub allowed: Vec<AnyPrefix>,
    /// Bytes of datagrams that the system keeps of a socket; 0 for its default. Without the privilege it is limited by
    /// `net.core.rmem_max`. Default: 16 MiB.
    pub receive_buffer: usize,
    /// Bytes of datagrams that wait to be decoded, of each socket. What comes when it is full is dropped and counted.
    /// Default: 64 MiB.
    pub queue_bytes: usize,
    /// Rows that are looked up and written together. Default: 16,384.
    pub batch_rows: usize,
    /// The longest time before received rows are given to the output. Default: 1 second.
    pub delay: Duration,
    /// The limits of what exporters can make each decoder keep.
    pub limits: FlowLimits,
    /// The file that keeps templates over a restart.
    pub templates: Option<PathBuf>,
    /// Where to write.
    pub output: FlowOutput,
    /// Where to send flows on.
    pub forward: Option<FlowForward>,
    /// Where to count the top talkers.
    pub talkers: Option<Arc<Talkers>>,
}

impl CollectOptions {
    /// The usual options.
    #[must_use]
    pub fn new(listen: Vec<SocketAddr>, output: FlowOutput) -> Self {
        Self {
            listen,
            sockets: 1,
            allowed: Vec::new(),
            receive_buffer: 16 << 20,
            queue_bytes: 64 << 20,
            batch_rows: 16_384,
            delay: Duration::from_secs(1),
            limits: FlowLimits::default(),
            templates: None,
            output,
            forward: None,
            talkers: None,
        }
    }
}
