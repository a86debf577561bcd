//! Files and standard input that commands read themselves, compressed or not.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;

/// Opens the file, `-` for standard input, and undoes its compression, for a caller that keeps all of it in memory.
pub fn open_whole(path: &Path) -> Result<Box<dyn Read>, Failure> {
    let raw: Box<dyn Read> = match Input::open(path)?.file() {
        None => Box::new(io::stdin().lock()),
        Some(file) => Box::new(file),
    };
    fibula_ingest::open_whole(raw).map_err(|error| Failure::io(path.display(), &error))
}

/// An input that is opened once: its format is found and its bytes are read from one descriptor. A file that is renamed
/// over it is not read.
pub struct Input {
    path: PathBuf,
    /// `None` for standard input.
    file: Option<(File, Metadata)>,
}

impl Input {
    /// Opens the file, `-` for standard input.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let file = match path.as_os_str() == "-" {
            true => None,
            false => {
                let opened = File::open(path).and_then(|file| {
                    let metadata = file.metadata()?;
                    Ok((file, metadata))
                });
                Some(opened.map_err(|error| Failure::io(path.display(), &error))?)
            }
        };
        Ok(Self { path: path.to_owned(), file })
    }

    /// The name under which the input was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The properties of the opened file; `None` for standard input.
    pub fn metadata(&self) -> Option<&Metadata> {
        self.file.as_ref().map(|(_, metadata)| metadata)
    }

    /// The first bytes of a file as it is stored; empty for a pipe, whose bytes can be read only once.
    pub fn head(&mut self, bytes: u64) -> Result<Vec<u8>, Failure> {
        let mut head = Vec::new();
        if let Some((file, metadata)) = &mut self.file
            && metadata.is_file()
        {
            let read = file.take(bytes).read_to_end(&mut head).and_then(|_| file.rewind());
            read.map_err(|error| Failure::io(self.path.display(), &error))?;
        }
        Ok(head)
    }

    /// The file as it is stored, from its beginning; `None` for standard input.
    pub fn file(self) -> Option<File> {
        self.file.map(|(file, _)| file)
    }

    /// The bytes of the input without its compression, and how far they were read.
    pub fn decompressed(self) -> Result<(Box<dyn Read>, Position), Failure> {
        let (raw, total): (Box<dyn Read>, _) = match self.file {
            None => (Box::new(io::stdin().lock()), None),
            Some((file, metadata)) => {
                (Box::new(file), metadata.is_file().then_some(metadata.len()))
            }
        };
        let read = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: raw, read: Arc::clone(&read) };
        let (_, reader) = fibula_ingest::decompress(Box::new(counted))
            .map_err(|error| Failure::io(self.path.display(), &error))?;
        Ok((reader, Position { read, total }))
    }
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

/// All bytes of [`open_whole`].
pub fn read_whole(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    open_whole(path)?
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::io(path.display(), &error))?;
    Ok(bytes)
}
