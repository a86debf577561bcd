//! Reads Thrift's compact protocol, in which Parquet writes its footer and the headers of pages.

use std::io::{self, Read};

/// The kinds of values.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const I8: u8 = 3;
pub(super) const I32: u8 = 5;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The maximum depth of nested values that are skipped.
const MAX_DEPTH: u32 = 16;

/// A reader that counts its bytes.
pub(super) struct Compact<R> {
    bytes: R,
    len: u64,
}

impl<R: Read> Compact<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { bytes, len: 0 }
    }

    /// The number of bytes read so far.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

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

    /// Reads a signed integer of any size but one byte.
    pub(super) fn int(&mut self) -> io::Result<i64> {
        let zigzag = self.varint()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    /// Reads the head of a list: the number and the kind of its values.
    pub(super) fn list(&mut self) -> io::Result<(u64, u8)> {
        let head = self.byte()?;
        let len = if head >> 4 == 15 { self.varint()? } else { u64::from(head >> 4) };
        Ok((len, head & 15))
    }

    /// Reads the head of the next field of a structure: its number and its kind; `None` at the end of the structure.
    /// `field` is the number of the previous field, at first 0.
    pub(super) fn field(&mut self, field: &mut u64) -> io::Result<Option<(u64, u8)>> {
        let head = self.byte()?;
        let (step, kind) = (u64::from(head >> 4), head & 15);
        match (kind, step) {
            (0, _) => return Ok(None),
            (_, 0) => *field = self.varint()? >> 1,
            _ => *field = field.wrapping_add(step),
        }
        Ok(Some((*field, kind)))
    }

    /// Skips the value of a field.
    pub(super) fn skip_field(&mut self, kind: u8) -> io::Result<()> {
        self.skip_field_at(kind, 0)
    }

    fn skip_field_at(&mut self, kind: u8, depth: u32) -> io::Result<()> {
        match kind {
            // The value of a boolean is its kind.
            TRUE | FALSE => Ok(()),
            _ => self.skip_value(kind, depth),
        }
    }

    fn skip_value(&mut self, kind: u8, depth: u32) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::ErrorKind::InvalidData.into());
        }
        match kind {
            TRUE | FALSE | I8 => self.skip(1),
            4..=6 => self.varint().map(drop),
            7 => self.skip(8),
            BINARY => {
                let len = self.varint()?;
                self.skip(len)
            }
            LIST | 10 => {
                let (len, kind) = self.list()?;
                (0..len).try_for_each(|_| self.skip_value(kind, depth + 1))
            }
            STRUCT => {
                let mut field = 0;
                while let Some((_, kind)) = self.field(&mut field)? {
                    self.skip_field_at(kind, depth + 1)?;
                }
                Ok(())
            }
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn skip(&mut self, len: u64) -> io::Result<()> {
        let skipped = io::copy(&mut self.bytes.by_ref().take(len), &mut io::sink())?;
        self.len += skipped;
        if skipped == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
