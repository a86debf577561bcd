//! The configuration of the user, and the table of commands that name none.

use std::collections::BTreeMap;
use std::env;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use fibula_fetch::{NamedSource, shown_name};
use fibula_rib::Provenance;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::failure::Failure;
use crate::output::utc;
use crate::progress::note;

/// Maximum length of a configuration.
const LONGEST: u64 = 1 << 20;

/// The configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// The tables of commands without `--table`.
    #[serde(deserialize_with = "fibula_fetch::one_or_several")]
    pub table: Vec<String>,
    /// Fetch nothing.
    pub offline: bool,
    /// The age of a file until which its server is not asked again.
    #[serde(deserialize_with = "duration")]
    pub max_age: Option<Duration>,
    /// Longest time without a byte.
    #[serde(deserialize_with = "duration")]
    pub timeout: Option<Duration>,
    /// Largest size of a file.
    #[serde(deserialize_with = "bytes")]
    pub max_size: Option<u64>,
    /// The folder of the cache.
    pub cache: Option<PathBuf>,
    /// The user's sources.
    pub sources: BTreeMap<String, NamedSource>,
}

impl Config {
    /// Reads the file that `FIBULA_CONFIG` names, else the usual one, which need not exist.
    pub fn read() -> Result<Self, Failure> {
        let (path, is_named) = match env::var_os("FIBULA_CONFIG") {
            Some(name) if name.is_empty() => return Ok(Self::default()),
            Some(name) => (PathBuf::from(name), true),
            None => match fibula_fetch::config_file() {
                Some(path) => (path, false),
                None => return Ok(Self::default()),
            },
        };
        match File::open(&path) {
            Ok(file) => Self::parse(&path, file),
            Err(error) if error.kind() == ErrorKind::NotFound && !is_named => Ok(Self::default()),
            Err(error) => Err(Failure::io(path.display(), &error)),
        }
    }

    fn parse(path: &Path, file: File) -> Result<Self, Failure> {
        let mut text = String::new();
        let read = fibula_ingest::bounded(file, LONGEST).read_to_string(&mut text);
        read.map_err(|error| Failure::io(path.display(), &error))?;
        toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| {
                text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
            });
            let message = error.message().trim_end();
            Failure::new(format_args!("{}, line {line}: {message}", path.display()))
                .hint("docs/fetch.md has the keys of the configuration")
        })
    }
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    fibula_fetch::parse_duration(&text).map(Some).map_err(D::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    parse_size(&text).map(Some).map_err(D::Error::custom)
}

/// Parses `100000`, `512MiB`, `4GiB`.
pub fn parse_size(text: &str) -> Result<u64, &'static str> {
    const FORMS: &str = "a size is a number of bytes, or one such as 64KiB, 512MiB, 4GiB";
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];
    let found = units.iter().find_map(|(unit, of)| Some((text.strip_suffix(unit)?, *of)));
    let (digits, unit) = found.unwrap_or((text, 1_u64));
    let number = digits.trim_end().parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.ok_or(FORMS)
}

/// The name of the default table, and who chose it, until its date is reported.
static CHOSEN: Mutex<Option<(String, &'static str)>> = Mutex::new(None);

/// The names of `--table`; if there are none, those of `FIBULA_TABLE`, else of the configuration, else the embedded
/// table. [`report`] then says which it was.
pub fn tables(named: &[String]) -> Result<Vec<String>, Failure> {
    if !named.is_empty() {
        return Ok(named.to_vec());
    }
    let variable = env::var("FIBULA_TABLE").ok().filter(|names| !names.is_empty());
    let (names, by) = match variable {
        Some(names) => (vec![names], "FIBULA_TABLE"),
        None => match Config::read()?.table {
            names if names.is_empty() => (vec![fibula::sources::EMBEDDED.to_owned()], ""),
            names => (names, "the configuration"),
        },
    };
    if let Ok(mut chosen) = CHOSEN.lock() {
        let parts = names.iter().flat_map(|list| list.split(','));
        *chosen = Some((parts.map(shown_name).collect::<Vec<_>>().join(","), by));
    }
    Ok(names)
}

/// Reports the table that was used because none was named, and the date of its data: always if the environment or the
/// configuration chose it, and of the embedded table on a terminal.
pub fn report(provenance: Option<&Provenance>) {
    let Some((names, by)) = CHOSEN.lock().ok().and_then(|mut chosen| chosen.take()) else { return };
    if by.is_empty() && !std::io::stderr().is_terminal() {
        return;
    }
    let by = if by.is_empty() { "no --table".to_owned() } else { format!("by {by}") };
    let dates = provenance.into_iter().flat_map(|provenance| &provenance.sources);
    let date = dates.filter_map(|source| source.date).max();
    let date = date.map_or(String::new(), |date| format!(", data of {}", utc(date)));
    note(format_args!("table {names} ({by}){date}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (text, bytes) in [("0", 0), ("12", 12), ("12B", 12), ("1KiB", 1024), ("2 GiB", 2 << 30)]
        {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "KiB", "-1", "1.5GiB", "1kb", "99999999999GiB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn keys() {
        let parse = |text: &str| toml::from_str::<Config>(text);
        let config = parse(
            "table = 'fetch:aws'\nmax-age = '2h'\nmax-size = '1MiB'\n[sources.mine]\nurl = 'https://h/'",
        );
        let config = config.unwrap();
        assert_eq!(config.table, ["fetch:aws"]);
        assert_eq!(parse("table = ['a', 'b']").unwrap().table, ["a", "b"]);
        assert_eq!(config.max_age, Some(Duration::from_secs(7200)));
        assert_eq!((config.max_size, config.sources.len()), (Some(1 << 20), 1));
        for wrong in [
            "tabel = 'x'",
            "max-age = 'soon'",
            "max-age = 3",
            "[sources.mine]\nurls = 'https://h/'",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
