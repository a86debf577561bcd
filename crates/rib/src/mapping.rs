//! The mapping of a snapshot file: the only `unsafe` code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// A file mapped for reading.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps the first `len` bytes of the file. Opening checks every byte, so all pages are asked for
    /// at once: that is several times faster than one fault for each.
    pub(crate) fn new(file: &File, len: usize) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.len(len).populate();
        // SAFETY: the bytes must not change while they are borrowed. A snapshot file never does:
        // `write` makes a new file and renames it over the old one, whose pages stay as they were for
        // whoever maps them. That nobody else writes into the file cannot be enforced from here and
        // is a documented condition of `Snapshot::open`.
        let map = unsafe { options.map(file) }?;
        Ok(Self(map))
    }
}

impl AsRef<[u8]> for Mapped {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
