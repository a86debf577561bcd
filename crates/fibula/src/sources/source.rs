use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use fibula_rib::{PeerChoice, table_choice};
use fibula_testkit::fib::GenSpec;

use crate::sources::{EMBEDDED, SourceError};

/// One source of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The table inside the program, with the countries of all address ranges.
    Embedded,
    /// A generated table.
    Generated(GenSpec),
    /// A snapshot file: its name ends in `.fib`, or it begins like a snapshot.
    Snapshot(PathBuf),
    /// A table of a checkpoint, called `rib.fib#bmp/pre-policy`.
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// The name of the table.
        table: String,
    },
    /// A file in any format of `fibula_ingest`, `-` for standard input.
    Feed(PathBuf),
}

impl Source {
    /// The source with this name. For a file named like one of the special sources, write `./embedded`.
    ///
    /// ```
    /// use fibula::sources::Source;
    /// assert_eq!(Source::parse("embedded")?, Source::Embedded);
    /// assert!(Source::parse("no/such/file").is_err());
    /// # Ok::<(), fibula::sources::SourceError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such file, or the specification of a generated table is invalid.
    pub fn parse(name: &str) -> Result<Self, SourceError> {
        if name == EMBEDDED {
            return Ok(Self::Embedded);
        }
        if name.starts_with("gen:") {
            let spec = GenSpec::from_str(name);
            return spec.map(Self::Generated).map_err(|e| SourceError::Generated(e.to_string()));
        }
        let path = PathBuf::from(name);
        if let Some((path, table)) = table_choice(&path) {
            return Ok(Self::Checkpoint { path, table });
        }
        if !path.exists()
            && let Some(what) = no_source(name)
        {
            return Err(SourceError::Name { name: name.to_owned(), what });
        }
        if name == "-" {
            return Ok(Self::Feed(path));
        }
        // A file named like a snapshot is one, or damaged: an empty file is no table of text then.
        if path.extension().is_some_and(|ext| ext == "fib") && path.is_file() {
            return Ok(Self::Snapshot(path));
        }
        match is_snapshot(&path) {
            Ok(true) => Ok(Self::Snapshot(path)),
            Ok(false) => Ok(Self::Feed(path)),
            Err(error) => Err(SourceError::Io { name: name.to_owned(), error }),
        }
    }

    /// The sources in a comma-separated list. If a file has exactly this name, commas included, the name is not
    /// split.
    ///
    /// # Errors
    /// The errors of [`Source::parse`].
    pub fn parse_list(names: &[String]) -> Result<Vec<(String, Self)>, SourceError> {
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

/// The kind of a name that is given by mistake.
fn no_source(name: &str) -> Option<&'static str> {
    if name.contains("://") {
        return Some(
            "this is a URL, and the library fetches nothing: `fibula fetch URL` does, and prints the file's name",
        );
    }
    let address = name.split_once('/').map_or(name, |(address, _)| address);
    address.parse::<IpAddr>().is_ok().then_some(
        "this is an address or a prefix, where a table is expected: a snapshot (.fib) or a routing \
         table file",
    )
}

/// The first bytes of every snapshot. Its last byte is left out: a file in which only line ends were
/// converted is better called a damaged snapshot than an unknown format.
const SNAPSHOT_MAGIC: &[u8] = b"\x89FIBULA";

fn is_snapshot(path: &Path) -> io::Result<bool> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(false); // a pipe: bytes read here would be missing later
    }
    let mut head = Vec::new();
    file.take(SNAPSHOT_MAGIC.len() as u64).read_to_end(&mut head)?;
    Ok(!head.is_empty() && SNAPSHOT_MAGIC.starts_with(&head))
}

/// Parses a choice of BGP peers: `best` (of all peers, the best path), `all`, `most`, an address, `AS64500`, or an
/// index.
///
/// # Errors
/// The valid choices, if the text is none.
pub fn parse_peer(text: &str) -> Result<PeerChoice, String> {
    match text {
        "best" => return Ok(PeerChoice::Best),
        "all" => return Ok(PeerChoice::All),
        "most" => return Ok(PeerChoice::Most),
        _ => {}
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(PeerChoice::Address(address));
    }
    let asn = text.get(..2).filter(|word| word.eq_ignore_ascii_case("as"));
    let choice = match asn {
        Some(_) => text[2..].parse().map(PeerChoice::As),
        None => text.parse().map(PeerChoice::Index),
    };
    choice.map_err(|_| {
        "a peer is best, all, most, an address (192.0.2.1), an AS (AS64500) or an index (3)"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers() {
        for (text, choice) in [
            ("best", PeerChoice::Best),
            ("all", PeerChoice::All),
            ("most", PeerChoice::Most),
            ("7", PeerChoice::Index(7)),
            ("AS64500", PeerChoice::As(64500)),
            ("as64500", PeerChoice::As(64500)),
            ("192.0.2.1", PeerChoice::Address([192, 0, 2, 1].into())),
        ] {
            assert_eq!(parse_peer(text), Ok(choice), "{text}");
        }
        for text in ["", "AS", "ASx", "-1", "é7", "192.0.2"] {
            assert!(parse_peer(text).is_err(), "{text}");
        }
    }

    /// A checkpoint holds every table, and an empty one does not pass for the others.
    #[test]
    fn a_table_of_a_checkpoint_is_chosen() {
        use fibula_core::{Attributes, Change, Update, Value};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rib.fib");
        let mut rib = fibula_rib::Rib::default();
        rib.name_global("bmp");
        let vrf = rib.vrf("bmp/pre-policy");
        rib.value_places(&["site"]);
        rib.peer(fibula_rib::Peer::default());
        let change = Change::Announce(Attributes::Values(&[Value::Str("a")]));
        let update = Update::new("10.0.0.0/8".parse().unwrap(), change);
        rib.apply(&Update { vrf, ..update }, &mut ()).unwrap();
        rib.checkpoint("").write(&path).unwrap();

        let name = path.to_str().unwrap();
        let open = |name: &str| crate::build(name).map_err(|error| error.to_string());
        let fib = open(&format!("{name}#bmp/pre-policy")).unwrap();
        let found = fib.lookup("10.1.2.3".parse().unwrap()).unwrap();
        assert_eq!(found.to_string(), "10.0.0.0/8 site=a");
        let why = open(name).err().unwrap();
        let tables = "the checkpoint has bmp/pre-policy (1 routes); choose one by its name";
        assert!(why.starts_with(&format!("{name}: its first table is empty; {tables}")), "{why}");
        let why = open(&format!("{name}#bmp/x")).err().unwrap();
        assert!(
            why.starts_with(&format!("{name}: there is no table \"bmp/x\"; {tables}")),
            "{why}"
        );
        assert!(fibula_fib::Fib::open(&path).is_err());
        let name = format!("{name}#bmp/pre-policy");
        assert_eq!(fibula_fib::Fib::open(&name).unwrap().len(), 1);
    }

    #[test]
    fn special_sources() {
        assert_eq!(Source::parse("embedded").unwrap(), Source::Embedded);
        assert!(matches!(Source::parse("gen:v6:2024:1000:1").unwrap(), Source::Generated(_)));
        assert!(Source::parse("gen:v5:2024:1000:1").is_err());
        assert!(Source::parse("no/such/file").is_err());
        for (name, what) in [
            ("https://example.net/rib.gz", "this is a URL"),
            ("10.0.0.0/8", "this is an address or a prefix"),
            ("2001:db8::1", "this is an address or a prefix"),
            ("gen:v4:2030", "gen:FAMILY:YEAR:PREFIXES"),
        ] {
            let error = Source::parse(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(what), "{error}");
        }
        let list = Source::parse_list(&["embedded,gen:v4:2014:10:1".into()]).unwrap();
        assert_eq!(list.len(), 2);
    }
}
