//! Opens the footer of a Parquet file.
//!
//! The library reads nested groups recursively, so a footer of a few kilobytes could exhaust the stack and end the
//! process. Therefore the depth of the schema is counted here before the library reads it.
//!
//! The library reads a known field by its number, whatever kind the file gives it, so a field of another kind would let
//! it find other groups than were counted. Such a footer is refused, and only the schema that was counted is used.

use std::io;

use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::reader::{ChunkReader, Length};

use super::guard::{broken, guarded};
use super::parquet::check;
use super::shared::Shared;
use super::thrift::{self, Compact};
use crate::AnnotateError;

/// The maximum depth of nested groups. A list needs two of them.
const MAX_DEPTH: usize = 100;

/// The bytes at the end of a file: the length of the footer and the magic number.
const TRAILER: u64 = 8;

/// Reads the footer, and checks the places that it gives.
pub(super) fn load(
    file: &Shared,
    mut options: ArrowReaderOptions,
) -> Result<ArrowReaderMetadata, AnnotateError> {
    if let Some((at, len)) = place(file)? {
        let footer = file.get_bytes(at, len)?;
        check_depth(&footer)?;
        let schema = guarded(|| ParquetMetaDataReader::decode_schema(&footer))?;
        options = options.with_parquet_schema(schema);
    }
    let metadata = guarded(|| ArrowReaderMetadata::load(file, options))?;
    check(&metadata, file)?;
    Ok(metadata)
}

/// The place and the length of the footer; `None` if the library will find none.
fn place(file: &Shared) -> Result<Option<(u64, usize)>, AnnotateError> {
    let Some(end) = file.len().checked_sub(TRAILER) else { return Ok(None) };
    let trailer = file.get_bytes(end, TRAILER as usize)?;
    let Some((len, b"PAR1")) = trailer.split_first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_le_bytes(*len);
    Ok(end.checked_sub(len.into()).map(|at| (at, len as usize)))
}

/// Checks the depth of the schema, which is the second field of a footer, after the version.
fn check_depth(footer: &[u8]) -> Result<(), AnnotateError> {
    match max_depth(&mut Compact::new(footer)) {
        Ok(depth) if depth <= MAX_DEPTH => Ok(()),
        Ok(_) => {
            let what = format!("the schema has more than {MAX_DEPTH} groups within each other");
            Err(AnnotateError::File { what })
        }
        Err(_) => Err(broken("its footer does not begin with a schema")),
    }
}

/// The largest number of groups within each other, or the first one above the limit.
fn max_depth(footer: &mut Compact<&[u8]>) -> io::Result<usize> {
    let mut field = 0;
    let len = loop {
        match footer.field(&mut field)? {
            Some((1, thrift::I32)) => footer.int().map(drop)?,
            Some((2, thrift::LIST)) => match footer.list()? {
                (len, thrift::STRUCT) => break len,
                _ => return Err(invalid()),
            },
            _ => return Err(invalid()),
        }
    };
    // For each open group, the number of elements that are still to come in it. A group precedes its elements.
    let (mut open, mut depth) = (Vec::new(), 0);
    for left in (0..len).rev() {
        while open.pop_if(|missing| *missing == 0).is_some() {}
        if let Some(missing) = open.last_mut() {
            *missing -= 1;
        }
        match children(footer)? {
            0 => {}
            more if more > left => return Err(invalid()),
            more => open.push(more),
        }
        depth = depth.max(open.len());
        if depth > MAX_DEPTH {
            break;
        }
    }
    Ok(depth)
}

/// Reads an element of the schema. Returns the number of elements in it.
fn children(footer: &mut Compact<&[u8]>) -> io::Result<u64> {
    let (mut children, mut field) = (0, 0);
    while let Some((number, kind)) = footer.field(&mut field)? {
        match (number, kind) {
            (5, thrift::I32) => children = u64::try_from(footer.int()?).map_err(|_| invalid())?,
            (1..=3 | 6..=9, thrift::I32) | (4, thrift::BINARY) => footer.skip_field(kind)?,
            (10, thrift::STRUCT) => logical_type(footer)?,
            (1..=10, _) => return Err(invalid()),
            _ => footer.skip_field(kind)?,
        }
    }
    Ok(children)
}

/// Skips a logical type: a structure with one structure, whose fields have the kinds that Parquet defines.
fn logical_type(footer: &mut Compact<&[u8]>) -> io::Result<()> {
    let mut outer = 0;
    while let Some((of, kind)) = footer.field(&mut outer)? {
        if kind != thrift::STRUCT {
            return Err(invalid());
        }
        let mut field = 0;
        while let Some((number, kind)) = footer.field(&mut field)? {
            let is_defined = match (of, number) {
                (5, 1 | 2) | (18, 2) => kind == thrift::I32,
                (7 | 8, 1) | (10, 2) => matches!(kind, thrift::TRUE | thrift::FALSE),
                (7 | 8, 2) => kind == thrift::STRUCT,
                (10 | 16, 1) => kind == thrift::I8,
                (17 | 18, 1) => kind == thrift::BINARY,
                _ => true,
            };
            if !is_defined {
                return Err(invalid());
            }
            footer.skip_field(kind)?;
        }
    }
    Ok(())
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}
