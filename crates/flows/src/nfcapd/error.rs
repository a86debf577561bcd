//! What is wrong with a file of nfdump, and where.

use std::fmt;

/// A fault of a file of nfdump. Records before it were given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NfcapdFault {
    block: u32,
    offset: u64,
    at: Option<usize>,
    kind: NfcapdFaultKind,
}

impl NfcapdFault {
    pub(super) fn new(block: u32, offset: u64, at: Option<usize>, kind: NfcapdFaultKind) -> Self {
        Self { block, offset, at, kind }
    }

    /// The number of the block, counted from 1; 0 for the file's header.
    #[must_use]
    pub fn block(&self) -> u32 {
        self.block
    }

    /// The byte of the file at which the block, or what is behind the last block, begins.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The byte of the unpacked block at which the record begins, if the fault is in a record.
    #[must_use]
    pub fn at(&self) -> Option<usize> {
        self.at
    }

    /// The error.
    #[must_use]
    pub fn kind(&self) -> NfcapdFaultKind {
        self.kind
    }
}

impl fmt::Display for NfcapdFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.block, self.at) {
            (0, _) => write!(f, "at byte {}", self.offset)?,
            (block, None) => write!(f, "block {block}, at byte {}", self.offset)?,
            (block, Some(at)) => {
                write!(f, "block {block}, at byte {}, in its record at byte {at}", self.offset)?;
            }
        }
        write!(f, ": {}", self.kind)
    }
}

impl std::error::Error for NfcapdFault {}

/// The error in a file of nfdump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NfcapdFaultKind {
    /// The file ends within its header.
    Header,
    /// The file was written on a machine with the other order of bytes.
    ByteOrder,
    /// The layout is neither 1 nor 2.
    Layout(u16),
    /// The number of the compression is not known.
    Compression(u32),
    /// The file is encrypted.
    Encrypted,
    /// A block is empty, or larger than [`NFCAPD_BLOCK_LIMIT`](crate::NFCAPD_BLOCK_LIMIT).
    BlockSize(usize),
    /// The number of a block's kind is not known.
    BlockKind(u16),
    /// A block cannot be unpacked: its name, and whether it is larger than the limit.
    Unpack(&'static str),
    /// The file, which its collector did not close, ends within a block.
    Cut,
    /// The file ends before so many blocks that its header counts.
    Missing(u32),
    /// The file ends within its appendix, which has its statistics. All blocks were read.
    Appendix,
    /// The header says that the appendix begins at this byte, but the blocks that it counts do not end there.
    AppendixOffset(u64),
    /// Bytes follow the end of the file.
    Trailing,
    /// A record is shorter than its header, or longer than the rest of its block.
    RecordSize(u16),
    /// The block has another number of records than its header says.
    Records {
        /// As the header says.
        expected: u32,
        /// As they were found.
        found: u32,
    },
    /// An element is longer than the rest of its record, or shorter than its fields.
    Element {
        /// The number of the element.
        number: u16,
        /// Its length with its header.
        len: u16,
    },
    /// Bytes of the record belong to no element.
    Elements,
    /// The number of a record's kind is not known.
    RecordKind(u16),
    /// The record refers to a map of extensions that was not read.
    NoMap(u16),
    /// The map of extensions has one whose length is not known, or too many.
    Map(u16),
    /// The record does not have the bytes of its extensions.
    Extensions,
}

impl fmt::Display for NfcapdFaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the file ends within its header"),
            Self::ByteOrder => {
                f.write_str("the file was written on a big-endian machine, which is not read")
            }
            Self::Layout(layout) => write!(
                f,
                "the file has layout {layout}; layouts 1 (nfdump 1.6) and 2 (nfdump 1.7) are read"
            ),
            Self::Compression(number) => write!(
                f,
                "compression {number} is not known; known are none, LZO, bzip2, LZ4 and zstd"
            ),
            Self::Encrypted => f.write_str("the file is encrypted"),
            Self::BlockSize(size) => {
                write!(f, "a block of {size} bytes is empty or too large: the rest is lost")
            }
            Self::BlockKind(kind) => {
                write!(f, "blocks of kind {kind} are not known: it was skipped")
            }
            Self::Unpack(name) => write!(f, "the block's {name} data is damaged: it was skipped"),
            Self::Cut => {
                f.write_str("the file ends within a block; its collector did not close it")
            }
            Self::Missing(blocks) => {
                write!(f, "the file ends here, but its header counts {blocks} blocks more")
            }
            Self::Appendix => f.write_str("the file ends within its appendix"),
            Self::AppendixOffset(at) => write!(
                f,
                "the header's number of blocks ends here, but the appendix begins at byte {at}: the rest is lost"
            ),
            Self::Trailing => f.write_str("bytes follow the end of the file"),
            Self::RecordSize(size) => {
                write!(f, "a record of {size} bytes does not fit: the rest of the block is lost")
            }
            Self::Records { expected, found } => {
                write!(f, "the block has {found} records, but its header counts {expected}")
            }
            Self::Element { number, len } => {
                write!(f, "element {number} of {len} bytes does not fit")
            }
            Self::Elements => f.write_str("bytes of the record belong to no element"),
            Self::RecordKind(kind) => write!(f, "records of kind {kind} are not known"),
            Self::NoMap(map) => write!(f, "extension map {map} was not defined before"),
            Self::Map(map) => write!(f, "extension map {map} has extensions that are not known"),
            Self::Extensions => f.write_str("the record is shorter than its extensions"),
        }
    }
}
