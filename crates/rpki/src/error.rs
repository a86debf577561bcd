use std::fmt;
use std::io;

use fibula_rib::TableError;

/// The position and text of an error in a file of VRPs or ASPAs. No part of such a file is used, because a missing VRP
/// can make other routes invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadVrps {
    /// The line, counted from 1. In JSON, the line where the VRP ends.
    pub line: usize,
    /// The column in that line, counted from 1, in bytes; 0 if unknown.
    pub column: usize,
    /// The error.
    pub what: String,
}

impl fmt::Display for BadVrps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, what } = self;
        match column {
            0 => write!(f, "line {line}: {what}"),
            column => write!(f, "line {line}, byte {column}: {what}"),
        }
    }
}

impl std::error::Error for BadVrps {}

/// The error of reading VRPs or validating routes.
#[derive(Debug)]
#[non_exhaustive]
pub enum RpkiError {
    /// A file could not be opened, read or decompressed.
    Io {
        /// The file.
        file: String,
        /// The error of the operating system or the decompressor.
        error: io::Error,
    },
    /// The content of a file is not VRPs.
    Bad {
        /// The file.
        file: String,
        /// The position, and the error.
        error: BadVrps,
    },
    /// A file has no VRPs.
    Empty {
        /// The file.
        file: String,
    },
    /// The content of a file is not ASPAs.
    BadAspas {
        /// The file.
        file: String,
        /// The position, and the error.
        error: BadVrps,
    },
    /// The content of a file is not relations.
    BadRelations {
        /// The file.
        file: String,
        /// The position, and the error.
        error: BadVrps,
    },
    /// A file has no ASPAs.
    NoAspas {
        /// The file.
        file: String,
    },
    /// The table does not have the column of origins.
    NoColumn {
        /// The column.
        asked: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A value in the column of origins is not an AS.
    NoOrigin {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// The table does not have the column of AS paths.
    NoPaths {
        /// The existing columns.
        columns: Vec<String>,
    },
    /// A value in the column of AS paths is not a path.
    NoPath {
        /// The column.
        column: String,
        /// The value.
        value: String,
    },
    /// The table cannot hold the columns.
    Table(TableError),
}

impl RpkiError {
    /// A hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::Io { .. } | Self::BadRelations { .. } | Self::Table(_) => return None,
            Self::Bad { .. } => {
                "VRPs are the JSON or CSV that routinator (`routinator vrps --format json`) and rpki-client \
                 (`json`, `csv`) write; get the file again, or correct the line"
            }
            Self::Empty { .. } => {
                "without VRPs every route is not-found: run the validator again, or set --allow-empty"
            }
            Self::BadAspas { .. } => {
                "ASPAs are in the JSON that rpki-client and routinator (`routinator --enable-aspa vrps --format \
                 json`) write; get the file again, or correct the line"
            }
            Self::NoAspas { .. } => {
                "without ASPAs no path can be verified: run the validator with ASPAs (`routinator \
                 --enable-aspa`), or set --allow-empty"
            }
            Self::NoColumn { .. } => {
                "--origin names the column with the AS that originates each route"
            }
            Self::NoOrigin { .. } => {
                "an origin is a number, AS64500, empty, or a set {64500,64501}; --origin names another column"
            }
            Self::NoPaths { .. } => {
                "ASPAs verify the column as_path: build the snapshot with --as-path, and name the column in \
                 --columns if that is given"
            }
            Self::NoPath { .. } => {
                "an AS path is as 64500 64501 {64502,64503}, the neighbour first"
            }
        })
    }
}

impl fmt::Display for RpkiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => write!(f, "{file}: {error}"),
            Self::Bad { file, error }
            | Self::BadAspas { file, error }
            | Self::BadRelations { file, error } => write!(f, "{file}, {error}"),
            Self::NoAspas { file } => write!(f, "{file}: no ASPAs in it"),
            Self::Empty { file } => write!(f, "{file}: no VRPs in it"),
            Self::NoColumn { asked, columns } if columns.is_empty() => {
                write!(f, "no column {asked} with the origin of routes: the table has no columns")
            }
            Self::NoColumn { asked, columns } => write!(
                f,
                "no column {asked} with the origin of routes; there are: {}",
                columns.join(", ")
            ),
            Self::NoOrigin { column, value } => {
                write!(f, "column {column}: {value:?} is no AS number")
            }
            Self::NoPaths { columns } if columns.is_empty() => {
                f.write_str("no column as_path: the table has no columns")
            }
            Self::NoPaths { columns } => {
                write!(
                    f,
                    "no column as_path with the AS paths of routes; there are: {}",
                    columns.join(", ")
                )
            }
            Self::NoPath { column, value } => {
                write!(f, "column {column}: {:?} is no AS path", crate::decode::shortened(value))
            }
            Self::Table(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RpkiError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            Self::Bad { error, .. }
            | Self::BadAspas { error, .. }
            | Self::BadRelations { error, .. } => Some(error),
            Self::Table(error) => Some(error),
            _ => None,
        }
    }
}

impl From<TableError> for RpkiError {
    fn from(error: TableError) -> Self {
        Self::Table(error)
    }
}
