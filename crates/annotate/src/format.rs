//! The formats of inputs, and their detection.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The format of the input. The output has the same format, but packets become CSV rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogFormat {
    /// Comma-separated values (or another delimiter), quoted as in RFC 4180.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// JSON objects: one on each line, in an array, or each over several lines.
    JsonLines,
    /// Lines that begin with an address: plain lists, access logs. Values are added after tabs.
    List,
    /// A packet capture, pcap or pcapng; each packet becomes a CSV row.
    Pcap,
    /// Exports of flows: the NetFlow, IPFIX and sFlow datagrams of a capture, a file of IPFIX messages (RFC 5655), or
    /// one of nfdump's collectors (nfcapd). Each record becomes a row, in the form of
    /// [`AnnotateOptions::export_rows`](crate::AnnotateOptions::export_rows).
    Flows,
    /// Parquet. It has columns instead of rows and is annotated by [`ColumnAnnotator`](crate::ColumnAnnotator).
    Parquet,
    /// Arrow IPC, as a file (Feather) or stream. Also annotated by [`ColumnAnnotator`](crate::ColumnAnnotator).
    Arrow,
}

impl LogFormat {
    /// All formats.
    pub const ALL: [Self; 8] = [
        Self::Csv,
        Self::Tsv,
        Self::JsonLines,
        Self::List,
        Self::Pcap,
        Self::Flows,
        Self::Parquet,
        Self::Arrow,
    ];

    /// The format's name in options: `"csv"`, `"tsv"`, `"jsonl"`, `"list"`, `"pcap"`, `"flows"`, `"parquet"` or
    /// `"arrow"`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
            Self::List => "list",
            Self::Pcap => "pcap",
            Self::Flows => "flows",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// Whether the format is columnar, and so needs a [`ColumnAnnotator`](crate::ColumnAnnotator) instead of an
    /// [`Annotator`](crate::Annotator).
    pub const fn is_columnar(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Whether the format is neither columnar nor text.
    pub(crate) const fn is_binary(self) -> bool {
        matches!(self, Self::Pcap | Self::Flows)
    }

    /// The format for the ending of a file name. Endings of compressed files (`.gz`, `.bz2`, `.xz`, `.zst`) are
    /// ignored.
    ///
    /// ```
    /// use fibula_annotate::LogFormat;
    /// assert_eq!(LogFormat::from_path("flows/conn.json.xz".as_ref()), Some(LogFormat::JsonLines));
    /// assert_eq!(LogFormat::from_path("access.log".as_ref()), Some(LogFormat::List));
    /// assert_eq!(LogFormat::from_path("capture".as_ref()), None);
    /// ```
    pub fn from_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?.to_ascii_lowercase();
        match ending.as_str() {
            "gz" | "bz2" | "xz" | "zst" => Self::from_path(Path::new(path.file_stem()?)),
            "csv" | "binetflow" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "json" | "jsonl" | "ndjson" => Some(Self::JsonLines),
            "txt" | "list" | "log" => Some(Self::List),
            "pcap" | "pcapng" | "cap" => Some(Self::Pcap),
            "ipfix" => Some(Self::Flows),
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for an unknown format name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown format {:?}; known are", self.0)?;
        LogFormat::ALL.iter().try_for_each(|format| write!(f, " {format}"))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for LogFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        match text {
            "json" | "ndjson" => Ok(Self::JsonLines),
            "pcapng" => Ok(Self::Pcap),
            "ipfix" => Ok(Self::Flows),
            "feather" | "ipc" => Ok(Self::Arrow),
            "text" | "txt" | "log" => Ok(Self::List),
            _ => Self::ALL
                .into_iter()
                .find(|format| format.name() == text)
                .ok_or_else(|| UnknownFormat(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for format in LogFormat::ALL {
            assert_eq!(format.name().parse(), Ok(format));
        }
        let error = "xml".parse::<LogFormat>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown format \"xml\"; known are csv tsv jsonl list pcap flows parquet arrow"
        );
    }
}
