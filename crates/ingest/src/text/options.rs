use crate::{ColumnKind, HostBits, ScalarType};

/// How to read text. The default finds everything out from the first megabyte.
///
/// Columns are named by their name or by their number in the file, counted from 1.
///
/// ```
/// use fibula_ingest::text::{Header, KeyColumns, TextOptions};
/// use fibula_ingest::ColumnKind;
///
/// // asn;first;last;name, without a header
/// let options = TextOptions {
///     delimiter: Some(b';'),
///     header: Header::Absent,
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
    /// The byte between fields; a space stands for any white space. `None`: found out.
    pub delimiter: Option<u8>,
    /// Whether the first line names the columns.
    pub header: Header,
    /// Names for the columns, all of them in file order, the address columns included. They replace
    /// those of a header. Columns beyond have no name but `valueN`; more names than columns do not fit. Of
    /// lines separated by blanks, the last named column takes the rest.
    pub names: Vec<String>,
    /// Where the prefix is.
    pub key: KeyColumns,
    /// The value columns to keep, in this order; `None` keeps all.
    pub columns: Option<Vec<String>>,
    /// Kinds that are not to be guessed.
    pub kinds: Vec<(String, ColumnKind)>,
    /// Columns of text whose values are of this type. Others are if all values of the first megabyte are booleans
    /// (`true`, `false`) or fractions as programs write them (`47.25`, not `1.10`), and no kind is given.
    pub types: Vec<(String, ScalarType)>,
    /// What to do with bits beyond the prefix length.
    pub host_bits: HostBits,
}

/// Whether the first line names the columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Header {
    /// If it has words where the next lines have addresses and numbers.
    #[default]
    Auto,
    /// It does.
    Present,
    /// It does not.
    Absent,
}

/// Which columns say what addresses a line is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeyColumns {
    /// Found out: by the header's names (`prefix`, `network`, `cidr`, `start`, `end`...), else by
    /// content: the first column of prefixes; else the first of addresses, which is a range's start if
    /// the next column is its end in every line.
    #[default]
    Auto,
    /// This column holds a prefix, an address or `start-end`.
    Prefix(String),
    /// These two hold the first and the last address, or a network and its netmask or length.
    Range(String, String),
}
