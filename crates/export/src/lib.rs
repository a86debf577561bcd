//! Writes the routes and values of a [`Table`] in the formats of other tools.
//!
//! - [`text()`]: prefixes with their values, as TSV, CSV, or the CSV of a ClickHouse `ip_trie`
//!   dictionary.
//! - [`intervals()`]: Parquet with one row for each run of addresses that have the same values, for
//!   joins by range in databases that know no prefixes.
//! - [`prefixes()`]: Parquet with a row for each prefix.
//! - [`mmdb()`]: the format of MaxMind's readers.
//! - [`PathsWriter`]: all BGP paths of an archive, as Parquet, Arrow or JSON lines.
//! - [`memory`]: an engine's tables as the memories of a lookup pipeline in hardware.
#![forbid(unsafe_code)]

mod intervals;
pub mod memory;
mod mmdb;
mod paths;
mod text;

use std::fmt;
use std::io;

#[cfg(doc)]
use fibula_rib::Table;

pub use intervals::{intervals, prefixes};
pub use mmdb::mmdb;
pub use paths::{BgpPath, PathsFormat, PathsWriter};
pub use text::{TextFormat, text};

/// The error of writing a table.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing the output failed.
    Write(io::Error),
    /// A limit of the format is exceeded.
    Limit {
        /// The exceeded quantity.
        what: &'static str,
    },
    /// The error of the Parquet writer.
    Parquet(String),
    /// The engine's tables cannot be memories of a pipeline.
    Scheme {
        /// The engine's scheme.
        scheme: &'static str,
        /// The reason, and what to do.
        what: String,
    },
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => write!(f, "writing the output: {error}"),
            Self::Limit { what } => write!(f, "the format cannot hold so many {what}"),
            Self::Parquet(what) => write!(f, "writing Parquet: {what}"),
            Self::Scheme { scheme, what } => write!(f, "{scheme} {what}"),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Write(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Write(error)
    }
}

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
