//! Unpacks blocks, each into the same buffer and never above the limit.

use std::io::Read;

use ruzstd::decoding::StreamingDecoder;

use super::{NFCAPD_BLOCK_LIMIT, NfcapdFaultKind};

/// How blocks are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    Lzo,
    Bzip2,
    Lz4,
    Zstd,
}

impl Packing {
    fn name(self) -> &'static str {
        match self {
            Self::None => "uncompressed",
            Self::Lzo => "LZO",
            Self::Bzip2 => "bzip2",
            Self::Lz4 => "LZ4",
            Self::Zstd => "zstd",
        }
    }
}

#[derive(Default)]
pub(super) struct Unpacker {
    buffer: Vec<u8>,
    len: usize,
}

impl Unpacker {
    /// The block.
    pub(super) fn block(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    pub(super) fn unpack(
        &mut self,
        packing: Packing,
        packed: &[u8],
    ) -> Result<(), NfcapdFaultKind> {
        self.len = 0;
        let buffer = &mut self.buffer;
        let unpacked = match packing {
            Packing::None => {
                buffer.clear();
                buffer.extend_from_slice(packed);
                Some(packed.len())
            }
            Packing::Lzo => lzo::decompress_into(packed, room(packed, buffer)).ok(),
            Packing::Lz4 => lz4_flex::block::decompress_into(packed, room(packed, buffer)).ok(),
            Packing::Bzip2 => all(bzip2::read::BzDecoder::new(packed), buffer),
            Packing::Zstd => {
                let window = NFCAPD_BLOCK_LIMIT as u64;
                let decoder = StreamingDecoder::new_with_max_window_size(packed, window);
                decoder.ok().and_then(|decoder| all(decoder, buffer))
            }
        };
        self.len = unpacked.ok_or(NfcapdFaultKind::Unpack(packing.name()))?;
        Ok(())
    }
}

/// The buffer with room for all that LZO and LZ4 unpack: a byte stands for at most 255 bytes, up to the limit.
fn room<'a>(packed: &[u8], buffer: &'a mut Vec<u8>) -> &'a mut [u8] {
    let most = packed.len().saturating_mul(255).min(NFCAPD_BLOCK_LIMIT);
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    buffer
}

/// Reads all into the buffer, which grows with what is read; `None` if that is damaged or beyond the limit.
fn all(reader: impl Read, buffer: &mut Vec<u8>) -> Option<usize> {
    buffer.clear();
    let read = reader.take(NFCAPD_BLOCK_LIMIT as u64 + 1).read_to_end(buffer);
    read.ok().filter(|len| *len <= NFCAPD_BLOCK_LIMIT)
}
