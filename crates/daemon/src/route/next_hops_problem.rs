//! The problems of files of next hops.

use std::fmt;

/// A problem of a file of next hops, or of its table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextHopsProblem {
    /// The line has a value and nothing else.
    ValueAlone(String),
    /// The value has a line already.
    SameValue(String),
    /// The file has no line with a value and its next hops.
    NoLine,
    /// A word has no value.
    WordAlone(String),
    /// A next hop has the word twice.
    SameWord(String),
    /// No word of a next hop is this one.
    UnknownWord(String),
    /// A kind of route is followed by something.
    KindWithMore(String),
    /// The value of a word is of another type.
    Value {
        /// The word.
        word: String,
        /// Its value.
        value: String,
        /// The type of its values.
        what: &'static str,
    },
    /// The router has no port with this number.
    NoPort(String),
    /// A next hop has neither a gateway nor a port.
    Nowhere,
    /// A weight is zero.
    ZeroWeight,
    /// The table has no column with this name.
    NoColumn {
        /// The name.
        column: String,
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// No value of the table has a line.
    NoValue {
        /// The first value.
        first: String,
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// Without a file, the table needs a column of gateways.
    NoGatewayColumn {
        /// The columns of the table.
        columns: Vec<String>,
    },
    /// A value of the table's columns is of another type.
    Row {
        /// The row of the values.
        row: u32,
        /// The column.
        column: &'static str,
        /// The value.
        text: String,
    },
}

impl NextHopsProblem {
    /// What to do about it.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Self::NoGatewayColumn { .. } => {
                "--next-hops FILE maps each value to a next hop; docs/router.md describes its format"
            }
            _ => "docs/router.md has the form of the file",
        }
    }
}

/// The names of columns, in a sentence about a table.
fn list(columns: &[String]) -> String {
    match columns {
        [] => "it has no columns".to_owned(),
        some => format!("its columns: {}", some.join(", ")),
    }
}

impl fmt::Display for NextHopsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ValueAlone(value) => write!(f, "{value:?} has no next hops behind it"),
            Self::SameValue(value) => write!(f, "{value} occurs twice"),
            Self::NoLine => f.write_str("it has no line with a value and its next hops"),
            Self::WordAlone(word) => write!(f, "{word} has nothing behind it"),
            Self::SameWord(word) => {
                write!(f, "{word} occurs twice: next hops are separated by commas")
            }
            Self::UnknownWord(word) => write!(
                f,
                "{word:?} is not via, port, weight, local, blackhole, unreachable or prohibit"
            ),
            Self::KindWithMore(kind) => write!(f, "{kind} takes nothing after it"),
            Self::Value { word, value, what } => write!(f, "{word} {value:?} is no {what}"),
            Self::NoPort(number) => {
                write!(f, "there is no port {number}: ports have numbers from 0, in their order")
            }
            Self::Nowhere => {
                f.write_str("a next hop has neither via nor port (or a comma has none behind it)")
            }
            Self::ZeroWeight => f.write_str("a weight is at least 1"),
            Self::NoColumn { column, columns } => {
                write!(f, "the table has no column {column} ({})", list(columns))
            }
            Self::NoValue { first, columns } => write!(
                f,
                "no value of the table has a line, so no packet would be forwarded; its first value is {first:?} ({})",
                list(columns)
            ),
            Self::NoGatewayColumn { columns } => {
                write!(f, "the table has no column next_hop ({})", list(columns))
            }
            Self::Row { row, column, text } => {
                write!(f, "row {row} of the table's values: {column} {text:?} is not one")
            }
        }
    }
}
