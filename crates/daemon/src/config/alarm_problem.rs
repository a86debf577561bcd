//! The problems of rules on route changes.

use std::fmt;

use fibula_core::AnyPrefix;

/// A problem of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AlarmProblem {
    /// Its name is empty, or has control characters.
    Name,
    /// Another rule has its name.
    SameName,
    /// There is no such kind.
    Kind {
        /// The kind.
        kind: String,
        /// All kinds.
        known: String,
    },
    /// Its kind needs a key that it does not have.
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Its kind has no such key.
    Foreign {
        /// The key.
        key: &'static str,
        /// The keys of the kind.
        keys: String,
    },
    /// A list names nothing.
    Empty {
        /// The key.
        key: &'static str,
    },
    /// A text is not a prefix.
    Prefix {
        /// The text.
        prefix: String,
        /// Why not.
        why: String,
    },
    /// A maximum length allows nothing that is longer than a prefix, or is longer than addresses are.
    MaxLength {
        /// The length.
        max: u8,
        /// The prefix.
        prefix: AnyPrefix,
    },
    /// Origins of longer routes are named, of which no length is allowed.
    OriginsOfNone,
    /// A time is zero, or longer than a year.
    Time {
        /// The key.
        key: &'static str,
    },
    /// The number of changes is out of range.
    Changes {
        /// The largest number.
        most: usize,
    },
    /// The table keeps no changes.
    NoHistory,
}

impl AlarmProblem {
    /// What to do about it.
    pub(super) fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Kind { known, .. } => format!("the kinds are {known}"),
            Self::Foreign { keys, .. } => {
                format!("beside name, kind and tables, rules of this kind have: {keys}")
            }
            Self::Missing { .. } => "docs/alarms.md has the keys of each kind".to_owned(),
            Self::OriginsOfNone => {
                "give max-length as well: up to it, longer routes of these origins are allowed"
                    .to_owned()
            }
            Self::NoHistory => "set tables.history, whose default is 100000".to_owned(),
            _ => return None,
        })
    }
}

impl fmt::Display for AlarmProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("its name is empty, or has control characters"),
            Self::SameName => f.write_str("another rule has this name"),
            Self::Kind { kind, .. } => write!(f, "there is no kind {kind:?}"),
            Self::Missing { key } => write!(f, "a rule of this kind needs {key}"),
            Self::Foreign { key, .. } => write!(f, "a rule of this kind has no {key}"),
            Self::Empty { key } => write!(f, "{key} names none"),
            Self::Prefix { prefix, why } => write!(f, "{prefix:?} is not a prefix: {why}"),
            Self::MaxLength { max, prefix } => {
                write!(f, "max-length {max} is not between the length of {prefix} and its family's")
            }
            Self::OriginsOfNone => f.write_str("origins are named, but no longer route is allowed"),
            Self::Time { key } => write!(f, "{key} is zero, or longer than a year"),
            Self::Changes { most } => write!(f, "changes is a number from 2 to {most}"),
            Self::NoHistory => f.write_str("alarms need the history of changes, which is 0"),
        }
    }
}
