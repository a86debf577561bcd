use fibula_core::{LoadError, TableSource};
use fibula_simd::Table;

use super::format::{Chunk, Entry, GRAIN_MAX, WideEntry};
use super::{Compact, Form, K_RANGE, Wide, name};
use crate::common::table;

/// Stored tables, checked whole: one pass over the lookup table and one over the ranges.
///
/// The chunks must lie in the order of their entries, each where the one before ends. That is how
/// they are built; it keeps the check linear even for a file made to be slow.
pub(super) fn load(tables: &dyn TableSource, hop_count: u32) -> Result<(u32, Form), LoadError> {
    let shape: Table<u32> = table(tables, name::SHAPE)?;
    let (k, form) = match shape[..] {
        [k, grain, 0] if grain <= GRAIN_MAX => (k, compact_tables(tables, grain)?),
        [k, 0, 1] => (k, wide_tables(tables)?),
        _ => return Err(LoadError::new(name::SHAPE, "is of no known form")),
    };
    if !u8::try_from(k).is_ok_and(|k| K_RANGE.contains(&k)) {
        return Err(LoadError::new(name::SHAPE, "k is out of range"));
    }
    match &form {
        Form::Compact(tables) => check_compact(tables, k, hop_count)?,
        Form::Wide(tables) => check_wide(tables, k, hop_count)?,
    }
    Ok((k, form))
}

fn compact_tables(tables: &dyn TableSource, grain: u32) -> Result<Form, LoadError> {
    let (lookup, ranges) = (table(tables, name::LOOKUP)?, table(tables, name::RANGES)?);
    Ok(Form::Compact(Compact { grain, lookup, ranges }))
}

fn wide_tables(tables: &dyn TableSource) -> Result<Form, LoadError> {
    Ok(Form::Wide(Wide {
        lookup: table(tables, name::LOOKUP)?,
        starts: table(tables, name::STARTS)?,
        codes: table(tables, name::HOPS)?,
    }))
}

fn check_compact(tables: &Compact, k: u32, hop_count: u32) -> Result<(), LoadError> {
    let Compact { grain, lookup, ranges } = tables;
    let grain = *grain;
    check_length(lookup.len(), k)?;
    let Some(end) = ranges.len().checked_sub(1) else {
        return Err(LoadError::new(name::RANGES, "has no guard word"));
    };
    let mut at = 0;
    for entry in lookup.iter().map(|&bits| Entry(bits)) {
        if entry.0 < Entry::DIRECT_END {
            check_code(name::LOOKUP, entry.0, hop_count)?;
            continue;
        }
        let chunk = Chunk::new(entry, grain);
        let words = Chunk::words(chunk.size, chunk.long).next_multiple_of(1 << grain);
        if chunk.size == 0 || chunk.word != at || words > end - at {
            return Err(LoadError::new(name::LOOKUP, "a chunk is out of place"));
        }
        at += words;
        let ranges = (0..chunk.size).map(|i| {
            let entry = chunk.entry(ranges, i);
            (chunk.start(entry), chunk.code(entry))
        });
        check_ranges(name::RANGES, ranges, k, hop_count)?;
    }
    if at == end {
        Ok(())
    } else {
        Err(LoadError::new(name::RANGES, "has entries that no chunk owns"))
    }
}

fn check_wide(tables: &Wide, k: u32, hop_count: u32) -> Result<(), LoadError> {
    let Wide { lookup, starts, codes } = tables;
    check_length(lookup.len(), k)?;
    if starts.len() != codes.len() {
        return Err(LoadError::new(name::HOPS, "has another length than the starts"));
    }
    let mut at = 0;
    for entry in lookup.iter().map(|&bits| WideEntry(bits)) {
        let size = entry.size() as usize;
        if size == 0 {
            check_code(name::LOOKUP, entry.position(), hop_count)?;
            continue;
        }
        if entry.position() as usize != at || size > starts.len() - at {
            return Err(LoadError::new(name::LOOKUP, "a chunk is out of place"));
        }
        let ranges =
            starts[at..at + size].iter().map(|&s| s.into()).zip(codes[at..].iter().copied());
        check_ranges(name::STARTS, ranges, k, hop_count)?;
        at += size;
    }
    if at == starts.len() {
        Ok(())
    } else {
        Err(LoadError::new(name::STARTS, "has entries that no chunk owns"))
    }
}

fn check_length(entries: usize, k: u32) -> Result<(), LoadError> {
    if entries == 1 << k {
        Ok(())
    } else {
        Err(LoadError::new(name::LOOKUP, "has another length than k says"))
    }
}

fn check_code(table: &'static str, code: u32, hop_count: u32) -> Result<(), LoadError> {
    // Codes are hops plus one, and 0 is none.
    if code <= hop_count { Ok(()) } else { Err(LoadError::new(table, "a hop is out of range")) }
}

/// The ranges of a chunk, as start and code.
fn check_ranges(
    table: &'static str,
    ranges: impl Iterator<Item = (u32, u32)>,
    k: u32,
    hop_count: u32,
) -> Result<(), LoadError> {
    let mut before = None;
    for (start, code) in ranges {
        check_code(table, code, hop_count)?;
        let in_order = before.map_or(start == 0, |before| before <= start);
        if !in_order || start >= 1 << (32 - k) {
            return Err(LoadError::new(table, "the ranges of a chunk are out of order"));
        }
        before = Some(start);
    }
    Ok(())
}
