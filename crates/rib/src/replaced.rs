//! Routes that replaced others: which, and where both were said.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A prefix for which a later route replaced an earlier one, of sources without BGP peers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replacement {
    /// The prefix.
    pub prefix: String,
    /// Whose route is gone.
    pub earlier: Mention,
    /// Whose route counts.
    pub later: Mention,
}

impl Replacement {
    /// How many of each kind, repeated in one source and replaced by another, a table names.
    pub const NAMED: usize = 20;
}

/// Where a route was said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mention {
    /// The source.
    pub source: String,
    /// Where in it: `line 7`. Empty if that is not known.
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
