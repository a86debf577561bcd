use std::borrow::Cow;
use std::io::{self, Write};

/// Entries of a chunk of SAIL's, each of 16 bits.
const CHUNK_BYTES: usize = 512;
/// Bytes that are compared at once where words follow each other without chunks.
const BLOCK_BYTES: usize = 4096;

/// One memory of a pipeline.
pub struct MemoryImage<'a> {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// Bits of a word.
    pub width: u32,
    /// Number of words.
    pub depth: u64,
    /// Whether it is meant to be on the chip.
    pub on_chip: bool,
    /// Whether a word of zero has no meaning of its own, so that an update may write it last.
    pub(super) zero_is_none: bool,
    pub(super) source: WordSource<'a>,
}

/// What the words are made of.
pub(super) enum WordSource<'a> {
    /// The bytes of the words, each little-endian in as many whole bytes as it needs.
    Plain { bytes: Cow<'a, [u8]>, block: usize },
    /// The merged entries of SAIL_L: 16 bits each, of which those from `first` on are chunks.
    Entries { bytes: Cow<'a, [u8]>, first: u32, part: EntryPart, chunked: bool },
}

/// What a memory has of SAIL_L's merged entries.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryPart {
    /// Bit 16: the search goes on, in the chunk of the bits below.
    GoesOn,
    /// 64 entries a word: a bit is set where the search ends.
    Ends,
    /// The codes of the hops, where the search ends.
    Code,
    /// The chunks, where it goes on.
    Chunk,
}

impl<'a> MemoryImage<'a> {
    /// Words that lie one behind the other.
    pub(super) fn plain(
        name: impl Into<String>,
        width: u32,
        on_chip: bool,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        let bytes = bytes.into();
        let (name, stride) = (name.into(), stride(width));
        let (depth, block) = ((bytes.len() / stride) as u64, BLOCK_BYTES / stride * stride);
        let source = WordSource::Plain { bytes, block };
        Self { name, width, depth, on_chip, zero_is_none: false, source }
    }

    /// The same in chunks of 512 bytes; one of zeros is not in use.
    pub(super) fn chunks(name: &str, width: u32, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        let mut image = Self::plain(name, width, false, bytes);
        if let WordSource::Plain { block, .. } = &mut image.source {
            *block = CHUNK_BYTES;
        }
        image
    }

    /// A part of SAIL_L's entries, of which those from `first` on name a chunk of the next array.
    pub(super) fn entries(
        name: &str,
        part: EntryPart,
        bytes: impl Into<Cow<'a, [u8]>>,
        first: u32,
        chunked: bool,
    ) -> Self {
        let bytes = bytes.into();
        let entries = (bytes.len() / 2) as u64;
        let (width, depth) = match part {
            EntryPart::GoesOn => (17, entries),
            EntryPart::Ends => (64, entries / 64),
            EntryPart::Code | EntryPart::Chunk => (16, entries),
        };
        let on_chip = matches!(part, EntryPart::GoesOn | EntryPart::Ends);
        let source = WordSource::Entries { bytes, first, part, chunked };
        Self { name: name.to_owned(), width, depth, on_chip, zero_is_none: false, source }
    }

    /// Bits of all words.
    pub fn bits(&self) -> u64 {
        u64::from(self.width) * self.depth
    }

    /// Number of blocks, the units in which images are compared.
    pub(super) fn blocks(&self) -> usize {
        match &self.source {
            WordSource::Plain { bytes, block } => bytes.len().div_ceil(*block),
            WordSource::Entries { bytes, chunked: true, .. } => bytes.len() / CHUNK_BYTES,
            WordSource::Entries { bytes, chunked: false, .. } => bytes.len().div_ceil(CHUNK_BYTES),
        }
    }

    /// The bytes that a block is made of. SAIL_L's arrays grow at their front and name the last chunk by the largest
    /// value, so here its chunks are numbered from the last one: a chunk then keeps its place.
    pub(super) fn block(&self, index: usize) -> &[u8] {
        let (bytes, size, index) = match &self.source {
            WordSource::Plain { bytes, block } => (bytes, *block, index),
            WordSource::Entries { bytes, chunked: true, .. } => {
                (bytes, CHUNK_BYTES, bytes.len() / CHUNK_BYTES - 1 - index)
            }
            WordSource::Entries { bytes, chunked: false, .. } => (bytes, CHUNK_BYTES, index),
        };
        &bytes[index * size..bytes.len().min((index + 1) * size)]
    }

    /// Whether a block of zeros is not in use: its words then mean nothing.
    pub(super) fn has_unused_chunks(&self) -> bool {
        match &self.source {
            WordSource::Plain { block, .. } => *block == CHUNK_BYTES,
            WordSource::Entries { chunked, .. } => *chunked,
        }
    }

    /// The address of a block's first word, and its words, little-endian in whole bytes; `None` for a word that no
    /// lookup reads.
    pub(super) fn words(&self, index: usize) -> (u64, Vec<Option<Vec<u8>>>) {
        let bytes = self.block(index);
        let stride = stride(self.width);
        match &self.source {
            WordSource::Plain { block, .. } => {
                let words = bytes.chunks_exact(stride).map(|word| Some(word.to_vec()));
                ((index * (block / stride)) as u64, words.collect())
            }
            WordSource::Entries { first, part, .. } => {
                let entries =
                    bytes.chunks_exact(2).map(|b| u32::from(u16::from_le_bytes([b[0], b[1]])));
                let end = |entry: u32| entry < *first;
                // The chunk's number, counted from the last one.
                let chunk = |entry: u32| u32::from(u16::MAX) - entry;
                let word = |value: u64| Some(value.to_le_bytes()[..stride].to_vec());
                let words: Vec<_> = match part {
                    EntryPart::GoesOn => entries
                        .map(|e| word(if end(e) { 0 } else { 1 << 16 | u64::from(chunk(e)) }))
                        .collect(),
                    EntryPart::Ends => {
                        let entries: Vec<u32> = entries.collect();
                        let bits = |entries: &[u32]| {
                            let ends = entries.iter().rev();
                            ends.fold(0, |bits, &entry| bits << 1 | u64::from(end(entry)))
                        };
                        entries.chunks(64).map(|entries| word(bits(entries))).collect()
                    }
                    EntryPart::Code => {
                        entries.map(|e| end(e).then(|| word(e.into())).flatten()).collect()
                    }
                    EntryPart::Chunk => {
                        entries.map(|e| if end(e) { None } else { word(chunk(e).into()) }).collect()
                    }
                };
                ((index * words.len()) as u64, words)
            }
        }
    }

    /// Writes the words that are not zero, with their addresses where some were left out.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_hex(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "// {}: {} words of {} bits", self.name, self.depth, self.width)?;
        let (mut next, mut line) = (0, Vec::new());
        for index in 0..self.blocks() {
            if self.is_zero(index) && (self.is_plain() || self.has_unused_chunks()) {
                continue;
            }
            let (first, words) = self.words(index);
            for (address, word) in (first..).zip(words) {
                let Some(word) = word.filter(|word| word.iter().any(|&byte| byte != 0)) else {
                    continue;
                };
                if address != next {
                    writeln!(out, "@{address:x}")?;
                }
                line.clear();
                hex(&word, &mut line);
                line.push(b'\n');
                out.write_all(&line)?;
                next = address + 1;
            }
        }
        Ok(())
    }

    fn is_plain(&self) -> bool {
        matches!(self.source, WordSource::Plain { .. })
    }

    pub(super) fn is_zero(&self, index: usize) -> bool {
        const ZEROS: &[u8] = &[0; BLOCK_BYTES];
        let block = self.block(index);
        block == &ZEROS[..block.len()]
    }
}

/// Bytes that a word takes.
pub(super) fn stride(width: u32) -> usize {
    width.div_ceil(8) as usize
}

/// The digits of a word, the most significant first.
pub(super) fn hex(word: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in word.iter().rev() {
        out.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}
