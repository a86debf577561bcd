use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::format::{Chunk, Entry, GRAIN_MAX, WideEntry};
use super::{Compact, Form, K_RANGE, Wide, name};
use crate::common::table;

/// Stored tables, checked whole: one pass over the lookup table and one over the ranges.
///
/// Together the chunks may take no more than there is, so the check stays linear even for a file made
/// to be slow.
pub(super) fn load(tables: &dyn TableSource, hop_count: u32) -> Result<(u32, Form), LoadError> {
    let shape: Table<u32> = table(tables, name::SHAPE)?;
    let (k, is_wide, grain) = match shape[..] {
        [k, grain, 0] if grain <= GRAIN_MAX => (k, false, grain),
        [k, 0, 1] => (k, true, 0),
        _ => return Err(LoadError::new(name::SHAPE, "is of no known form")),
    };
    if !u8::try_from(k).is_ok_and(|k| K_RANGE.contains(&k)) {
        return Err(LoadError::new(name::SHAPE, "k is out of range"));
    }
    let check = Check { k, hop_count };
    let form = if is_wide {
        Form::Wide(check.wide(tables)?)
    } else {
        Form::Compact(check.compact(tables, grain)?)
    };
    Ok((k, form))
}

/// The bounds for stored tables.
struct Check {
    k: u32,
    hop_count: u32,
}

/// How much of the range table the chunks take.
#[derive(Default)]
struct Taken {
    /// Up to the end of the last chunk.
    used: usize,
    /// By all chunks together.
    sum: usize,
}

impl Taken {
    /// Takes a chunk, if it lies within the range table and the sum of all does.
    fn take(&mut self, at: usize, size: usize, len: usize) -> bool {
        if size == 0 || at > len || size > len - at || size > len - self.sum {
            return false;
        }
        self.sum += size;
        self.used = self.used.max(at + size);
        true
    }

    /// The number of used elements, and how many of them belong to no chunk.
    fn holes(self) -> Result<(usize, usize), LoadError> {
        let overlap = || LoadError::new(name::LOOKUP, "chunks overlap");
        Ok((self.used, self.used.checked_sub(self.sum).ok_or_else(overlap)?))
    }
}

impl Check {
    fn compact(&self, tables: &dyn TableSource, grain: u32) -> Result<Compact, LoadError> {
        let lookup: Table<u32> = table(tables, name::LOOKUP)?;
        let ranges: Table<u32> = table(tables, name::RANGES)?;
        self.length(lookup.len())?;
        let Some(end) = ranges.len().checked_sub(1) else {
            return Err(LoadError::new(name::RANGES, "has no guard word"));
        };
        let mut taken = Taken::default();
        for entry in lookup.iter().map(|&bits| Entry(bits)) {
            if entry.0 < Entry::DIRECT_END {
                self.code(name::LOOKUP, entry.0)?;
                continue;
            }
            let chunk = Chunk::new(entry, grain);
            let words = Chunk::words(chunk.size, chunk.long).next_multiple_of(1 << grain);
            if !taken.take(chunk.word, words, end) {
                return Err(LoadError::new(name::LOOKUP, "a chunk is out of place"));
            }
            let ranges = (0..chunk.size).map(|i| {
                let entry = chunk.entry(&ranges, i);
                (chunk.start(entry), chunk.code(entry))
            });
            self.ranges(name::RANGES, ranges)?;
        }
        let (used, holes) = taken.holes()?;
        Ok(Compact { grain, lookup, ranges, used, holes })
    }

    fn wide(&self, tables: &dyn TableSource) -> Result<Wide, LoadError> {
        let lookup: Table<u64> = table(tables, name::LOOKUP)?;
        let starts: Table<u16> = table(tables, name::STARTS)?;
        let codes: Table<u32> = table(tables, name::HOPS)?;
        self.length(lookup.len())?;
        if starts.len() != codes.len() {
            return Err(LoadError::new(name::HOPS, "has another length than the starts"));
        }
        let mut taken = Taken::default();
        for entry in lookup.iter().map(|&bits| WideEntry(bits)) {
            let (at, size) = (entry.position() as usize, entry.size() as usize);
            if size == 0 {
                self.code(name::LOOKUP, entry.position())?;
                continue;
            }
            if !taken.take(at, size, starts.len()) {
                return Err(LoadError::new(name::LOOKUP, "a chunk is out of place"));
            }
            let starts = starts[at..at + size].iter().map(|&start| start.into());
            self.ranges(name::STARTS, starts.zip(codes[at..].iter().copied()))?;
        }
        let (used, holes) = taken.holes()?;
        Ok(Wide { lookup, starts, codes, used, holes })
    }

    fn length(&self, entries: usize) -> Result<(), LoadError> {
        if entries == 1 << self.k {
            Ok(())
        } else {
            Err(LoadError::new(name::LOOKUP, "has another length than k says"))
        }
    }

    fn code(&self, table: &'static str, code: u32) -> Result<(), LoadError> {
        // Codes are hops plus one, and 0 is none.
        if code <= self.hop_count {
            Ok(())
        } else {
            Err(LoadError::new(table, "a hop is out of range"))
        }
    }

    /// The ranges of a chunk, as start and code.
    fn ranges(
        &self,
        table: &'static str,
        ranges: impl Iterator<Item = (u32, u32)>,
    ) -> Result<(), LoadError> {
        let mut before = None;
        for (start, code) in ranges {
            self.code(table, code)?;
            let in_order = before.map_or(start == 0, |before| before <= start);
            if !in_order || start >= 1 << (32 - self.k) {
                return Err(LoadError::new(table, "the ranges of a chunk are out of order"));
            }
            before = Some(start);
        }
        Ok(())
    }
}
