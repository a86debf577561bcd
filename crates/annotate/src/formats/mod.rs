//! Decoders: input bytes to rows and address cells. They do no I/O and never panic on any input.

pub(crate) mod csv;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod pcap;

use crate::AnnotateError;
use crate::block::Block;

/// What is wrong with an input; the driver adds the line.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Text in the record at this offset of the data is not an address.
    Unparsable { at: usize, slot: usize, text: Vec<u8> },
    /// The record at this offset is damaged.
    Record { at: usize, what: String },
    /// The capture is damaged at this offset, before or in this packet, counted from 1.
    Packet { at: usize, number: u64, what: &'static str },
    /// The options do not fit the input.
    Options(AnnotateError),
}

impl From<AnnotateError> for Fault {
    fn from(error: AnnotateError) -> Self {
        Self::Options(error)
    }
}

/// Turns input into rows.
pub(crate) trait Decoder {
    /// Decodes complete records at the beginning of `data` into `block`, until it is full. Returns
    /// how many bytes were consumed, 0 if no record is complete. With `end`, `data` is all that
    /// remains, and the last record is complete as it is.
    fn decode(&mut self, data: &[u8], end: bool, block: &mut Block) -> Result<usize, Fault>;

    /// The names of the address columns, in the order of the cells; known once a row was decoded.
    fn names(&self) -> &[String];

    /// Whether rows lie in [`Block::text`] and not in the data.
    fn writes_rows(&self) -> bool {
        false
    }
}

/// The line at the beginning of `data`: where its content ends and where the next line begins;
/// `None` if it is not complete. CR LF and LF end lines.
#[inline]
pub(crate) fn line_end(data: &[u8], end: bool) -> Option<(usize, usize)> {
    match memchr::memchr(b'\n', data) {
        Some(at) if at > 0 && data[at - 1] == b'\r' => Some((at - 1, at + 1)),
        Some(at) => Some((at, at + 1)),
        None if end && !data.is_empty() => {
            Some((data.len() - usize::from(data.ends_with(b"\r")), data.len()))
        }
        None => None,
    }
}
