//! Routes that replaced others, and the positions of both in their sources.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A prefix for which a later route replaced an earlier one, in sources without BGP peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The prefix.
    pub prefix: String,
    /// The position of the replaced route.
    pub earlier: Mention,
    /// The position of the route that is used.
    pub later: Mention,
}

impl Replacement {
    /// Maximum number of such prefixes that a table names, for each kind: repeated in one source, or replaced by
    /// another source.
    pub const NAMED: usize = 20;
}

/// The position of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The source.
    pub source: String,
    /// The position in the source, such as `line 7`. Empty if unknown.
    #[serde(default)]
    pub place: String,
}

impl Mention {
    /// Record `record` of a source of this format; 0 stands for an unknown one.
    pub(crate) fn new(source: &str, format: &str, record: u32) -> Self {
        let place = match (format, record) {
            (_, 0) => String::new(),
            ("python", record) => format!("row {}", record - 1),
            ("text" | "delegated" | "routes", line) => format!("line {line}"),
            (_, record) => format!("record {record}"),
        };
        Self { source: source.to_owned(), place }
    }
}

impl fmt::Display for Mention {
    /// `line 7 of a.csv`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.place {
            "" => f.write_str(&self.source),
            place => write!(f, "{place} of {}", self.source),
        }
    }
}

impl fmt::Display for Replacement {
    /// `10.0.0.0/8: line 7 of b.csv replaces line 3 of a.csv`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} replaces {}", self.prefix, self.later, self.earlier)
    }
}
