//! The headers of a file and of its blocks. All integers are little-endian.

use super::NfcapdFaultKind;
use super::unpack::Packing;

const MAGIC: u16 = 0xa50c;

/// Two bytes at an offset.
pub(super) fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

/// Four bytes at an offset.
pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// Eight bytes at an offset.
pub(super) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// What the header of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub(super) compression: Packing,
    /// Blocks with records; 0 in a file that was not closed.
    pub(super) blocks: u32,
    /// Blocks behind these.
    pub(super) appendix: u16,
    pub(super) appendix_offset: u64,
}

impl FileHeader {
    /// Layout 2: magic, layout, version of nfdump, creation, compression, encryption, blocks of the appendix, creator,
    /// place of the appendix, size of blocks, blocks.
    const LEN_2: usize = 40;
    /// Layout 1: magic, layout, flags, blocks, 128 bytes of a name, and 136 bytes of statistics.
    const LEN_1: usize = 276;

    pub(super) fn recognise(head: &[u8]) -> bool {
        let (Some(magic), Some(layout)) = (u16_at(head, 0), u16_at(head, 2)) else { return false };
        match magic {
            MAGIC => layout < 256,
            _ => magic.swap_bytes() == MAGIC && layout.swap_bytes() < 256,
        }
    }

    /// The header at the beginning of the data, and its length; `None` if it is not complete.
    pub(super) fn parse(data: &[u8]) -> Result<Option<(Self, usize)>, NfcapdFaultKind> {
        let (Some(magic), Some(layout)) = (u16_at(data, 0), u16_at(data, 2)) else {
            return Ok(None);
        };
        if magic != MAGIC {
            return Err(NfcapdFaultKind::ByteOrder);
        }
        let header = match layout {
            1 => Self::layout_1(data)?.map(|header| (header, Self::LEN_1)),
            2 => Self::layout_2(data)?.map(|header| (header, Self::LEN_2)),
            layout => return Err(NfcapdFaultKind::Layout(layout)),
        };
        Ok(header)
    }

    fn layout_1(data: &[u8]) -> Result<Option<Self>, NfcapdFaultKind> {
        let (Some(flags), Some(blocks)) = (u32_at(data, 4), u32_at(data, 8)) else {
            return Ok(None);
        };
        if data.len() < Self::LEN_1 {
            return Ok(None);
        }
        let compression = match flags & 0x19 {
            0 => Packing::None,
            0x01 => Packing::Lzo,
            0x08 => Packing::Bzip2,
            0x10 => Packing::Lz4,
            several => return Err(NfcapdFaultKind::Compression(several)),
        };
        Ok(Some(Self { compression, blocks, appendix: 0, appendix_offset: 0 }))
    }

    fn layout_2(data: &[u8]) -> Result<Option<Self>, NfcapdFaultKind> {
        let (Some(header), Some(appendix)) = (data.get(..Self::LEN_2), u16_at(data, 18)) else {
            return Ok(None);
        };
        let (Some(appendix_offset), Some(blocks)) = (u64_at(header, 24), u32_at(header, 36)) else {
            return Ok(None);
        };
        let compression = match header[16] {
            0 => Packing::None,
            1 => Packing::Lzo,
            2 => Packing::Bzip2,
            3 => Packing::Lz4,
            4 => Packing::Zstd,
            other => return Err(NfcapdFaultKind::Compression(other.into())),
        };
        if header[17] != 0 {
            return Err(NfcapdFaultKind::Encrypted);
        }
        Ok(Some(Self { compression, blocks, appendix, appendix_offset }))
    }

    /// Whether the collector did not close the file: its blocks are not counted.
    pub(super) fn is_open(&self) -> bool {
        self.blocks == 0 && self.appendix == 0
    }

    /// Whether this was the last block.
    pub(super) fn is_last(&self, blocks: u32) -> bool {
        !self.is_open() && blocks >= self.blocks
    }
}

/// The header of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockHeader {
    pub(super) records: u32,
    /// Packed bytes behind the header.
    pub(super) size: usize,
    pub(super) kind: u16,
    flags: u16,
}

impl BlockHeader {
    pub(super) const LEN: usize = 12;

    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let (records, size) = (u32_at(data, 0)?, u32_at(data, 4)? as usize);
        Some(Self { records, size, kind: u16_at(data, 8)?, flags: u16_at(data, 10)? })
    }

    /// The length with this header.
    pub(super) fn len(&self) -> usize {
        Self::LEN + self.size
    }

    /// How the block is packed in a file: it may be unpacked nevertheless.
    pub(super) fn compression(&self, of_file: Packing) -> Packing {
        if self.flags & 1 == 1 { Packing::None } else { of_file }
    }
}
