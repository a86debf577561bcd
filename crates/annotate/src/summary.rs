//! What annotation counted.

/// What was annotated, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Data rows: lines, records or packets; not headers, comments and empty lines.
    pub rows: u64,
    /// Addresses looked up; a row has one for each address column, less those below.
    pub addresses: u64,
    /// Of these, IPv4 addresses, v4-mapped IPv6 ones included.
    pub v4: u64,
    /// Addresses that a route covers.
    pub matched: u64,
    /// Addresses that no route covers.
    pub unmatched: u64,
    /// Cells with text that is not an address.
    pub unparsable: u64,
    /// Cells without text: empty, missing, `null`, packets without addresses.
    pub empty: u64,
    /// Damaged records: rows of another width than the first, lines that are not JSON objects, damage
    /// in a capture.
    pub damaged: u64,
    /// Packets that were captured too short to tell addresses or ports.
    pub truncated: u64,
    /// Packets of which the capture kept less than there was on the wire, those included.
    pub cut: u64,
    /// Rows that did not come out, since [`AnnotateOptions::only`](crate::AnnotateOptions::only) asked for others.
    pub left_out: u64,
    /// Rows whose time is before the first table of several dates: nothing was looked up for them.
    pub before: u64,
    /// Rows whose time cannot be read, or that have none: likewise.
    pub untimed: u64,
    /// The first time that cannot be read, with its line or row.
    pub first_untimed: Option<String>,
    /// The first cell with text that is not an address, with its line or row.
    pub first_unparsable: Option<String>,
    /// The first damaged record, with its line, or with its packet and byte.
    pub first_damaged: Option<String>,
    /// The columns whose addresses were looked up: those that were asked for, or that were found.
    pub columns: Vec<String>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Whether the reader of the output went away before the end (a closed pipe). The counts end there.
    pub output_closed: bool,
    /// The most frequent values, by added column in output order.
    pub top: Vec<Top>,
}

/// The most frequent values of an added column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Top {
    /// The added column's name.
    pub column: String,
    /// Values with the number of addresses that have them, most frequent first.
    pub values: Vec<(String, u64)>,
    /// Number of distinct values that occurred.
    pub distinct: usize,
}
