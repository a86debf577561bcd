use alloc::borrow::Cow;
use core::fmt;

use crate::Family;

/// The reason why a prefix was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixError {
    /// The length exceeds the family's bits.
    Length {
        /// The length given.
        len: u32,
        /// The largest length that the family allows, 32 or 128.
        max: u8,
    },
    /// Bits beyond the prefix length are set; [`Prefix::masked`](crate::Prefix::masked) clears them.
    HostBits,
    /// The text is not `address/length`.
    Syntax,
    /// The text is a prefix of the other family.
    Family {
        /// The expected family.
        expected: Family,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { len, max } => write!(f, "prefix length {len} exceeds {max}"),
            Self::HostBits => f.write_str("bits beyond the prefix length are set"),
            Self::Syntax => f.write_str("not an address/length prefix"),
            Self::Family { expected } => write!(f, "not an IP{expected} prefix"),
        }
    }
}

impl core::error::Error for PrefixError {}

/// The reason why an engine could not be built from a table. The table itself is valid, and another engine may accept
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// The table exceeds a limit of the scheme.
    Limit {
        /// The engine's name.
        engine: &'static str,
        /// The limited quantity, in the plural: "next hops", "ranges".
        what: &'static str,
        /// The largest number that the engine can hold.
        limit: u64,
        /// The number that the table needs.
        needed: u64,
    },
    /// A parameter is outside its range.
    Config {
        /// The engine's name.
        engine: &'static str,
        /// The parameter and its range.
        reason: Cow<'static, str>,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limit { engine, what, limit, needed } => {
                write!(
                    f,
                    "engine {engine}: the table needs {needed} {what}, the scheme holds {limit}"
                )
            }
            Self::Config { engine, reason } => write!(f, "engine {engine}: {reason}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// The reason why stored tables were refused: they are damaged, of another format, or inconsistent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    table: Cow<'static, str>,
    reason: Cow<'static, str>,
    is_outdated: bool,
}

impl LoadError {
    /// An error in the table named `table`.
    pub fn new(table: impl Into<Cow<'static, str>>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { table: table.into(), reason: reason.into(), is_outdated: false }
    }

    /// The table named `table` is of a form that an earlier version stored, and this one does not read. Nothing is
    /// damaged: the engine can be built from the routes.
    ///
    /// ```
    /// let error = fibula_core::LoadError::outdated("words");
    /// assert!(error.is_outdated());
    /// assert_eq!(error.to_string(), "table words: is of an earlier version");
    /// ```
    pub fn outdated(table: impl Into<Cow<'static, str>>) -> Self {
        Self { is_outdated: true, ..Self::new(table, "is of an earlier version") }
    }

    /// Whether an earlier version stored the tables, in a form that is not read any more.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// The table with the error.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// The error in the table.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "table {}: {}", self.table, self.reason)
    }
}

impl core::error::Error for LoadError {}
