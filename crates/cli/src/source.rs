//! The command-line options for reading sources.

use std::path::Path;
use std::str::FromStr;

use clap::Args;
use fibula::sources::Settings;
pub use fibula::sources::Source;
use fibula_core::Family;
use fibula_ingest::text::{HeaderLine, KeyColumns, TextOptions};
use fibula_ingest::{ColumnKind, Format, HostBits, ReadOptions, SourceSpec};
use fibula_rib::{BuilderOptions, Loading, Moment, PeerChoice, ScalarType};
use fibula_testkit::fib::HopModel;

use crate::failure::Failure;
use crate::{config, fetch};

/// How sources are read, and which parts of them are kept.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reading tables")]
pub struct ReadArgs {
    /// Format of the table files: auto, text, csv, tsv, ranges, mrt, mmdb, fpm (recorded from FRR), json,
    /// delegated, bgpdump, show-bgp (show ip bgp), routes (ip route, route -n), ipset, prefix-list, diff,
    /// parquet, arrow
    #[arg(long, default_value = "auto", value_name = "FORMAT", hide_default_value = true)]
    pub format: Format,
    /// Stop at the first damaged record instead of counting and skipping it, and refuse a file that has a
    /// prefix twice
    #[arg(long)]
    pub strict: bool,
    /// Use the data of an archive (gz, bz2, xz, zstd) before the place where it is damaged or cut short
    #[arg(long)]
    pub salvage: bool,
    /// Accept a table without routes, or one most of which is damaged
    #[arg(long)]
    pub allow_empty: bool,
    /// BGP peers whose routes are taken: best (all peers, the best path of each prefix), all (the same, and
    /// --tags lists the values of all paths), most (the peer with the most routes), an address, AS64500, or an index
    #[arg(long, default_value = "best", value_name = "PEER", hide_default_value = true)]
    pub peer: Peer,
    /// Keep only these value columns
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub columns: Option<Vec<String>>,
    /// Collect in this column the values of all rows and sources of a prefix, each once, separated by
    /// semicolons (drop;botnet), instead of only the last one's. For a file without the column, the value is
    /// the file's name
    #[arg(long, value_name = "COLUMN")]
    pub tags: Option<String>,
    /// How snapshots are loaded: auto (mapped if the file is read-only, else read), map (make sure that no
    /// program writes into the file meanwhile), read
    #[arg(long, default_value = "auto", value_name = "auto|map|read", hide_default_value = true)]
    pub load: Loading,
    /// For a file of several dates (build --as-of), use the newest table that is not later than this time (default:
    /// the newest). 2024-05-01, 2024-05-01T12:00:00Z, or seconds since 1970; UTC
    #[arg(long, value_name = "TIME")]
    pub at: Option<Moment>,
    /// Name the prefixes that were replaced by a later line or source (the first 20 of each kind)
    #[arg(long, short)]
    pub verbose: bool,
    /// Keep AS paths as text (BGP)
    #[arg(long)]
    pub as_path: bool,
    /// Keep communities as text (BGP)
    #[arg(long)]
    pub communities: bool,
    /// Text: the character between fields, or tab, space (any white space)
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Text: whether the first line names the columns (default: by its content)
    #[arg(long, value_name = "yes|no", value_parser = parse_header)]
    pub header: Option<HeaderLine>,
    /// Text: names for all columns in file order, address columns included
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub names: Vec<String>,
    /// Text: the column of prefixes, or two columns with the first and last address, or with a network and
    /// its netmask or length; by name or number
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "COLUMN[,COLUMN]")]
    pub key: Vec<String>,
    /// Text: the kind of a column (int, float, bool or str), instead of the one found from its values
    #[arg(long, value_name = "NAME=KIND,...", value_delimiter = ',', value_parser = parse_kind)]
    pub kind: Vec<(String, ColumnType)>,
    /// Text: clear bits beyond the prefix length (10.0.0.1/8) instead of treating the line as damaged
    #[arg(long)]
    pub mask_host_bits: bool,
    /// Replace the hops by synthetic ones: hash:256 (unrelated) or near:64 (shared by neighbours)
    #[arg(long, value_name = "MODEL")]
    pub synthetic_hops: Option<HopModel>,
}

impl ReadArgs {
    /// The defaults, for commands that do not have these options.
    pub fn automatic() -> Self {
        Self {
            format: Format::Auto,
            strict: false,
            salvage: false,
            allow_empty: false,
            peer: Peer(PeerChoice::Best),
            columns: None,
            tags: None,
            load: Loading::Auto,
            at: None,
            verbose: false,
            as_path: false,
            communities: false,
            delimiter: None,
            header: None,
            names: Vec::new(),
            key: Vec::new(),
            kind: Vec::new(),
            mask_host_bits: false,
            synthetic_hops: None,
        }
    }

    /// The file to read, in the requested format.
    pub fn spec(&self, path: &Path) -> SourceSpec {
        let mut spec = SourceSpec::new(path);
        spec.format = self.format;
        spec
    }

    /// The options of the table builder.
    pub fn builder(&self) -> BuilderOptions {
        BuilderOptions {
            peer: self.peer.0.clone(),
            columns: self.columns.clone(),
            as_path: self.as_path,
            communities: self.communities,
            tags: self.tags.clone(),
        }
    }

    /// Whether a snapshot or a generated table is used unchanged.
    pub fn takes_all(&self) -> bool {
        self.columns.is_none() && self.tags.is_none()
    }

    /// The options for reading and merging sources.
    pub fn settings(&self) -> Result<Settings, Failure> {
        Ok(Settings {
            format: self.format,
            strict: self.strict,
            salvage: self.salvage,
            allow_empty: self.allow_empty,
            builder: self.builder(),
            text: self.text()?,
            names: fetch::column_names(),
            loading: self.load,
            at: self.at,
        })
    }

    /// The options of the decoders.
    pub fn decoder<'a>(&self) -> Result<ReadOptions<'a>, Failure> {
        Ok(ReadOptions {
            strict: self.strict,
            salvage: self.salvage,
            allow_empty: self.allow_empty,
            as_path: self.as_path,
            communities: self.communities,
            only_updates: false,
            all_paths: self.peer.0 != PeerChoice::Best,
            extended_communities: false,
            text: self.text()?,
            columnar: fibula::sources::columnar_reader(),
            progress: None,
        })
    }

    fn text(&self) -> Result<TextOptions, Failure> {
        let key = match &*self.key {
            [] => KeyColumns::Auto,
            [prefix] => KeyColumns::Prefix(prefix.clone()),
            [first, last] => KeyColumns::Range(first.clone(), last.clone()),
            more => {
                let message = format_args!("--key takes one or two columns, not {}", more.len());
                return Err(Failure::new(message));
            }
        };
        Ok(TextOptions {
            delimiter: self.delimiter,
            header: self.header.unwrap_or_default(),
            names: self.names.clone(),
            key,
            columns: None, // the table builder chooses, over all sources
            kinds: self.kind.iter().map(|(name, kind)| (name.clone(), kind.0)).collect(),
            types: self
                .kind
                .iter()
                .filter_map(|(name, kind)| Some((name.clone(), kind.1?)))
                .collect(),
            host_bits: if self.mask_host_bits { HostBits::Mask } else { HostBits::Refuse },
        })
    }
}

/// The value of `--peer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(pub PeerChoice);

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        fibula::sources::parse_peer(text).map(Self)
    }
}

/// The sources in comma-separated lists. Those of the network are fetched.
pub fn parse_list(names: &[String], read: &ReadArgs) -> Result<Vec<(String, Source)>, Failure> {
    let mut sources = Vec::new();
    for list in names {
        if !list.split(',').any(fetch::is_remote) || Path::new(list).exists() {
            sources.extend(Source::parse_list(std::slice::from_ref(list))?);
            continue;
        }
        for name in list.split(',') {
            match fetch::is_remote(name) {
                true => sources.extend(fetch::tables(name, read)?),
                false => sources.push((name.to_owned(), Source::parse(name)?)),
            }
        }
    }
    Ok(sources)
}

/// The sources of `--table`, or of the default table if it is not given.
pub fn tables(named: &[String], read: &ReadArgs) -> Result<Vec<(String, Source)>, Failure> {
    parse_list(&config::tables(named)?, read)
}

pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or tab, or space".to_owned()),
    }
}

/// Parses `v4` or `v6`.
pub fn parse_family(text: &str) -> Result<Family, String> {
    [Family::V4, Family::V6].into_iter().find(|f| f.name() == text).ok_or("v4 or v6".to_owned())
}

/// Parses `yes` or `no`.
pub fn parse_yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

fn parse_header(text: &str) -> Result<HeaderLine, String> {
    parse_yes_no(text).map(|yes| if yes { HeaderLine::Present } else { HeaderLine::Absent })
}

/// The kind of a column's values, and the type of its texts.
#[derive(Clone, Copy, Debug)]
pub struct ColumnType(ColumnKind, Option<ScalarType>);

fn parse_kind(text: &str) -> Result<(String, ColumnType), String> {
    let (name, kind) = text.rsplit_once('=').unwrap_or_default();
    let kind = match kind {
        "int" => ColumnType(ColumnKind::Int, None),
        "str" => ColumnType(ColumnKind::Str, None),
        "float" => ColumnType(ColumnKind::Str, Some(ScalarType::Double)),
        "bool" => ColumnType(ColumnKind::Str, Some(ScalarType::Bool)),
        _ => return Err("NAME=int, NAME=float, NAME=bool or NAME=str".to_owned()),
    };
    Ok((name.to_owned(), kind))
}
