//! The options and results of [`read`](crate::read).

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::text::TextOptions;
use crate::{Compression, Damage, ReadColumns};

/// The source to read, with its format.
///
/// ```
/// use fibula_ingest::{Format, SourceSpec};
/// let spec = SourceSpec::new("table.csv.gz");
/// assert_eq!(spec.format, Format::Auto);
/// assert!(SourceSpec::new("-").is_stdin());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// The file, or `-` for standard input.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Its name in reports, if that is another one than the path: the URL of a file that was fetched.
    pub name: Option<String>,
}

impl SourceSpec {
    /// The source at `path`, with the format detected from its content.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), format: Format::Auto, name: None }
    }

    /// Whether this is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The name of the source in damage reports and provenance.
    pub fn name(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.path.display().to_string())
    }
}

/// The format of a source. `Display` and `FromStr` use lower-case names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Detected from the content (and the name, for `.csv`, `.tsv` and `.mmdb`).
    #[default]
    Auto,
    /// Lines of `prefix value...`; the delimiter is detected.
    Text,
    /// Comma-separated (semicolon-separated if there is no comma).
    Csv,
    /// Tab-separated.
    Tsv,
    /// `start,end,value...` lines with any delimiter; the addresses may be decimal integers.
    Ranges,
    /// Multi-threaded Routing Toolkit dumps (RFC 6396, RFC 8050).
    Mrt,
    /// The reports of routers to monitoring stations, as recorded from a connection (RFC 7854).
    Bmp,
    /// Lines of JSON from RIS Live.
    Ris,
    /// MaxMind DB.
    Mmdb,
    /// The stream from FRR's `dplane_fpm_nl`, recorded byte for byte.
    Fpm,
    /// JSON with prefixes: the files of providers, arrays, objects.
    Json,
    /// The registries' `delegated` files.
    Delegated,
    /// The output of `bgpdump -m`, bgpreader, bgpkit-parser and bgpscanner.
    Bgpdump,
    /// The output of `ip route`, `route -n` and `netstat -rn`.
    Routes,
    /// The output of `ipset save`.
    Ipset,
    /// The prefix lists of a router: `ip prefix-list NAME permit PREFIX`.
    PrefixList,
    /// The output of `fibula diff`.
    Diff,
    /// A router's output for `show ip bgp`, with [`ReadOptions::all_paths`] all of it.
    ShowBgp,
    /// Parquet; see [`ReadOptions::columnar`].
    Parquet,
    /// Arrow IPC, a file or a stream.
    Arrow,
}

impl Format {
    const ALL: [(Self, &'static str); 20] = [
        (Self::Auto, "auto"),
        (Self::Text, "text"),
        (Self::Csv, "csv"),
        (Self::Tsv, "tsv"),
        (Self::Ranges, "ranges"),
        (Self::Mrt, "mrt"),
        (Self::Bmp, "bmp"),
        (Self::Ris, "ris"),
        (Self::Mmdb, "mmdb"),
        (Self::Fpm, "fpm"),
        (Self::Json, "json"),
        (Self::Delegated, "delegated"),
        (Self::Bgpdump, "bgpdump"),
        (Self::Routes, "routes"),
        (Self::Ipset, "ipset"),
        (Self::PrefixList, "prefix-list"),
        (Self::Diff, "diff"),
        (Self::ShowBgp, "show-bgp"),
        (Self::Parquet, "parquet"),
        (Self::Arrow, "arrow"),
    ];

    /// Whether files of this format announce and withdraw routes, each at its time. The others are tables: prefixes
    /// with values.
    pub fn has_updates(self) -> bool {
        matches!(self, Self::Mrt | Self::Bmp | Self::Ris | Self::Fpm | Self::Bgpdump)
    }

    /// The format's name, which [`FromStr`] parses.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(format, _)| *format == self).map_or("auto", |(_, name)| name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text);
        found.map(|(format, _)| *format).ok_or_else(|| {
            let names = Self::ALL.map(|(_, name)| name).join(", ");
            format!("unknown format {text:?}; there are: {names}")
        })
    }
}

/// How to treat a prefix of text that has bits set beyond its length, such as `10.0.0.1/8`. (In BGP such bits have no
/// meaning, so MRT input is always masked.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBits {
    /// As damage, because the writer may have meant another length.
    #[default]
    Refuse,
    /// As the prefix with these bits cleared.
    Mask,
}

/// Progress of [`read`](crate::read).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadProgress {
    /// Bytes read from the file, before decompression.
    pub bytes_read: u64,
    /// The file's size; `None` for standard input and pipes.
    pub bytes_total: Option<u64>,
    /// Records decoded.
    pub records: u64,
}

/// Options for reading.
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// Makes an error of the first damage.
    pub strict: bool,
    /// Uses the data of an archive before the place where it is damaged or cut short, and reports the damage. By
    /// default this is an error, because a failed checksum shows that a part of the data is wrong, but not which
    /// part.
    pub salvage: bool,
    /// Accepts a source without routes, or one most of which is damaged. By default these are errors, because an
    /// empty download or a server's error page is not a table.
    pub allow_empty: bool,
    /// Provides [`BgpAttributes::as_path`](fibula_core::BgpAttributes::as_path) as text.
    pub as_path: bool,
    /// Provides [`BgpAttributes::communities`](fibula_core::BgpAttributes::communities) as text.
    pub communities: bool,
    /// Provides [`BgpAttributes::extended_communities`](fibula_core::BgpAttributes::extended_communities) as text.
    pub extended_communities: bool,
    /// Provides all paths of a table that a router printed ([`Format::ShowBgp`]), rather than those that it chose.
    pub all_paths: bool,
    /// Refuses formats that are tables and never updates; see [`Format::has_updates`].
    pub only_updates: bool,
    /// Options for text: columns, header, delimiter, host bits.
    pub text: TextOptions,
    /// Reads Parquet and Arrow, which are refused without it: this crate does not have their libraries.
    pub columnar: Option<&'a ReadColumns<'a>>,
    /// A function that is called after every block.
    pub progress: Option<&'a mut dyn FnMut(ReadProgress)>,
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("strict", &self.strict)
            .field("salvage", &self.salvage)
            .field("allow_empty", &self.allow_empty)
            .field("as_path", &self.as_path)
            .field("communities", &self.communities)
            .field("extended_communities", &self.extended_communities)
            .field("all_paths", &self.all_paths)
            .field("only_updates", &self.only_updates)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// The results of [`read`](crate::read).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Number of records: lines, MRT records, networks.
    pub records: u64,
    /// Number of updates passed to the sink.
    pub updates: u64,
    /// Number of damage reports.
    pub damaged: u64,
    /// Number of bytes decoded, after decompression.
    pub bytes: u64,
    /// The format of the source; see [`SourceInfo::format`](crate::SourceInfo::format).
    pub format: &'static str,
    /// Ignored parts, by kind, with their number.
    pub ignored: Vec<(&'static str, u64)>,
    /// Parts interpreted in another way than written, or contradictory, by kind, with their number; see
    /// [`Sink::noted`](crate::Sink::noted).
    pub noted: Vec<(&'static str, u64)>,
    /// Sentences about columns whose kind one record decided.
    pub remarks: Vec<String>,
}

/// The error of [`read`](crate::read).
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be opened or read.
    Io {
        /// The file.
        file: String,
        /// The system's error.
        error: io::Error,
    },
    /// The content is not a routing table.
    NoTable {
        /// The file.
        file: String,
        /// What it is, and what to do.
        what: Cow<'static, str>,
    },
    /// The content is a table, where [`ReadOptions::only_updates`] was set.
    NoUpdates {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// The archive around the content is damaged or cut short, and [`ReadOptions::salvage`] was not set.
    Archive {
        /// The file.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// Bytes of content before the damage.
        offset: u64,
        /// The fault.
        error: io::Error,
    },
    /// The source has no routes, and [`ReadOptions::allow_empty`] was not set.
    Empty {
        /// The file.
        file: String,
    },
    /// More records are damaged than not, and [`ReadOptions::allow_empty`] was not set.
    MostlyDamaged {
        /// Damaged records.
        damaged: u64,
        /// All records.
        records: u64,
        /// The first of those that are damaged.
        first: Damage,
    },
    /// The options do not fit the content: a named column does not exist.
    Misfit {
        /// The file.
        file: String,
        /// The mismatch.
        what: String,
    },
    /// This part was damaged, and [`ReadOptions::strict`] was set or the sink asked to stop.
    Damaged(Damage),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(f, "{file}: {error}"),
            Self::NoTable { file, what } => write!(f, "{file}: {what}"),
            Self::NoUpdates { file, format } => {
                write!(
                    f,
                    "{file}: this is a table (format {format}); updates are MRT, BMP, FPM, RIS Live or bgpdump"
                )
            }
            Self::Archive { file, compression, offset, error } => write!(
                f,
                "{file}: the {compression} archive is damaged or cut short behind byte {offset} of its \
                 content: {error}"
            ),
            Self::Empty { file } => write!(f, "{file}: no routes in it"),
            Self::MostlyDamaged { damaged, records, first } => write!(
                f,
                "{}: hardly a routing table, {damaged} of {records} records are damaged; the first at \
                 {}",
                first.file,
                Damage { file: "".into(), ..first.clone() }
            ),
            Self::Misfit { file, what } => write!(f, "{file}: {what}"),
            Self::Damaged(damage) => write!(f, "{damage}"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } | Self::Archive { error, .. } => Some(error),
            _ => None,
        }
    }
}
