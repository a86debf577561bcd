//! The text of a configuration, in TOML.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::ops::Range;
use std::path::Path;

use fibula_core::AnyPrefix;
use fibula_ingest::bounded;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};

use super::{ConfigError, Problem};

/// Maximum number of bytes of a file of configuration.
const LONGEST: u64 = 16 << 20;

/// The text in a file of at most so many bytes.
pub fn text_of(path: &Path, longest: u64) -> io::Result<String> {
    let mut text = String::new();
    File::open(path).and_then(|file| bounded(file, longest).read_to_string(&mut text))?;
    Ok(text)
}

/// Reads a file of configuration.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let unreadable = |error| Problem::Unreadable { setting: "--config", error };
    text_of(path, LONGEST).map_err(|error| ConfigError::from(unreadable(error)).in_file(path))
}

/// A list of prefixes; an address is its host's.
pub(super) fn prefixes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<AnyPrefix>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let prefix = |text: &String| match text.parse::<IpAddr>() {
        Ok(address) => Ok(AnyPrefix::host(address)),
        Err(_) => text.parse().map_err(de::Error::custom),
    };
    texts.iter().map(prefix).collect()
}

/// The description of a type for a user, by its name in the parser's messages.
const TYPES: [(&str, &str); 8] = [
    ("a sequence", "a list: [\"...\"], or tables with a head in [[ ]] each"),
    ("a string", "text in quotes"),
    ("path string", "a path in quotes"),
    ("usize", "a number from 0"),
    ("u64", "a number from 0"),
    ("u32", "a number from 0 to 4294967295"),
    ("u16", "a number from 0 to 65535"),
    ("a boolean", "true or false"),
];

/// Messages of the address parsers, and the correct form.
const ADDRESSES: [(&str, &str); 3] = [
    ("invalid socket address syntax", "an address with a port: 127.0.0.1:2620 or [::1]:2620"),
    ("invalid IP address syntax", "an address without a prefix length: 192.0.2.1 or 2001:db8::1"),
    ("invalid IPv4 address syntax", "an address such as 192.0.2.9"),
];

/// The text of a file of configuration.
pub struct Text<'a> {
    /// The text.
    pub text: &'a str,
    /// The file's name.
    pub name: &'a str,
    /// The page that has all keys.
    pub page: &'a str,
}

impl Text<'_> {
    /// Parses the text as the wanted type.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        toml::from_str(self.text).map_err(|error| {
            let mut what =
                error.message().trim_end().replace("invalid type: map", "invalid type: a table");
            for (from, to) in TYPES {
                what = what.replace(&format!("expected {from}"), &format!("expected {to}"));
            }
            for (from, to_write) in ADDRESSES {
                what = what.replace(from, &format!("{from}; write {to_write}"));
            }
            self.error(error.span(), Problem::Syntax(what))
        })
    }

    /// The error for a problem at these bytes of the text.
    pub fn error(&self, at: Option<Range<usize>>, problem: Problem) -> ConfigError {
        let Self { text, name, page } = self;
        let line = |at: Range<usize>| text[..at.start.min(text.len())].matches('\n').count() + 1;
        ConfigError::from(problem)
            .in_file(*name)
            .at_line(at.map(line))
            .or_hint(format_args!("{page} has every key of the file"))
    }
}
