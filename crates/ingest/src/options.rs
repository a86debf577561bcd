//! What [`read`](crate::read) takes and gives.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::text::TextOptions;
use crate::{Compression, Damage};

/// Where to read from, and as what.
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
}

impl SourceSpec {
    /// The source at `path`, whose format its content will tell.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), format: Format::Auto }
    }

    /// Whether this is standard input.
    pub fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// The name by which damage and provenance call it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// The format of a source. `Display` and `FromStr` use lower-case names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Told from the content (and the name, for `.csv`, `.tsv` and `.mmdb`).
    #[default]
    Auto,
    /// Lines of `prefix value...`; the delimiter is found out.
    Text,
    /// Comma-separated (semicolons, where no comma is).
    Csv,
    /// Tab-separated.
    Tsv,
    /// `start,end,value...` lines with any delimiter; the addresses may be decimal integers.
    Ranges,
    /// Multi-threaded Routing Toolkit dumps (RFC 6396, RFC 8050).
    Mrt,
    /// What routers tell monitoring stations, as it came over a connection (RFC 7854).
    Bmp,
    /// Lines of JSON as RIS Live sends them.
    Ris,
    /// MaxMind DB.
    Mmdb,
    /// What FRR's `dplane_fpm_nl` sends, recorded byte for byte.
    Fpm,
    /// JSON with prefixes in it: what providers publish, arrays, objects.
    Json,
    /// The registries' `delegated` files.
    Delegated,
    /// What `bgpdump -m` prints.
    Bgpdump,
    /// What `ip route`, `route -n` and `netstat -rn` print.
    Routes,
}

impl Format {
    const ALL: [(Self, &'static str); 14] = [
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
    ];

    /// The name, as [`FromStr`] reads it.
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

/// What to do with a prefix of text that has bits set beyond its length, such as `10.0.0.1/8`.
/// (BGP says that such bits mean nothing; MRT input is always masked.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostBits {
    /// It is damage: the writer may have meant another length.
    #[default]
    Refuse,
    /// The bits are cleared.
    Mask,
}

/// How far [`read`](crate::read) has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read from the file, before decompression.
    pub bytes_read: u64,
    /// The file's size; `None` for standard input and pipes.
    pub bytes_total: Option<u64>,
    /// Records decoded.
    pub records: u64,
}

/// How to read.
#[derive(Default)]
pub struct ReadOptions<'a> {
    /// The first damage is an error.
    pub strict: bool,
    /// Use the data of an archive before the place where it is damaged or cut short, and report that as damage.
    /// Else it is an error: a failed checksum says that some of what came out is wrong, but not what.
    pub salvage: bool,
    /// Take a source without routes, or one of which most is damaged. Else these are errors: an empty
    /// download and a server's error page are not tables.
    pub allow_empty: bool,
    /// Give [`BgpAttributes::as_path`](fibula_core::BgpAttributes::as_path) as text.
    pub as_path: bool,
    /// Give [`BgpAttributes::communities`](fibula_core::BgpAttributes::communities) as text.
    pub communities: bool,
    /// Columns, header, delimiter, host bits of text.
    pub text: TextOptions,
    /// Called after every block.
    pub progress: Option<&'a mut dyn FnMut(Progress)>,
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("strict", &self.strict)
            .field("salvage", &self.salvage)
            .field("allow_empty", &self.allow_empty)
            .field("as_path", &self.as_path)
            .field("communities", &self.communities)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// What [`read`](crate::read) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadReport {
    /// Records seen: lines, MRT records, networks.
    pub records: u64,
    /// Updates given to the sink.
    pub updates: u64,
    /// Damage reported.
    pub damaged: u64,
    /// Bytes decoded, after decompression.
    pub bytes: u64,
    /// What the source was; see [`SourceInfo::format`](crate::SourceInfo::format).
    pub format: &'static str,
    /// What was passed over, and how often.
    pub ignored: Vec<(&'static str, u64)>,
    /// What was read otherwise than it is written, or contradicts itself, and how often; see [`Sink::noted`](crate::Sink::noted).
    pub noted: Vec<(&'static str, u64)>,
}

/// Why [`read`](crate::read) gave up.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The source could not be opened or read.
    Io {
        /// The file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// The content is in none of the formats that [`Format`] lists.
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// The content is no routing table.
    NoTable {
        /// The file.
        file: String,
        /// What it is.
        what: &'static str,
    },
    /// The archive around the content is damaged or cut short, and [`ReadOptions::salvage`] was not set.
    Archive {
        /// The file.
        file: String,
        /// How it is compressed.
        compression: Compression,
        /// Bytes of content before the damage.
        offset: u64,
        /// What is wrong.
        error: io::Error,
    },
    /// There are no routes in it, and [`ReadOptions::allow_empty`] was not set.
    Empty {
        /// The file.
        file: String,
    },
    /// More is damaged than not, and [`ReadOptions::allow_empty`] was not set.
    MostlyDamaged {
        /// Damaged records.
        damaged: u64,
        /// All records.
        records: u64,
        /// The first of those that are damaged.
        first: Damage,
    },
    /// The options do not fit the content: a column that was named is not there.
    Misfit {
        /// The file.
        file: String,
        /// What does not fit.
        what: String,
    },
    /// This was damaged, and [`ReadOptions::strict`] was set or the sink asked to stop.
    Damaged(Damage),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(f, "{file}: {error}"),
            Self::UnknownFormat { file } => {
                write!(
                    f,
                    "{file}: neither text nor JSON nor MRT nor FPM nor mmdb; name the format if it is one"
                )
            }
            Self::NoTable { file, what } => write!(f, "{file}: {what}"),
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
