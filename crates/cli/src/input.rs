//! Files and standard input that commands read themselves, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;

/// Opens the file, `-` for standard input, and undoes its compression.
pub fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    Ok(open_counted(path)?.0)
}

/// How far a file was read: bytes as they lie on the disk, compressed or not.
pub struct Position {
    read: Arc<AtomicU64>,
    /// The size of the file, unless it is a pipe or the like.
    pub total: Option<u64>,
}

impl Position {
    /// Bytes read so far.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }
}

/// As [`open`], and counts what is read.
pub fn open_counted(path: &Path) -> Result<(Box<dyn Read>, Position), Failure> {
    let fail = |error| Failure::io(path.display(), &error);
    let mut total = None;
    let raw: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(fail)?;
        total = file.metadata().ok().filter(|meta| meta.is_file()).map(|meta| meta.len());
        Box::new(file)
    };
    let read = Arc::new(AtomicU64::new(0));
    let counted = Counted { inner: raw, read: Arc::clone(&read) };
    let (_, reader) = fibula_ingest::decompress(Box::new(counted)).map_err(fail)?;
    Ok((reader, Position { read, total }))
}

/// Counts the bytes that are read.
struct Counted {
    inner: Box<dyn Read>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.read.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Everything that the reader gives.
pub fn read_all(mut input: impl Read, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(bytes)
}
