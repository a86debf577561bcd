use crate::{ColumnKind, HostBits, ScalarType};

/// Options for reading text. By default all of them are detected from the first mebibyte.
///
/// Columns are given by name, or by number in the file, counted from 1.
///
/// ```
/// use fibula_ingest::text::{HeaderLine, KeyColumns, TextOptions};
/// use fibula_ingest::ColumnKind;
///
/// // asn;first;last;name, without a header
/// let options = TextOptions {
///     delimiter: Some(b';'),
///     header: HeaderLine::Absent,
///     key: KeyColumns::Range("2".into(), "3".into()),
///     names: ["asn", "first", "last", "name"].map(String::from).to_vec(),
///     kinds: vec![("asn".into(), ColumnKind::Str)], // it may say "AS64500" further down
///     columns: Some(vec!["asn".into()]),            // the name is not wanted
///     ..TextOptions::default()
/// };
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextOptions {
    /// The byte between fields; a space means any white space. `None`: detected.
    pub delimiter: Option<u8>,
    /// Whether the first line has the column names.
    pub header: HeaderLine,
    /// Names for all columns in file order, including the address columns. They replace the names of a header.
    /// Columns without a name are called `valueN`. More names than columns are an error. In lines separated by
    /// blanks, the last named column gets the rest of the line.
    pub names: Vec<String>,
    /// The columns with the prefix.
    pub key: KeyColumns,
    /// The value columns to keep, in this order; `None` keeps all.
    pub columns: Option<Vec<String>>,
    /// Kinds of columns that are not detected.
    pub kinds: Vec<(String, ColumnKind)>,
    /// Text columns whose values have this type. Other columns are detected if no kind is given: all values of the
    /// first mebibyte must be booleans (`true`, `false`) or fractions as programs write them (`47.25`, not `1.10`).
    pub types: Vec<(String, ScalarType)>,
    /// How to treat bits beyond the prefix length.
    pub host_bits: HostBits,
}

/// Whether the first line has the column names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderLine {
    /// It does if it has words where the next lines have addresses and numbers.
    #[default]
    Auto,
    /// The first line has the column names.
    Present,
    /// The first line is data.
    Absent,
}

/// The columns with the addresses of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyColumns {
    /// Detected by the header's names (`prefix`, `network`, `cidr`, `start`, `end`...), else by content, which
    /// `docs/tables.md` describes.
    #[default]
    Auto,
    /// This column holds a prefix, an address or `start-end`.
    Prefix(String),
    /// These two columns hold the first and the last address, or a network and its netmask or length.
    Range(String, String),
}
