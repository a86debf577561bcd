//! Where tables come from, as the command line names them, and how feeds are to be read.

use std::fs::File;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;
use fibula_ingest::text::{Header, KeyColumns, TextOptions};
use fibula_ingest::{ColumnKind, Format, HostBits, ReadOptions, SourceSpec};
use fibula_rib::{BuilderOptions, PeerChoice};
use fibula_testkit::fib::{GenSpec, HopModel};

use crate::embedded;
use crate::failure::Failure;

/// One source of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The table inside the binary.
    Embedded,
    /// A generated table.
    Generated(GenSpec),
    /// A snapshot file.
    Snapshot(PathBuf),
    /// A file in any of ingest's formats, `-` for standard input.
    Feed(PathBuf),
}

impl Source {
    /// The source of this name. A file named like one of the special sources is reached as
    /// `./embedded`.
    pub fn parse(name: &str) -> Result<Self, Failure> {
        if name == embedded::NAME {
            return Ok(Self::Embedded);
        }
        if name.starts_with("gen:") {
            return GenSpec::from_str(name).map(Self::Generated).map_err(Failure::new);
        }
        let path = PathBuf::from(name);
        if name == "-" {
            return Ok(Self::Feed(path));
        }
        match is_snapshot(&path) {
            Ok(true) => Ok(Self::Snapshot(path)),
            Ok(false) => Ok(Self::Feed(path)),
            Err(error) => Err(Failure::io(name, &error).hint(
                "a table is a snapshot (.fib), a routing table file, gen:v4:2024:900000:1, or embedded",
            )),
        }
    }

    /// The sources in a comma-separated list. A file whose own name has commas is taken as it is.
    pub fn parse_list(names: &[String]) -> Result<Vec<(String, Self)>, Failure> {
        let mut sources = Vec::new();
        for list in names {
            let whole = Path::new(list).exists();
            let split: Vec<&str> = if whole { vec![list] } else { list.split(',').collect() };
            for name in split {
                sources.push((name.to_owned(), Self::parse(name)?));
            }
        }
        Ok(sources)
    }
}

/// What every snapshot begins with. Its last byte is left out: a file in which only line ends were
/// converted is better called a damaged snapshot than an unknown format.
const SNAPSHOT_MAGIC: &[u8] = b"\x89FIBULA";

fn is_snapshot(path: &Path) -> std::io::Result<bool> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false); // a pipe: what is read here would be missing later
    }
    let mut head = Vec::new();
    file.take(SNAPSHOT_MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(head == SNAPSHOT_MAGIC)
}

/// How feeds are read and what is kept of them.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Reading tables")]
pub struct ReadArgs {
    /// Format of the table files: auto, text, csv, tsv, ranges, mrt, mmdb
    #[arg(long, default_value = "auto", value_name = "FORMAT", hide_default_value = true)]
    pub format: Format,
    /// Stop at the first damaged record instead of counting and skipping it
    #[arg(long)]
    pub strict: bool,
    /// BGP peer whose routes are taken: most (the one with the most routes), an address, AS64500, or
    /// an index
    #[arg(long, default_value = "most", value_name = "PEER", hide_default_value = true)]
    pub peer: Peer,
    /// Keep only these value columns
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub columns: Option<Vec<String>>,
    /// Keep AS paths as text (BGP)
    #[arg(long)]
    pub as_path: bool,
    /// Keep communities as text (BGP)
    #[arg(long)]
    pub communities: bool,
    /// Text: the character between fields, or tab, space (any white space)
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    pub delimiter: Option<u8>,
    /// Text: the first line names the columns, or does not (default: found out)
    #[arg(long, value_name = "yes|no", value_parser = parse_header)]
    pub header: Option<Header>,
    /// Text: names for all columns in file order, address columns included
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    pub names: Vec<String>,
    /// Text: the column of prefixes, or the two with the first and last address; by name or number
    #[arg(long, value_delimiter = ',', num_args = 1, value_name = "COLUMN[,COLUMN]")]
    pub key: Vec<String>,
    /// Text: what a column holds, int or str, where that should not be guessed
    #[arg(long, value_name = "NAME=KIND,...", value_delimiter = ',', value_parser = parse_kind)]
    pub kind: Vec<(String, ColumnKind)>,
    /// Text: clear bits beyond the prefix length (10.0.0.1/8) instead of calling them damage
    #[arg(long)]
    pub mask_host_bits: bool,
    /// Replace the hops by synthetic ones: hash:256 (unrelated) or near:64 (shared by neighbours)
    #[arg(long, value_name = "MODEL")]
    pub synthetic_hops: Option<HopModel>,
}

impl ReadArgs {
    /// Everything found out, nothing asked for: for commands whose options are about other things.
    pub fn automatic() -> Self {
        Self {
            format: Format::Auto,
            strict: false,
            peer: Peer(PeerChoice::Most),
            columns: None,
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

    /// The file to read, in the format that was asked for.
    pub fn spec(&self, path: &Path) -> SourceSpec {
        let mut spec = SourceSpec::new(path);
        spec.format = self.format;
        spec
    }

    /// What the table builder keeps.
    pub fn builder(&self) -> BuilderOptions {
        BuilderOptions {
            peer: self.peer.0.clone(),
            columns: self.columns.clone(),
            as_path: self.as_path,
            communities: self.communities,
        }
    }

    /// What the decoders do.
    pub fn decoder<'a>(&self) -> Result<ReadOptions<'a>, Failure> {
        let key = match &*self.key {
            [] => KeyColumns::Auto,
            [prefix] => KeyColumns::Prefix(prefix.clone()),
            [first, last] => KeyColumns::Range(first.clone(), last.clone()),
            more => {
                let message = format_args!("--key takes one or two columns, not {}", more.len());
                return Err(Failure::new(message));
            }
        };
        let text = TextOptions {
            delimiter: self.delimiter,
            header: self.header.unwrap_or_default(),
            names: self.names.clone(),
            key,
            columns: None, // the table builder chooses, over all sources
            kinds: self.kind.clone(),
            host_bits: if self.mask_host_bits { HostBits::Mask } else { HostBits::Refuse },
        };
        Ok(ReadOptions {
            strict: self.strict,
            as_path: self.as_path,
            communities: self.communities,
            text,
            progress: None,
        })
    }
}

/// `--peer`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(pub PeerChoice);

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "most" {
            return Ok(Self(PeerChoice::Most));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self(PeerChoice::Address(address)));
        }
        let asn = text.get(..2).filter(|word| word.eq_ignore_ascii_case("as"));
        let choice = match asn {
            Some(_) => text[2..].parse().map(PeerChoice::As),
            None => text.parse().map(PeerChoice::Index),
        };
        choice.map(Self).map_err(|_| {
            "a peer is most, an address (192.0.2.1), an AS (AS64500) or an index (3)".to_owned()
        })
    }
}

pub fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"space" => Ok(b' '),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one ASCII character, or tab, or space".to_owned()),
    }
}

/// `yes` or `no`.
pub fn parse_yes_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

fn parse_header(text: &str) -> Result<Header, String> {
    parse_yes_no(text).map(|yes| if yes { Header::Present } else { Header::Absent })
}

fn parse_kind(text: &str) -> Result<(String, ColumnKind), String> {
    match text.rsplit_once('=') {
        Some((name, "int")) => Ok((name.to_owned(), ColumnKind::Int)),
        Some((name, "str")) => Ok((name.to_owned(), ColumnKind::Str)),
        _ => Err("NAME=int or NAME=str".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_sources() {
        assert_eq!(Source::parse("embedded").unwrap(), Source::Embedded);
        assert!(matches!(Source::parse("gen:v6:2024:1000:1").unwrap(), Source::Generated(_)));
        assert!(Source::parse("gen:v5:2024:1000:1").is_err());
        assert!(Source::parse("no/such/file").is_err());
        let list = Source::parse_list(&["embedded,gen:v4:2014:10:1".into()]).unwrap();
        assert_eq!(list.len(), 2);
    }

    #[test]
    fn peers() {
        for (text, choice) in [
            ("most", PeerChoice::Most),
            ("7", PeerChoice::Index(7)),
            ("AS64500", PeerChoice::As(64500)),
            ("as64500", PeerChoice::As(64500)),
            ("192.0.2.1", PeerChoice::Address([192, 0, 2, 1].into())),
        ] {
            assert_eq!(text.parse(), Ok(Peer(choice)), "{text}");
        }
        for text in ["", "AS", "ASx", "-1", "é7", "192.0.2"] {
            assert!(text.parse::<Peer>().is_err(), "{text}");
        }
    }
}
