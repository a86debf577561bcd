//! Files of nfdump's collectors (`nfcapd.202601312355`): layouts 1 (nfdump 1.6) and 2 (nfdump 1.7).
//!
//! A file is a header and blocks, each compressed by itself. `header` and `unpack` read these; a block has records, of
//! which `records` reads those of nfdump 1.7 and of its tables of exporters and names, and `older` those of 1.6.

mod error;
mod header;
mod older;
mod records;
mod unpack;

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

pub use self::error::{NfcapdFault, NfcapdFaultKind};
use self::header::{BlockHeader, FileHeader};
use self::records::Names;
use self::unpack::Unpacker;
use crate::{ExportProtocol, FlowRecord};

/// The most bytes that a block may have, packed and unpacked: 8 MiB. nfdump itself reads blocks of up to 5 MiB.
pub const NFCAPD_BLOCK_LIMIT: usize = 8 << 20;

/// Names of interfaces, and of VRFs, that are kept; further ones are ignored.
const NAMES: usize = 16_384;

/// Where a stored record comes from. nfcapd keeps the names of interfaces and VRFs by number alone, for all exporters.
#[derive(Clone, Copy, Debug)]
pub struct NfcapdSource<'a> {
    exporter: Option<IpAddr>,
    protocol: Option<ExportProtocol>,
    domain: Option<u32>,
    received_ms: Option<u64>,
    names: &'a KnownNames,
}

impl NfcapdSource<'_> {
    /// The address that sent the datagram; `None` if the file does not say it.
    #[must_use]
    pub fn exporter(&self) -> Option<IpAddr> {
        self.exporter
    }

    /// The protocol of the datagram; `None` if it was another one than those of [`ExportProtocol`], or unknown.
    #[must_use]
    pub fn protocol(&self) -> Option<ExportProtocol> {
        self.protocol
    }

    /// The number that the exporter has beside its address, as [`FlowSource::domain`](crate::FlowSource::domain).
    #[must_use]
    pub fn domain(&self) -> Option<u32> {
        self.domain
    }

    /// When the collector received the datagram, in milliseconds since 1970.
    #[must_use]
    pub fn received_ms(&self) -> Option<u64> {
        self.received_ms
    }

    /// The name of an interface.
    #[must_use]
    pub fn interface_name(&self, number: u32) -> Option<&str> {
        self.names.interfaces.get(number)
    }

    /// The name of a VRF.
    #[must_use]
    pub fn vrf_name(&self, number: u32) -> Option<&str> {
        self.names.vrfs.get(number)
    }
}

/// An exporter of the file.
#[derive(Clone, Copy, Debug)]
struct StoredExporter {
    address: Option<IpAddr>,
    protocol: Option<ExportProtocol>,
    id: u32,
}

#[derive(Debug, Default)]
struct KnownNames {
    interfaces: Names,
    vrfs: Names,
}

/// What the records of a file refer to. It is bounded: numbers have 16 bits, and a map at most 64 extensions.
#[derive(Debug, Default)]
struct Known {
    exporters: HashMap<u16, StoredExporter>,
    names: KnownNames,
    /// The extensions of records of nfdump 1.6, by the number of their map.
    maps: HashMap<u16, Box<[u16]>>,
}

/// What is at the beginning of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NfcapdStep {
    /// More data is needed.
    Incomplete,
    /// A header, or a block without flows, of so many bytes.
    Skip(usize),
    /// A block of so many bytes; its records are given out by [`NfcapdDecoder::records`].
    Block(usize),
    /// So many bytes are damaged; what follows them can be read.
    Damaged(usize, NfcapdFault),
    /// The rest cannot be read.
    Lost(NfcapdFault),
}

/// How far the file is read.
#[derive(Clone, Copy, Debug)]
enum Phase {
    Start,
    Blocks(FileHeader),
    /// So many blocks of the appendix, which has the file's statistics, are left.
    Appendix(FileHeader, u16),
    End,
}

/// A block whose records are given out.
#[derive(Debug, Default)]
struct Current {
    /// Where the next record begins.
    at: usize,
    /// Records so far, and as the block's header counts them.
    records: u32,
    expected: u32,
    offset: u64,
    open: bool,
}

/// Decodes a file. It does no I/O: the caller has the data, and consumes what a step says.
///
/// ```
/// use fibula_flows::{NfcapdDecoder, NfcapdStep};
///
/// // Layout 2, uncompressed: a block with one record, which has the element of addresses alone.
/// let mut file = vec![0x0c, 0xa5, 2, 0, 1, 1, 7, 1];
/// file.resize(36, 0);
/// file.extend(1u32.to_le_bytes());
/// file.extend([1, 0, 0, 0, 24, 0, 0, 0, 3, 0, 0, 0]);
/// file.extend([11, 0, 24, 0, 1, 0, 0, 0, 0, 0, 0, 10]);
/// file.extend([2, 0, 12, 0, 1, 2, 0, 192, 7, 0, 0, 10]);
/// let mut decoder = NfcapdDecoder::default();
/// let mut rest = &file[..];
/// let mut flows = Vec::new();
/// loop {
///     let len = match decoder.next(rest) {
///         NfcapdStep::Skip(len) => len,
///         NfcapdStep::Block(len) => {
///             let done = decoder.records(1000, |record, _| flows.push(record.source()));
///             assert_eq!(done, Ok(false));
///             len
///         }
///         _ => break,
///     };
///     rest = &rest[len..];
/// }
/// assert!(decoder.end(0).is_ok());
/// assert_eq!(flows, [Some("192.0.2.1".parse()?)]);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub struct NfcapdDecoder {
    phase: Phase,
    /// Bytes and blocks so far.
    offset: u64,
    blocks: u32,
    unpacker: Unpacker,
    current: Current,
    known: Known,
    record: Box<FlowRecord>,
    flows: u64,
}

impl Default for NfcapdDecoder {
    fn default() -> Self {
        Self {
            phase: Phase::Start,
            offset: 0,
            blocks: 0,
            unpacker: Unpacker::default(),
            current: Current::default(),
            known: Known::default(),
            record: Box::default(),
            flows: 0,
        }
    }
}

impl fmt::Debug for NfcapdDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("NfcapdDecoder");
        out.field("phase", &self.phase).field("offset", &self.offset).field("blocks", &self.blocks);
        out.field("flows", &self.flows).finish_non_exhaustive()
    }
}

impl NfcapdDecoder {
    /// Whether this is the beginning of a file of nfdump, also of a layout that cannot be read.
    ///
    /// ```
    /// assert!(fibula_flows::NfcapdDecoder::recognise(b"\x0c\xa5\x02\x00"));
    /// assert!(!fibula_flows::NfcapdDecoder::recognise(b"src,dst\n"));
    /// ```
    #[must_use]
    pub fn recognise(head: &[u8]) -> bool {
        FileHeader::recognise(head)
    }

    /// Blocks so far.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Flows given out so far.
    #[must_use]
    pub fn flows(&self) -> u64 {
        self.flows
    }

    /// Reads what is at the beginning of the data: the next bytes of the file. Records of a block before it that were
    /// not given out are lost.
    pub fn next(&mut self, data: &[u8]) -> NfcapdStep {
        self.current.open = false;
        let step = match self.phase {
            Phase::Start => self.header(data),
            Phase::Blocks(header) if header.is_last(self.blocks) => self.after_blocks(header, data),
            Phase::Blocks(header) => self.block(header, data),
            Phase::Appendix(header, left) => self.appendix(header, left, data),
            Phase::End if data.is_empty() => NfcapdStep::Incomplete,
            Phase::End => NfcapdStep::Lost(self.fault(NfcapdFaultKind::Trailing)),
        };
        match step {
            NfcapdStep::Skip(len) | NfcapdStep::Block(len) | NfcapdStep::Damaged(len, _) => {
                self.offset += len as u64;
            }
            NfcapdStep::Lost(_) => self.phase = Phase::End,
            NfcapdStep::Incomplete => {}
        }
        step
    }

    /// Whether the file may end here, with so many bytes behind what was read.
    ///
    /// # Errors
    ///
    /// The file ends within its header or a block, or has fewer blocks than its header counts. A collector counts them
    /// when it closes the file: if the header counts none, the file may end behind each block.
    pub fn end(&self, rest: usize) -> Result<(), NfcapdFault> {
        match self.phase {
            Phase::Start => Err(self.fault(NfcapdFaultKind::Header)),
            Phase::Blocks(header) if header.is_open() && rest > 0 => {
                Err(self.fault(NfcapdFaultKind::Cut))
            }
            Phase::Blocks(header) if header.is_open() => Ok(()),
            Phase::Blocks(header) if header.blocks > self.blocks => {
                Err(self.fault(NfcapdFaultKind::Missing(header.blocks - self.blocks)))
            }
            Phase::Blocks(header) if header.appendix > 0 => {
                Err(self.fault(NfcapdFaultKind::Appendix))
            }
            Phase::Appendix(..) => Err(self.fault(NfcapdFaultKind::Appendix)),
            Phase::Blocks(_) | Phase::End => Ok(()),
        }
    }

    /// A fault at the next byte.
    fn fault(&self, kind: NfcapdFaultKind) -> NfcapdFault {
        NfcapdFault::new(self.blocks, self.offset, None, kind)
    }

    fn header(&mut self, data: &[u8]) -> NfcapdStep {
        match FileHeader::parse(data) {
            Ok(Some((header, len))) => {
                self.phase = Phase::Blocks(header);
                NfcapdStep::Skip(len)
            }
            Ok(None) => NfcapdStep::Incomplete,
            Err(kind) => NfcapdStep::Lost(self.fault(kind)),
        }
    }

    /// Behind the last block that the header counts.
    fn after_blocks(&mut self, header: FileHeader, data: &[u8]) -> NfcapdStep {
        if header.appendix > 0 && header.appendix_offset != self.offset {
            let at = header.appendix_offset;
            return NfcapdStep::Lost(self.fault(NfcapdFaultKind::AppendixOffset(at)));
        }
        self.phase = match header.appendix {
            0 => Phase::End,
            left => Phase::Appendix(header, left),
        };
        self.next_of_end(data)
    }

    /// The same for the phases behind the blocks, without counting bytes twice.
    fn next_of_end(&mut self, data: &[u8]) -> NfcapdStep {
        match self.phase {
            Phase::Appendix(header, left) => self.appendix(header, left, data),
            _ if data.is_empty() => NfcapdStep::Incomplete,
            _ => NfcapdStep::Lost(self.fault(NfcapdFaultKind::Trailing)),
        }
    }

    fn appendix(&mut self, header: FileHeader, left: u16, data: &[u8]) -> NfcapdStep {
        let Some(block) = BlockHeader::parse(data) else { return NfcapdStep::Incomplete };
        if block.size > NFCAPD_BLOCK_LIMIT {
            return NfcapdStep::Lost(self.fault(NfcapdFaultKind::BlockSize(block.size)));
        }
        if data.len() < block.len() {
            return NfcapdStep::Incomplete;
        }
        self.phase = match left {
            ..=1 => Phase::End,
            _ => Phase::Appendix(header, left - 1),
        };
        NfcapdStep::Skip(block.len())
    }

    fn block(&mut self, header: FileHeader, data: &[u8]) -> NfcapdStep {
        let Some(block) = BlockHeader::parse(data) else { return NfcapdStep::Incomplete };
        if block.size > NFCAPD_BLOCK_LIMIT || block.size == 0 {
            self.blocks += 1;
            return NfcapdStep::Lost(self.fault(NfcapdFaultKind::BlockSize(block.size)));
        }
        let Some(packed) = data.get(BlockHeader::LEN..block.len()) else {
            return NfcapdStep::Incomplete;
        };
        self.blocks += 1;
        let damaged = |decoder: &Self, kind| NfcapdStep::Damaged(block.len(), decoder.fault(kind));
        match block.kind {
            2 | 3 => {}
            // An array of records that are no flows.
            4 => return NfcapdStep::Skip(block.len()),
            kind => return damaged(self, NfcapdFaultKind::BlockKind(kind)),
        }
        let compression = block.compression(header.compression);
        if let Err(kind) = self.unpacker.unpack(compression, packed) {
            return damaged(self, kind);
        }
        let (expected, offset) = (block.records, self.offset);
        self.current = Current { at: 0, records: 0, expected, offset, open: true };
        NfcapdStep::Block(block.len())
    }

    /// Gives out the records of the block that [`NfcapdDecoder::next`] has read, at most so many of them, and returns
    /// whether some are left.
    ///
    /// # Errors
    ///
    /// A record is damaged. The next call goes on behind it if its length is known, or ends the block.
    pub fn records(
        &mut self,
        most: usize,
        mut sink: impl FnMut(&FlowRecord, &NfcapdSource<'_>),
    ) -> Result<bool, NfcapdFault> {
        let mut given = 0;
        while self.current.open {
            if given >= most {
                return Ok(true);
            }
            let (begin, block) = (self.current.at, self.unpacker.block());
            let done = match records::next(block, begin) {
                Some(Ok(raw)) => {
                    self.current.at += raw.bytes.len();
                    self.current.records = self.current.records.saturating_add(1);
                    self.known.read(raw, &mut self.record, &mut sink)
                }
                Some(Err(kind)) => {
                    self.current.open = false;
                    Err(kind)
                }
                None => {
                    self.current.open = false;
                    let Current { records, expected, .. } = self.current;
                    match records == expected {
                        true => Ok(false),
                        false => Err(NfcapdFaultKind::Records { expected, found: records }),
                    }
                }
            };
            match done {
                Ok(flow) => {
                    given += usize::from(flow);
                    self.flows += u64::from(flow);
                }
                Err(kind) => {
                    let offset = self.current.offset;
                    return Err(NfcapdFault::new(self.blocks, offset, Some(begin), kind));
                }
            }
        }
        Ok(false)
    }
}
