//! Which columns hold the addresses: one rule for text, and for the frames of Python.

use std::borrow::Cow;

use super::guess::Guess;
use super::key::{Key, KeyError, parse_counted, parse_key, parse_network, parse_range};
use super::layout::excerpt;
use super::options::KeyColumns;
use crate::HostBits;

/// The cells of a row.
pub type SampleRow = Vec<Vec<u8>>;

/// A sample of a table: up to a hundred rows say as much as all.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// The rows, without the header. Rows may have fewer cells than others.
    pub rows: &'a [SampleRow],
    /// The names of the columns; empty if they have none.
    pub names: &'a [String],
    /// Whether each cell certainly is one value. Otherwise, two columns may be an address and free text behind it.
    pub delimited: bool,
}

/// The columns with the addresses; numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressColumns {
    /// A prefix, an address or `start-end`.
    One(usize),
    /// The first and the last address of a range, as integers if `decimal`.
    Two {
        /// The column of the first address.
        start: usize,
        /// The column of the last address.
        end: usize,
        /// Whether both are integers.
        decimal: bool,
    },
    /// The first address of a range, and its number of addresses.
    Counted {
        /// The column of the first address.
        start: usize,
        /// The column of the number.
        count: usize,
    },
    /// A network, and its netmask or length.
    Net {
        /// The column of the network's address.
        addr: usize,
        /// The column of the length.
        len: usize,
        /// Whether masks are inverse: `0.0.0.255` is 24.
        wildcard: bool,
    },
}

/// The result of [`roles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// The columns with the addresses.
    pub key: AddressColumns,
    /// How an ambiguous table was read; see [`Sink::noted`](crate::Sink::noted).
    pub notes: Vec<&'static str>,
}

/// Finds the columns with the addresses of a table: by the names, else by the cells.
///
/// ```
/// use fibula_ingest::text::{AddressColumns, KeyColumns, Sample, roles};
///
/// let names = ["Network", "Prefix_Length", "site"].map(String::from);
/// let rows = [["10.0.0.0", "8", "hq"], ["10.1.0.0", "16", "lab"]];
/// let rows = rows.map(|row| row.map(|cell| cell.as_bytes().to_vec()).to_vec());
/// let found = roles(Sample { rows: &rows, names: &names, delimited: true }, &KeyColumns::Auto)?;
/// assert_eq!(found.key, AddressColumns::Net { addr: 0, len: 1, wildcard: false });
/// assert!(found.notes.is_empty());
/// # Ok::<(), String>(())
/// ```
///
/// # Errors
/// If a column of `wanted` does not exist, or if the table can be read in two ways of which neither is likely; the text
/// names the option that decides.
pub fn roles(sample: Sample<'_>, wanted: &KeyColumns) -> Result<Roles, String> {
    let width = sample.rows.iter().map(Vec::len).max().unwrap_or(1).max(sample.names.len());
    Guess {
        rows: sample.rows,
        names: sample.names,
        named: !sample.names.is_empty(),
        width,
        delimited: sample.delimited,
    }
    .roles(wanted)
}

impl AddressColumns {
    /// The column of the addresses, or of the first ones.
    pub fn start(self) -> usize {
        match self {
            Self::One(at)
            | Self::Two { start: at, .. }
            | Self::Counted { start: at, .. }
            | Self::Net { addr: at, .. } => at,
        }
    }

    /// The column of the last addresses, the numbers or the lengths.
    pub fn second(self) -> Option<usize> {
        match self {
            Self::One(_) => None,
            Self::Two { end: at, .. }
            | Self::Counted { count: at, .. }
            | Self::Net { len: at, .. } => Some(at),
        }
    }

    /// Whether the addresses are in this column.
    pub fn has(self, at: usize) -> bool {
        self.start() == at || self.second() == Some(at)
    }

    /// The addresses of a row.
    pub(crate) fn read(
        self,
        fields: &[&[u8]],
        host_bits: HostBits,
    ) -> Result<Key, Cow<'static, str>> {
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let start = field(self.start());
        let (key, between) = match self {
            Self::One(_) => (parse_key(start, host_bits), ""),
            Self::Net { len, wildcard, .. } => (
                parse_network(start, field(len), wildcard, host_bits).map(Key::Prefix),
                ", netmask or length ",
            ),
            Self::Two { end, decimal, .. } => (parse_range(start, field(end), decimal), " to "),
            Self::Counted { count, .. } => {
                (parse_counted(start, field(count)), ", number of addresses ")
            }
        };
        key.map_err(|error| self.complain(error, start, between, self.second().map(field)))
    }

    #[cold]
    fn complain(
        self,
        error: KeyError,
        start: &[u8],
        between: &str,
        second: Option<&[u8]>,
    ) -> Cow<'static, str> {
        let second = second.map(excerpt).unwrap_or_default();
        format!("{}: {}{between}{second}", error.text(), excerpt(start)).into()
    }
}
