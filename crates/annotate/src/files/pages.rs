//! Checks the sizes in the page headers of Parquet, because the library allocates memory by them.

use std::io::{self, Read};

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use super::guard::broken;
use super::shared::Shared;
use crate::AnnotateError;

/// The size in bytes to which any page may be unpacked, whatever its size in the file.
const FREE: u64 = 64 << 20;

/// The maximum compression ratio of larger pages.
const MAX_RATIO: u64 = 1 << 12;

/// The maximum depth of nested structures in the header of a page.
const MAX_DEPTH: u32 = 16;

/// Checks the pages of a column, whose byte range was checked before.
pub(super) fn check(column: &ColumnChunkMetaData, file: &Shared) -> Result<(), AnnotateError> {
    let (start, len) = column.byte_range();
    let end = start.saturating_add(len);
    let mut at = start;
    while at < end {
        let mut header = Header { bytes: file.get_read(at)?, len: 0, sizes: [None; 2] };
        // An invalid header is left to the library, which reports the error.
        let Ok(()) = header.structure(0) else { return Ok(()) };
        let [Some(unpacked), Some(stored)] = header.sizes else { return Ok(()) };
        let (Ok(unpacked), Ok(stored)) = (u64::try_from(unpacked), u64::try_from(stored)) else {
            return Err(broken(format_args!("a page of {stored} bytes at byte {at}")));
        };
        let next = at + header.len + stored;
        if next > end || unpacked > FREE.max(stored.saturating_mul(MAX_RATIO)) {
            return Err(broken(format_args!(
                "the page at byte {at} has {stored} bytes, {unpacked} unpacked; its column ends at \
                 byte {end}"
            )));
        }
        at = next;
    }
    Ok(())
}

/// The header of a page, in Thrift's compact protocol.
struct Header<R> {
    bytes: R,
    /// Bytes read so far.
    len: u64,
    /// The fields 2 and 3: the unpacked and the stored size.
    sizes: [Option<i64>; 2],
}

impl<R: Read> Header<R> {
    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.bytes.read_exact(&mut byte)?;
        self.len += 1;
        Ok(byte[0])
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }

    fn skip(&mut self, len: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.bytes.by_ref().take(len), &mut io::sink())?;
        self.len += skipped;
        if skipped == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    fn structure(&mut self, depth: u32) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut field = 0u64;
        loop {
            let head = self.byte()?;
            let (step, kind) = (u64::from(head >> 4), head & 15);
            match (kind, step) {
                (0, _) => return Ok(()),
                (_, 0) => field = self.varint()? >> 1,
                _ => field += step,
            }
            match (kind, field, depth) {
                (5, 2 | 3, 0) => {
                    let size = self.varint()?;
                    let size = (size >> 1) as i64 ^ -((size & 1) as i64);
                    self.sizes[usize::from(field == 3)] = Some(size);
                }
                // The value of a boolean is its type.
                (1 | 2, ..) => {}
                _ => self.value(kind, depth)?,
            }
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> io::Result<()> {
        match kind {
            1..=3 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            8 => {
                let len = self.varint()?;
                self.skip(len)
            }
            9 | 10 => {
                let head = self.byte()?;
                let len = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
                (0..len).try_for_each(|_| self.value(head & 15, depth + 1))
            }
            12 => self.structure(depth + 1),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(bytes: &[u8]) -> Option<([Option<i64>; 2], u64)> {
        let mut header = Header { bytes, len: 0, sizes: [None; 2] };
        header.structure(0).ok().map(|()| (header.sizes, header.len))
    }

    /// The header has a type, two sizes, and a data page with counts, encodings and statistics of two texts and a
    /// boolean.
    #[test]
    fn headers() {
        let page =
            b"\x15\x00\x15\xfe\xff\xff\xff\x0f\x15\x14\x2c\x15\x06\x15\x00\x15\x06\x15\x06\x1c\
            \x18\x01a\x18\x02bc\x11\x00\x00\x00rest";
        assert_eq!(sizes(page), Some(([Some(i64::from(i32::MAX)), Some(10)], 31)));
        for cut in 0..31 {
            assert_eq!(sizes(&page[..cut]), None, "{cut}");
        }
        assert_eq!(sizes(&[0x1c; 40]), None);
        assert_eq!(sizes(&[0xff; 40]), None);
    }
}
