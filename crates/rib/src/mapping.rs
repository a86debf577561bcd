//! Maps a snapshot file. This is the only `unsafe` code of this crate.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;

use memmap2::{Mmap, MmapOptions};

/// A file mapped for reading.
#[derive(Debug)]
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps the first `len` bytes of the file. Opening checks every byte, so all pages are requested at once, which is
    /// several times faster than one fault for each.
    pub(crate) fn new(file: &File, len: usize) -> io::Result<Self> {
        let mut options = MmapOptions::new();
        options.len(len).populate();
        // SAFETY: the bytes must not change while they are borrowed. `write` renames a new file over the old one, whose
        // mapped pages stay unchanged, and makes the new file read-only; other files are mapped only if the caller
        // vouches for them (`Loading::Map`). Against the owner and root, who can change any file and any process, there
        // is no defence; `unchanged` detects such changes.
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
