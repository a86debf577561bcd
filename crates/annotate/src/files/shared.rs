//! One descriptor of a file, read by several threads.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::guard::broken;
use crate::AnnotateError;

/// A file that is opened once and read by position. Threads therefore need no common file position, and a file that
/// replaces it under the same name is not read.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<Opened>);

#[derive(Debug)]
struct Opened {
    file: File,
    len: u64,
    modified: Option<SystemTime>,
}

impl Shared {
    pub(super) fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let (len, modified) = (metadata.len(), metadata.modified().ok());
        Ok(Self(Arc::new(Opened { file, len, modified })))
    }

    /// Checks by length and modification time that the file has not changed since it was opened.
    pub(super) fn check_unchanged(&self) -> Result<(), AnnotateError> {
        let now = self.0.file.metadata().map_err(AnnotateError::Read)?;
        if now.len() == self.0.len && now.modified().ok() == self.0.modified {
            return Ok(());
        }
        Err(AnnotateError::File { what: "the file changed while it was read".to_owned() })
    }

    /// Checks that the file contains this range of bytes.
    pub(super) fn check_range(
        &self,
        start: i64,
        len: i64,
        what: &str,
    ) -> Result<(), AnnotateError> {
        let end = start.checked_add(len).filter(|_| start >= 0 && len >= 0);
        match end.and_then(|end| u64::try_from(end).ok()) {
            Some(end) if end <= self.0.len => Ok(()),
            _ => Err(broken(format_args!(
                "{what} has {len} bytes from byte {start} on, the file has {}",
                self.0.len
            ))),
        }
    }
}

impl Length for Shared {
    fn len(&self) -> u64 {
        self.0.len
    }
}

impl ChunkReader for Shared {
    type T = BufReader<At>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(BufReader::new(At { file: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // The range is checked before memory is allocated.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.len) {
            let what = format!("{length} bytes from byte {start} on, of {}", self.0.len);
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = vec![0; length];
        At { file: self.clone(), at: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// A reader from a position in the file.
#[derive(Debug)]
pub(super) struct At {
    file: Shared,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&self.file.0.file, buf, self.at)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&self.file.0.file, buf, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
