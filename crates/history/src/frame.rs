//! The parts of a file, each with a checksum.
//!
//! ```text
//! 0      4           8            12         20
//! kind   raw length  packed bytes  checksum   packed bytes
//! ```
//!
//! The kind is a byte and three zeros. The checksum (XXH3, 64 bits) covers everything else. The packed bytes are those
//! of zstd, or the bytes themselves if they would not become fewer.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use crate::bytes::Flaw;
use crate::error::HistoryError;

/// Bytes before the packed ones.
pub(crate) const HEAD: usize = 20;
/// The most bytes of a frame, unpacked. A block has 128 KiB and one route, whose attributes may be long.
pub(crate) const LONGEST: usize = 64 << 20;
/// Below this length, packing gains nothing.
const SHORT: usize = 128;

/// What a frame has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Records.
    Records = 1,
    /// The time until which everything is recorded.
    Until = 2,
    /// The beginning of a time that is recorded.
    Begin = 3,
    /// Which records are in which frame.
    Index = 4,
    /// What is in the file.
    Summary = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        let all = [Self::Records, Self::Until, Self::Begin, Self::Index, Self::Summary];
        all.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Appends a frame.
pub(crate) fn put(out: &mut Vec<u8>, kind: Kind, raw: &[u8], level: i32) -> io::Result<()> {
    let packed = match raw.len() {
        0..SHORT => None,
        _ => Some(zstd::bulk::compress(raw, level)?).filter(|packed| packed.len() < raw.len()),
    };
    let packed = packed.as_deref().unwrap_or(raw);
    let length = |bytes: &[u8]| {
        let fits = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST);
        fits.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "a block is too long"))
    };
    let mut head = [0; 12];
    head[0] = kind as u8;
    head[4..8].copy_from_slice(&length(raw)?.to_le_bytes());
    head[8..].copy_from_slice(&length(packed)?.to_le_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(&checksum(&head, packed).to_le_bytes());
    out.extend_from_slice(packed);
    Ok(())
}

fn checksum(head: &[u8], packed: &[u8]) -> u64 {
    let mut hasher = XxHash3_64::new();
    hasher.write(head);
    hasher.write(packed);
    hasher.finish()
}

/// A frame's head.
struct Head {
    kind: Kind,
    raw: usize,
    packed: usize,
    checksum: u64,
}

/// Reads a head. `left` bytes of the file follow it.
fn head(bytes: &[u8; HEAD], left: u64) -> Result<Head, Flaw> {
    let word =
        |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let kind = Kind::of(bytes[0]).filter(|_| bytes[1..4] == [0; 3]);
    let kind = kind.ok_or("a part has an unknown kind")?;
    let (raw, packed) = (word(4) as usize, word(8) as usize);
    if raw > LONGEST || packed > raw {
        return Err("a part has a wrong length");
    }
    if packed as u64 > left {
        return Err("it ends early");
    }
    let checksum = u64::from(word(12)) | u64::from(word(16)) << 32;
    Ok(Head { kind, raw, packed, checksum })
}

/// A file that is read in frames.
pub(crate) struct Frames {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Frames {
    pub(crate) fn open(path: &Path) -> Result<Self, HistoryError> {
        let file = File::open(path).map_err(HistoryError::io(path))?;
        let length = file.metadata().map_err(HistoryError::io(path))?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    pub(crate) fn damaged(&self, offset: u64, what: Flaw) -> HistoryError {
        HistoryError::damaged(&self.path, offset, what)
    }

    /// The bytes at this position.
    pub(crate) fn bytes<const N: usize>(&mut self, offset: u64) -> Result<[u8; N], HistoryError> {
        let mut bytes = [0; N];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), HistoryError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(HistoryError::io(&self.path))?;
        self.file.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged(offset, "it ends early"),
            _ => HistoryError::io(&self.path)(error),
        })
    }

    /// The frame at this position, and the position behind it.
    pub(crate) fn frame(&mut self, offset: u64) -> Result<(Kind, Vec<u8>, u64), HistoryError> {
        let bytes = self.bytes::<HEAD>(offset)?;
        let begin = offset + HEAD as u64;
        let head = head(&bytes, self.length.saturating_sub(begin));
        let head = head.map_err(|flaw| self.damaged(offset, flaw))?;
        let mut packed = vec![0; head.packed];
        self.fill(begin, &mut packed)?;
        if checksum(&bytes[..12], &packed) != head.checksum {
            return Err(self.damaged(offset, "a checksum differs"));
        }
        let raw = match packed.len() == head.raw {
            true => packed,
            false => zstd::bulk::decompress(&packed, head.raw)
                .ok()
                .filter(|raw| raw.len() == head.raw)
                .ok_or_else(|| self.damaged(offset, "a part cannot be unpacked"))?,
        };
        Ok((head.kind, raw, begin + head.packed as u64))
    }

    /// The same, which must be of this kind.
    pub(crate) fn of_kind(&mut self, kind: Kind, offset: u64) -> Result<Vec<u8>, HistoryError> {
        match self.frame(offset)? {
            (found, raw, _) if found == kind => Ok(raw),
            _ => Err(self.damaged(offset, "a part of another kind is here")),
        }
    }
}
