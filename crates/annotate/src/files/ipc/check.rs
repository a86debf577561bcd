//! Compares the lengths in the metadata of a message with the bytes of its body.

use arrow_ipc::{CompressionType, RecordBatch};

use super::lz4;
use super::room::Size;
use crate::AnnotateError;
use crate::files::guard::broken;

/// The number of rows that any batch may have, whatever its size: columns of nulls or runs need almost no bytes.
const FREE_ROWS: u64 = 1 << 24;

/// The maximum compression ratio. Zstandard encodes a run of 128 KiB in four bytes.
const MAX_RATIO: u64 = 1 << 16;

/// Checks the lengths that the library trusts when it reads and allocates the batch, and returns its size.
pub(super) fn batch(batch: RecordBatch<'_>, body: &[u8]) -> Result<Size, AnnotateError> {
    let codec = batch.compression().map(|compression| compression.codec());
    let (mut stored, mut unpacked, mut buffers) = (0u64, 0u64, 0);
    for buffer in batch.buffers().into_iter().flatten() {
        let (offset, len) = (buffer.offset(), buffer.length());
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let range = range.and_then(|(offset, len)| body.get(offset..offset.checked_add(len)?));
        let Some(bytes) = range else {
            return Err(broken(format_args!(
                "a buffer has {len} bytes from byte {offset} on, its batch has {}",
                body.len()
            )));
        };
        stored += bytes.len() as u64;
        unpacked = unpacked.saturating_add(unpacked_len(bytes, codec)?);
        buffers += 1;
    }
    // Buffers do not overlap in a valid batch. This check bounds the unpacked size by the bytes of the body.
    if stored > body.len() as u64 {
        return Err(broken(format_args!("{stored} bytes of buffers in {}", body.len())));
    }
    let rows = FREE_ROWS.max(unpacked.saturating_mul(8));
    let check = |len: i64| match u64::try_from(len) {
        Ok(len) if len <= rows => Ok(()),
        _ => Err(broken(format_args!("{len} rows in {unpacked} bytes"))),
    };
    check(batch.length())?;
    for node in batch.nodes().into_iter().flatten() {
        check(node.length())?;
        check(node.null_count())?;
    }
    for count in batch.variadicBufferCounts().into_iter().flatten() {
        if !(0..=buffers).contains(&count) {
            return Err(broken(format_args!("{count} buffers of a column, of {buffers} in all")));
        }
    }
    Ok(Size { stored, unpacked })
}

/// The unpacked length of a buffer. A compressed buffer begins with it; -1 means that the buffer is not compressed.
fn unpacked_len(bytes: &[u8], codec: Option<CompressionType>) -> Result<u64, AnnotateError> {
    let stored = bytes.len() as u64;
    let Some(codec) = codec.filter(|_| !bytes.is_empty()) else { return Ok(stored) };
    let Some((len, packed)) = bytes.split_first_chunk() else {
        return Err(broken("a compressed buffer without a length"));
    };
    match i64::from_le_bytes(*len) {
        -1 => Ok(stored),
        // The library unpacks all of a frame, whatever its declared length.
        len if codec == CompressionType::LZ4_FRAME && len != 0 => match lz4::unpacked_len(packed) {
            Some(found) if i64::try_from(found) == Ok(len) => Ok(found),
            Some(found) => Err(broken(format_args!(
                "a buffer of {stored} bytes declares {len}, and has {found}"
            ))),
            None => Err(broken(format_args!("a buffer of {stored} bytes is no LZ4 frame"))),
        },
        len => match u64::try_from(len) {
            Ok(len) if len <= (packed.len() as u64).saturating_mul(MAX_RATIO) => Ok(len),
            _ => Err(broken(format_args!("a buffer of {stored} bytes declares {len}"))),
        },
    }
}
