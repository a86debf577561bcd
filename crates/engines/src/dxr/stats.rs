use super::format::{Chunk, Entry, WideEntry};
use super::{Dxr, Form, lookup};

/// The parts of a [`Dxr`]: the columns of the paper's table 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Leading bits that index the lookup table.
    pub k: u8,
    /// Whether the tables are of the wide form, which is ours.
    pub wide: bool,
    /// log2 of the grain: 0 as the paper has it, up to 3 for tables that outgrow its fields.
    pub grain: u8,
    /// Chunks that are searched; the others are direct.
    pub full_chunks: usize,
    /// Entries of short chunks as stored, including the padding to whole words or grains.
    pub short_ranges: usize,
    /// Entries of long chunks, fillers included.
    pub long_ranges: usize,
    /// Ranges of the wide form.
    pub wide_ranges: usize,
    /// Entries of the largest chunk.
    pub largest_chunk: usize,
    /// Bytes of all tables.
    pub bytes: usize,
}

pub(super) fn stats(dxr: &Dxr) -> Stats {
    let bytes = fibula_core::Lookup::memory(dxr).total();
    let mut stats = Stats { k: dxr.k(), bytes, ..Stats::default() };
    match &dxr.form {
        Form::Compact(tables) => {
            stats.grain = tables.grain as u8;
            let entries = tables.lookup.iter().map(|&bits| Entry(bits));
            for entry in entries.filter(|entry| entry.direct().is_none()) {
                let chunk = Chunk::new(entry, tables.grain);
                let words =
                    Chunk::words(chunk.size, chunk.long).next_multiple_of(1 << tables.grain);
                stats.full_chunks += 1;
                stats.largest_chunk = stats.largest_chunk.max(chunk.size);
                if chunk.long {
                    stats.long_ranges += words;
                } else {
                    stats.short_ranges += 2 * words;
                }
            }
        }
        Form::Wide(tables) => {
            stats.wide = true;
            stats.wide_ranges = tables.used - tables.holes;
            let sizes = tables.lookup.iter().map(|&bits| WideEntry(bits).size() as usize);
            for size in sizes.filter(|&size| size != 0) {
                stats.full_chunks += 1;
                stats.largest_chunk = stats.largest_chunk.max(size);
            }
        }
    }
    stats
}

pub(super) fn search_steps(dxr: &Dxr, addr: u32) -> u32 {
    let mut steps = 0;
    let count = || steps += 1;
    match &dxr.form {
        Form::Compact(tables) => lookup::compact(tables, dxr.shift, addr, count),
        Form::Wide(tables) => lookup::wide(tables, dxr.shift, addr, count),
    };
    steps
}
