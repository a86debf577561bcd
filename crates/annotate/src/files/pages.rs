//! Checks the sizes in the page headers of Parquet, because the library allocates memory by them.

use std::io::{self, Read};

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::ChunkReader;

use super::guard::broken;
use super::shared::Shared;
use super::thrift::{self, Compact};
use crate::AnnotateError;

/// The size in bytes to which any page may be unpacked, whatever its size in the file.
const FREE: u64 = 64 << 20;

/// The maximum compression ratio of larger pages.
const MAX_RATIO: u64 = 1 << 12;

/// Checks the pages of a column, whose byte range was checked before.
pub(super) fn check(column: &ColumnChunkMetaData, file: &Shared) -> Result<(), AnnotateError> {
    let (start, len) = column.byte_range();
    let end = start.saturating_add(len);
    let mut at = start;
    while at < end {
        let mut header = Compact::new(file.get_read(at)?);
        // An invalid header is left to the library, which reports the error.
        let Ok([Some(unpacked), Some(stored)]) = sizes(&mut header) else { return Ok(()) };
        let (Ok(unpacked), Ok(stored)) = (u64::try_from(unpacked), u64::try_from(stored)) else {
            return Err(broken(format_args!("a page of {stored} bytes at byte {at}")));
        };
        let next = at + header.len() + stored;
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

/// The fields 2 and 3 of the header of a page: its unpacked and its stored size.
fn sizes(header: &mut Compact<impl Read>) -> io::Result<[Option<i64>; 2]> {
    let (mut sizes, mut field) = ([None; 2], 0);
    while let Some((number, kind)) = header.field(&mut field)? {
        match (number, kind) {
            (2 | 3, thrift::I32) => sizes[usize::from(number == 3)] = Some(header.int()?),
            _ => header.skip_field(kind)?,
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes_of(bytes: &[u8]) -> Option<([Option<i64>; 2], u64)> {
        let mut header = Compact::new(bytes);
        sizes(&mut header).ok().map(|sizes| (sizes, header.len()))
    }

    /// The header has a type, two sizes, and a data page with counts, encodings and statistics of two texts and a
    /// boolean.
    #[test]
    fn headers() {
        let page =
            b"\x15\x00\x15\xfe\xff\xff\xff\x0f\x15\x14\x2c\x15\x06\x15\x00\x15\x06\x15\x06\x1c\
            \x18\x01a\x18\x02bc\x11\x00\x00\x00rest";
        assert_eq!(sizes_of(page), Some(([Some(i64::from(i32::MAX)), Some(10)], 31)));
        for cut in 0..31 {
            assert_eq!(sizes_of(&page[..cut]), None, "{cut}");
        }
        assert_eq!(sizes_of(&[0x1c; 40]), None);
        assert_eq!(sizes_of(&[0xff; 40]), None);
    }
}
