//! Arenas: arrays of cache lines, in which the programs find a table. `bpf/tables.h` documents their layout.

use std::io;

use super::map::{ARRAY, INNER_MAP, MMAPABLE, Map, Mapped, Spec};

/// Bytes of a line.
pub(super) const LINE: usize = 64;

/// The layout of an arena, for the programs: `struct layout` of `bpf/tables.h`.
pub(super) type Layout = [u32; 16];

/// A table that is to be written: parts one behind the other, each from a line on.
#[derive(Default)]
pub(super) struct Parts<'a> {
    pub layout: Layout,
    parts: Vec<Part<'a>>,
    lines: usize,
}

enum Part<'a> {
    Borrowed(usize, &'a [u8]),
    Owned(usize, Vec<u8>),
}

impl<'a> Parts<'a> {
    /// Adds a part, and returns its first line.
    pub fn push(&mut self, bytes: &'a [u8]) -> u32 {
        let at = self.place(bytes.len());
        self.parts.push(Part::Borrowed(at, bytes));
        at as u32
    }

    /// As [`Parts::push`].
    pub fn push_words(&mut self, words: impl IntoIterator<Item = u32>) -> u32 {
        self.push_owned(words.into_iter().flat_map(u32::to_ne_bytes).collect())
    }

    /// As [`Parts::push`].
    pub fn push_owned(&mut self, bytes: Vec<u8>) -> u32 {
        let at = self.place(bytes.len());
        self.parts.push(Part::Owned(at, bytes));
        at as u32
    }

    fn place(&mut self, bytes: usize) -> usize {
        let at = self.lines;
        self.lines += bytes.div_ceil(LINE);
        at
    }

    /// Lines of all parts, and a spare one: reads of eight bytes may begin in the last line and end behind it.
    pub fn lines(&self) -> usize {
        self.lines + 1
    }
}

/// An arena, here and in the kernel.
pub(super) struct Arena {
    pub map: Map,
    mapped: Mapped,
    lines: usize,
}

impl Arena {
    /// One with room for so many lines.
    pub fn new(lines: usize) -> io::Result<Self> {
        let entries = u32::try_from(lines)
            .map_err(|_| io::Error::other("the table is too large for the kernel's arrays"))?;
        let flags = MMAPABLE | INNER_MAP;
        let spec = Spec { kind: ARRAY, key: 4, value: LINE as u32, entries, flags };
        let map = Map::new(spec, None)?;
        let mapped = map.mapped()?;
        Ok(Self { map, mapped, lines })
    }

    /// How many lines there is room for.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Writes a table, which fits. No program reads the arena now.
    pub fn write(&mut self, parts: &Parts<'_>) {
        for part in &parts.parts {
            let (at, bytes) = match part {
                Part::Borrowed(at, bytes) => (at, *bytes),
                Part::Owned(at, bytes) => (at, &**bytes),
            };
            self.mapped.write(at * LINE, bytes);
        }
    }
}
