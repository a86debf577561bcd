use fibula_core::{BuildError, Prefix, Ranges, Routes};
use fibula_simd::Table;

use super::format::{
    Chunk, Entry, GRAIN_MAX, LONG_CODE_MAX, POSITION_BITS, SHORT_CODE_MAX, SIZE_BITS, WideEntry,
    code,
};
use super::{Compact, Form, Wide};
use crate::common::on_threads;

/// Compiles the routes: cuts their ranges into chunks, then encodes the chunks in the narrowest form
/// that holds them.
pub(super) fn build(routes: &Routes<u32>, k: u32, threads: usize) -> Result<Form, BuildError> {
    let chunks = cut_all(routes, 32 - k, threads)?;
    let narrow = routes.hop_count() <= LONG_CODE_MAX;
    match (0..=GRAIN_MAX).find(|&grain| narrow && chunks.fit(grain)) {
        Some(grain) => Ok(Form::Compact(chunks.compact(grain))),
        None => Ok(Form::Wide(chunks.wide())),
    }
}

/// Cuts all ranges. Chunks do not depend on each other, so each thread takes a part of the addresses at a time.
fn cut_all(routes: &Routes<u32>, shift: u32, threads: usize) -> Result<Chunks, BuildError> {
    /// Bits of the addresses of a part: there are many more parts than threads, because routes are not spread evenly.
    const PART: u8 = 6;
    if threads < 2 {
        return Chunks::cut(routes.ranges(), 0, shift);
    }
    let parts: Vec<Prefix<u32>> = (0..1u32 << PART)
        .map(|part| Prefix::masked(part << (32 - PART), PART).expect("shorter than an address"))
        .collect();
    let cut = |&part: &Prefix<u32>| {
        Chunks::cut(routes.ranges_within(part), (part.first() >> shift) as usize, shift)
    };
    let mut all = Chunks::default();
    for part in on_threads(threads, &parts, cut) {
        all.append(&part?)?;
    }
    Ok(all)
}

/// The ranges of a table, or of a part of it, by chunk, not yet encoded. Equal neighbours are merged.
#[derive(Default)]
pub(super) struct Chunks {
    /// For each chunk its number of ranges, and where the first one is; for a chunk of one range
    /// nothing is stored but the code of its hop.
    pub(super) chunks: Vec<(u32, u32)>,
    /// Where each range starts within its chunk.
    starts: Vec<u16>,
    /// The codes of the hops.
    codes: Vec<u32>,
}

impl Chunks {
    /// Cuts the ranges of whole chunks, of which the first has this number.
    pub(super) fn cut(
        ranges: Ranges<'_, u32>,
        first: usize,
        shift: u32,
    ) -> Result<Self, BuildError> {
        let mut this = Self::default();
        let local = (1u32 << shift) - 1;
        // Where the ranges of the chunk at hand begin.
        let mut begin = 0;
        for range in ranges {
            let code = code(range.hop);
            this.starts.push((range.first & local) as u16);
            this.codes.push(code);
            let last_chunk = (range.last >> shift) as usize - first;
            if this.chunks.len() < last_chunk {
                this.close(begin)?;
                this.chunks.resize(last_chunk, (1, code));
                begin = this.starts.len();
                this.starts.push(0);
                this.codes.push(code);
            }
            if range.last & local == local {
                this.close(begin)?;
                begin = this.starts.len();
            }
        }
        Ok(this)
    }

    /// Ends the chunk whose ranges are those from `begin`.
    fn close(&mut self, begin: usize) -> Result<(), BuildError> {
        let size = self.starts.len() - begin;
        if size == 1 {
            self.chunks.push((1, self.codes[begin]));
            self.starts.pop();
            self.codes.pop();
            return Ok(());
        }
        at_most(self.starts.len())?;
        self.chunks.push((size as u32, begin as u32));
        Ok(())
    }

    /// Adds the chunks behind these.
    fn append(&mut self, part: &Self) -> Result<(), BuildError> {
        let before = self.starts.len();
        at_most(before + part.starts.len())?;
        self.starts.extend_from_slice(&part.starts);
        self.codes.extend_from_slice(&part.codes);
        self.chunks.extend(part.chunks.iter().map(|&(size, value)| match size {
            1 => (1, value),
            _ => (size, before as u32 + value),
        }));
        Ok(())
    }

    /// The chunks of several ranges: index, starts, codes.
    pub(super) fn full(&self) -> impl Iterator<Item = (usize, &[u16], &[u32])> {
        self.chunks.iter().enumerate().filter(|(_, c)| c.0 > 1).map(|(index, &(size, begin))| {
            let at = begin as usize..(begin + size) as usize;
            (index, &self.starts[at.clone()], &self.codes[at])
        })
    }

    /// Whether sizes and positions fit their fields in units of 2^grain.
    fn fit(&self, grain: u32) -> bool {
        let size_max = ((1 << SIZE_BITS) - 1) << grain;
        let mut words = 0;
        self.full().all(|(_, starts, codes)| {
            let at = words;
            words += padded(starts.len(), is_long(starts, codes), grain);
            starts.len() <= size_max && at >> grain < 1 << POSITION_BITS
        })
    }

    fn compact(&self, grain: u32) -> Compact {
        let mut lookup: Vec<u32> = self.chunks.iter().map(|&(_, code)| code).collect();
        let mut ranges = Vec::with_capacity(self.starts.len() + 1);
        for (index, starts, codes) in self.full() {
            let long = is_long(starts, codes);
            let size = starts.len().div_ceil(1 << grain) as u32;
            lookup[index] = Entry::new(long, size, (ranges.len() >> grain) as u32).0;
            let words = padded(starts.len(), long, grain);
            ranges.extend((0..words).map(|word| encode(starts, codes, long, word)));
        }
        // The guard: a 32-bit load of the last short entry reaches into the next word.
        ranges.push(0);
        let used = ranges.len() - 1;
        let (lookup, ranges) = (Table::from_vec(lookup), Table::from_vec(ranges));
        Compact { grain, lookup, ranges, used, holes: 0 }
    }

    fn wide(mut self) -> Wide {
        let lookup: Vec<u64> = self
            .chunks
            .iter()
            .map(|&(size, value)| WideEntry::new(if size == 1 { 0 } else { size }, value).0)
            .collect();
        self.starts.shrink_to_fit();
        self.codes.shrink_to_fit();
        Wide {
            used: self.starts.len(),
            holes: 0,
            lookup: Table::from_vec(lookup),
            starts: Table::from_vec(self.starts),
            codes: Table::from_vec(self.codes),
        }
    }
}

/// Whether there may be so many ranges: vector gathers take signed 32-bit indices.
fn at_most(ranges: usize) -> Result<(), BuildError> {
    let limit = i32::MAX as u64 - 2;
    let needed = ranges as u64;
    if needed > limit {
        return Err(BuildError::Limit { engine: "dxr", what: "ranges", limit, needed });
    }
    Ok(())
}

/// A word of an encoded chunk. Padding repeats the last range: it starts where that one starts, a
/// search may end on either.
pub(super) fn encode(starts: &[u16], codes: &[u32], long: bool, word: usize) -> u32 {
    let last = starts.len() - 1;
    let entry = |i: usize| (u32::from(starts[i.min(last)]), codes[i.min(last)]);
    if long {
        let (start, code) = entry(word);
        start << 16 | code
    } else {
        let (low, high) = (entry(2 * word), entry(2 * word + 1));
        low.0 | low.1 | (high.0 | high.1) << 16
    }
}

/// Whether a chunk needs long entries: a range that is not made of /24s, or a hop beyond 8 bits.
pub(super) fn is_long(starts: &[u16], codes: &[u32]) -> bool {
    starts.iter().any(|start| start & 0xff != 0) || codes.iter().any(|&c| c > SHORT_CODE_MAX)
}

/// Words that a chunk takes in the range table.
pub(super) fn padded(size: usize, long: bool, grain: u32) -> usize {
    Chunk::words(size, long).next_multiple_of(1 << grain)
}
