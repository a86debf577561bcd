//! The counts of an annotation.

use fibula_flows::ExportCounts;

use crate::LogFormat;

/// The counts of an annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Data rows: lines, records or packets, without headers, comments and empty lines.
    pub rows: u64,
    /// Addresses looked up: one for each row and address column, without invalid and empty cells.
    pub addresses: u64,
    /// Of these, IPv4 addresses, including IPv4-mapped IPv6 addresses.
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
    /// Packets whose captured part is too short for addresses or ports.
    pub truncated: u64,
    /// Packets of which only a part was captured, including the above.
    pub cut: u64,
    /// Packets of link types that are not known, of which no fields are read.
    pub unknown_links: u64,
    /// The first of these packets, with its link type.
    pub first_unknown_link: Option<String>,
    /// What was decoded of exports of flows. Of sets that wait for their template no records are known.
    pub exports: ExportCounts,
    /// Blocks of a file of nfdump's collectors. Their flows are counted in `exports`, too.
    pub stored_blocks: u64,
    /// Fragments of datagrams of UDP in captures with exports. They are not put together.
    pub fragments: u64,
    /// Packets of captures with exports that are none.
    pub other_packets: u64,
    /// Rows that were not written because of [`AnnotateOptions::only`](crate::AnnotateOptions::only).
    pub left_out: u64,
    /// Rows whose time is before the first of several dates. They were not looked up.
    pub before: u64,
    /// Rows without a time, or with an invalid one. They were not looked up.
    pub untimed: u64,
    /// The first invalid time, with its line or row.
    pub first_untimed: Option<String>,
    /// The first cell with text that is not an address, with its line or row.
    pub first_unparsable: Option<String>,
    /// The first damaged record, with its line, or with its packet and byte.
    pub first_damaged: Option<String>,
    /// The address columns, chosen or detected.
    pub columns: Vec<String>,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Whether the reader of the output closed it before the end (a closed pipe). The counts end there.
    pub output_closed: bool,
    /// The most frequent values for each added column, in output order.
    pub top: Vec<Top>,
}

impl Summary {
    /// Adds the counts of a later part of the input.
    pub(crate) fn extend(&mut self, next: Self) {
        self.rows += next.rows;
        self.addresses += next.addresses;
        self.v4 += next.v4;
        self.matched += next.matched;
        self.unmatched += next.unmatched;
        self.unparsable += next.unparsable;
        self.empty += next.empty;
        self.damaged += next.damaged;
        self.first_unparsable = self.first_unparsable.take().or(next.first_unparsable);
        self.first_damaged = self.first_damaged.take().or(next.first_damaged);
        self.columns = next.columns;
    }

    /// Why an input is refused that has text where addresses should be, and no address at all: its rows would look as
    /// if no prefix matched. Rows with fields are accepted, unless some were left out.
    pub fn unfit(&self, format: LogFormat, scan: bool) -> Option<String> {
        if self.addresses > 0 {
            return None;
        }
        if self.unknown_links == self.rows
            && let Some(first) = &self.first_unknown_link
        {
            return Some(format!("{first}, and no packet is of another"));
        }
        if format == LogFormat::Flows && self.exports.datagrams == 0 && self.other_packets > 0 {
            return Some(format!("none of {} packets is an export of flows", self.other_packets));
        }
        let first = self.first_unparsable.as_ref().filter(|_| !scan)?;
        match format {
            LogFormat::List => Some(format!("no line begins with an address; {first}")),
            _ if self.left_out == 0 => None,
            _ => Some(format!("no cell of {} is an address; {first}", self.columns.join(", "))),
        }
    }
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
