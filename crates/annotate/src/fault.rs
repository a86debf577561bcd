//! The errors that decoders find in inputs.

use fibula_flows::{ExportFault, NfcapdFault};

use crate::AnnotateError;

/// An error in an input. `Process` converts the offset to a line number.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Text in the record at this offset of the data is not an address.
    Unparsable { at: usize, slot: usize, text: Vec<u8> },
    /// Text in the record at this offset is not a time.
    Time { at: usize, text: Vec<u8> },
    /// The record at this offset is damaged.
    Record { at: usize, what: String },
    /// The row at this offset has no flow.
    Row { at: usize, what: String },
    /// A quote in the record at this offset is never closed, and would hide the lines below it.
    OpenQuote { at: usize },
    /// The input ends at this offset within a JSON array.
    OpenArray { at: usize },
    /// The capture is damaged at this offset, before or in this packet, counted from 1.
    Packet { at: usize, number: u64, what: &'static str },
    /// The export in the packet or message at this offset, counted from 1, is damaged.
    Export { at: usize, number: u64, fault: ExportFault },
    /// A file of nfdump's collectors is damaged. The fault has the place in the file.
    Stored { fault: NfcapdFault },
    /// The link type of this packet, counted from 1, is not known.
    Link { number: u64, link: u32 },
    /// The row of a binary stream at this offset is damaged, so the next one cannot be found.
    Bytes { at: usize, what: String },
    /// The options do not fit the input.
    Options(AnnotateError),
}

impl From<AnnotateError> for Fault {
    fn from(error: AnnotateError) -> Self {
        Self::Options(error)
    }
}
