use std::collections::HashSet;

use fibula_core::{LoadError, TableSource};

use super::Tables;
use super::build::paint;
use super::old;
use super::record::{
    BLOCK, LONG_HEAD, LONG_MAP, Leaf, MAP, ROOT_BYTES, behind, front, long_place, read, value,
    values,
};
use super::space::LINE;
use crate::common::optional_table;

/// The stored table of codes of this width, if there is one.
pub(super) fn load<V: Leaf>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Option<Tables<V>>, LoadError> {
    let Some(records) = optional_table::<u8>(tables, V::TABLE)? else { return Ok(None) };
    // Places have 32 bits.
    if records.len() < ROOT_BYTES || u32::try_from(records.len()).is_err() {
        return Err(LoadError::new(V::TABLE, "is no root with records"));
    }
    // Patches append records at the end of the table, and these must not cross lines.
    if !records.len().is_multiple_of(LINE) {
        return Err(LoadError::new(V::TABLE, "is not whole cache lines"));
    }
    let mut check = Check { bytes: &records, hop_count, long: HashSet::new() };
    let mut last = None;
    for word in bytemuck::cast_slice::<u8, u32>(&records[..ROOT_BYTES]) {
        // Neighbours often share a record.
        if last != Some(word) && !check.record::<V>(*word as usize) {
            return Err(LoadError::new(V::TABLE, "has a damaged record"));
        }
        last = Some(word);
    }
    Ok(Some(Tables::new(records)))
}

/// The tables converted from one that an older version stored, if there is one.
pub(super) fn load_old<V: Leaf>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Option<Tables<V>>, LoadError> {
    let mut read = Ok(false);
    let painted = paint::<V>(|painter| {
        read = old::read(tables, hop_count, |first, last, code| painter.range(first, last, code));
    });
    if !read? {
        return Ok(None);
    }
    painted.map(Some).map_err(|error| LoadError::new(V::TABLE, error.to_string()))
}

struct Check<'a> {
    bytes: &'a [u8],
    hop_count: u32,
    /// The network records that have passed the check. Runs may share a record; without this set, checking a small
    /// file could take very long.
    long: HashSet<usize>,
}

impl Check<'_> {
    /// Whether the record at `at` lies in the table with its values, all hops are below the hop count, and all
    /// network records pass the check.
    fn record<V: Leaf>(&mut self, at: usize) -> bool {
        if self.bytes.len() < at + MAP {
            return false;
        }
        let map: u64 = read(self.bytes, at);
        let runs = map.count_ones() as usize;
        let end = values(at) + runs * size_of::<V>();
        if map >> (BLOCK - 1) == 0 || self.bytes.len() < end {
            return false;
        }
        let mut escapes = V::ESCAPE..;
        (0..runs).all(|run| match value::<V>(self.bytes, at, run) {
            // The escapes are numbered in the order of the values.
            code if code >= V::ESCAPE => {
                escapes.next() == Some(code)
                    && at >= front((code - V::ESCAPE) as usize + 1)
                    && self.long(long_place::<V>(self.bytes, at, code))
            }
            code => code <= self.hop_count,
        })
    }

    /// Whether the network record at `at` lies in the table with its codes, and all hops are below the hop count.
    fn long(&mut self, at: usize) -> bool {
        if self.long.contains(&at) {
            return true;
        }
        // A record cannot lie in the root: `long.rs` uses place 0 for "no record".
        if at < ROOT_BYTES || !at.is_multiple_of(4) || self.bytes.len() < at + LONG_HEAD {
            return false;
        }
        let map: [u64; 4] = read(self.bytes, at);
        let runs: u32 = map.iter().map(|word| word.count_ones()).sum();
        let codes = at + LONG_HEAD..at + LONG_HEAD + 4 * runs as usize;
        let sound = map[3] >> 63 == 1
            && read::<[u8; 4]>(self.bytes, at + LONG_MAP) == behind(map)
            && self.bytes.get(codes).is_some_and(|codes| {
                codes.chunks(4).all(|code| read::<u32>(code, 0) <= self.hop_count)
            });
        if sound {
            self.long.insert(at);
        }
        sound
    }
}
