//! Reads tables in the format from before escapes were numbered, to convert them.
//!
//! Root and bitmaps were the same. There was only one escape code, the largest code of the width. The places of a
//! record's network records followed its values, in the same order. The codes of a network record followed its bitmap
//! directly.

use fibula_core::{LoadError, TableSource};

use super::record::{BLOCK, LONG_MAP, MAP, ROOT_WORDS};
use crate::common::optional_table;

/// The names of the tables in that format, and the bytes of a code.
const NAMES: [(&str, usize); 3] = [("records8", 1), ("records16", 2), ("records32", 4)];
/// The most pieces of the address space that a table may have; a damaged table could have billions, by sharing records.
const MOST: u32 = 1 << 26;

/// Calls `paint` with the pieces of the address space and their codes, in order, equal neighbours merged. Returns
/// `false` if there is no such table.
pub(super) fn read(
    tables: &dyn TableSource,
    hop_count: u32,
    paint: impl FnMut(u32, u32, u32),
) -> Result<bool, LoadError> {
    for (name, width) in NAMES {
        if let Some(bytes) = optional_table::<u8>(tables, name)? {
            let mut reader =
                Reader { bytes: &bytes, width, hop_count, pieces: 0, piece: (0, 0), paint };
            return match reader.all() {
                Some(()) => Ok(true),
                None => Err(LoadError::new(name, "has a damaged record")),
            };
        }
    }
    Ok(false)
}

struct Reader<'a, F> {
    bytes: &'a [u8],
    width: usize,
    hop_count: u32,
    pieces: u32,
    /// The first address of the current piece, and its code.
    piece: (u32, u32),
    paint: F,
}

impl<F: FnMut(u32, u32, u32)> Reader<'_, F> {
    /// Reads the whole table; `None` if a record is incomplete or a code is invalid.
    fn all(&mut self) -> Option<()> {
        for block in 0..ROOT_WORDS as u32 {
            let at = self.word(4 * block as usize, 4)? as usize;
            self.block(block * BLOCK, at)?;
        }
        let (first, code) = self.piece;
        (self.paint)(first, u32::MAX, code);
        Some(())
    }

    /// Reads the record at `at`, of the block that begins with this network.
    fn block(&mut self, mut network: u32, at: usize) -> Option<()> {
        let map = self.map(at)?;
        let values = at + MAP;
        let runs = map.count_ones() as usize;
        let escape = u32::MAX >> (32 - 8 * self.width);
        let code = |this: &Self, run: usize| this.word(values + run * this.width, this.width);
        let mut escapes = 0;
        for run in 0..runs {
            escapes += usize::from(code(self, run)? == escape);
        }
        let block = network;
        for run in (0..runs).rev() {
            let end = block + nth_from_top(map, run) + 1;
            let value = code(self, run)?;
            if value != escape {
                self.piece(network << 8, value)?;
                network = end;
                continue;
            }
            escapes -= 1;
            let place = self.word(values + runs * self.width + 4 * escapes, 4)? as usize;
            for network in network..end {
                self.network(network << 8, place)?;
            }
            network = end;
        }
        (map >> (BLOCK - 1) == 1).then_some(())
    }

    /// Reads the record at `at`, of the network that begins with this address.
    fn network(&mut self, mut first: u32, at: usize) -> Option<()> {
        let maps = [3, 2, 1, 0].map(|word| self.map(at + 8 * word));
        let mut behind = 0;
        let mut ends = Vec::new();
        for (map, word) in maps.into_iter().zip([3u32, 2, 1, 0]) {
            let map = map?;
            ends.extend(
                (0..map.count_ones() as usize).map(|run| 64 * word + nth_from_top(map, run)),
            );
            behind += map.count_ones() as usize;
        }
        if ends.first() != Some(&255) {
            return None;
        }
        let network = first;
        for run in (0..behind).rev() {
            self.piece(first, self.word(at + LONG_MAP + 4 * run, 4)?)?;
            // Of the last network of all, the next one's address would be beyond 32 bits.
            first = network + (ends[run] + 1 - u32::from(run == 0));
        }
        Some(())
    }

    /// Begins a piece.
    fn piece(&mut self, first: u32, code: u32) -> Option<()> {
        self.pieces += 1;
        if code > self.hop_count || self.pieces > MOST {
            return None;
        }
        if first == 0 {
            self.piece = (first, code);
        } else if code != self.piece.1 {
            (self.paint)(self.piece.0, first - 1, self.piece.1);
            self.piece = (first, code);
        }
        Some(())
    }

    fn map(&self, at: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes.get(at..)?.first_chunk().copied()?))
    }

    /// Reads a number of `width` bytes.
    fn word(&self, at: usize, width: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at + width)?;
        Some(match *bytes {
            [byte] => byte.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            _ => u32::from_ne_bytes(*bytes.first_chunk()?),
        })
    }
}

/// The position of a bitmap's set bit with this number, counted from the highest set bit.
fn nth_from_top(mut map: u64, number: usize) -> u32 {
    (0..number).for_each(|_| map ^= 1 << map.ilog2());
    map.ilog2()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use fibula_core::{Engine, Hop, Lookup, Persist, Prefix, Routes, TableRef};
    use fibula_testkit::{Oracle, StoredTables};

    use crate::runmap::record::ROOT_BYTES;
    use crate::runmap::tests::{assert_right, up_to};
    use crate::runmap::{Config, Runmap};

    /// Stores the routes in the old format.
    fn stored_of_old(routes: &Routes<u32>, width: usize) -> Vec<u8> {
        let oracle = Oracle::new(routes);
        let escape = u32::MAX >> (32 - 8 * width);
        let runs_of = |codes: &[u32]| -> (Vec<usize>, Vec<u32>) {
            let is_end = |&at: &usize| codes.get(at + 1) != Some(&codes[at]);
            let ends: Vec<usize> = (0..codes.len()).rev().filter(is_end).collect();
            (ends.clone(), ends.iter().map(|&at| codes[at]).collect())
        };
        let mut bytes = vec![0; ROOT_BYTES];
        let mut whole = HashMap::new();
        for block in 0..(ROOT_BYTES / 4) as u32 {
            let prefix = Prefix::new(block << 14, 18).unwrap();
            let code = |addr: u32| oracle.lookup(addr).to_bits().wrapping_add(1);
            let word = if routes.within(prefix).is_empty() {
                *whole.entry(code(block << 14)).or_insert_with_key(|&code| {
                    let at = bytes.len() as u32;
                    bytes.extend((1u64 << 63).to_ne_bytes());
                    bytes.extend(&code.to_ne_bytes()[..width]);
                    at
                })
            } else {
                let mut places = Vec::new();
                let mut codes = Vec::new();
                for network in (0..64).map(|network| block << 14 | network << 8) {
                    let (ends, values) =
                        runs_of(&(0..256).map(|i| code(network | i)).collect::<Vec<_>>());
                    if values.len() == 1 && values[0] < escape {
                        codes.push(values[0]);
                        continue;
                    }
                    // All hops differ, so that each is a run.
                    codes.push(escape.wrapping_add(1 + places.len() as u32));
                    places.push(bytes.len().next_multiple_of(4) as u32);
                    bytes.resize(bytes.len().next_multiple_of(4), 0);
                    let mut map = [0u64; 4];
                    ends.iter().for_each(|end| map[end / 64] |= 1 << (end % 64));
                    bytes.extend(map.iter().flat_map(|word| word.to_ne_bytes()));
                    bytes.extend(values.iter().flat_map(|code| code.to_ne_bytes()));
                }
                let (ends, values) = runs_of(&codes);
                let at = bytes.len() as u32;
                let map = ends.iter().fold(0u64, |map, end| map | 1 << end);
                bytes.extend(map.to_ne_bytes());
                values
                    .iter()
                    .for_each(|&code| bytes.extend(&code.min(escape).to_ne_bytes()[..width]));
                bytes.extend(places.iter().rev().flat_map(|place| place.to_ne_bytes()));
                at
            };
            bytes[4 * block as usize..][..4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        bytes
    }

    /// Complete tables of older versions are read; truncated ones are refused.
    #[test]
    fn tables_of_old_are_written_anew() {
        for (name, width, hops) in
            [("records8", 1, 190), ("records8", 1, 254), ("records16", 2, 65_000)]
        {
            // The last network of all is divided, too.
            let last = (Prefix::new(0xffff_fff0, 28).unwrap(), Hop::new(0));
            let routes: Routes<u32> =
                up_to(hops).iter().map(|route| (route.prefix, route.hop)).chain([last]).collect();
            let bytes = stored_of_old(&routes, width);
            let load = |bytes: &[u8]| {
                let stored = StoredTables::of(&[TableRef { name, bytes }]);
                Runmap::load(&stored, routes.hop_count(), &Config::default())
            };
            let loaded = load(&bytes).unwrap();
            assert_right(&loaded, &routes, &format!("{name}, {hops} hops"));
            let built = Runmap::build(&routes, &Config::default()).unwrap();
            assert_eq!(loaded.tables()[0].bytes, built.tables()[0].bytes);
            for len in [0, ROOT_BYTES, ROOT_BYTES + 64] {
                assert!(load(&bytes[..len]).is_err(), "{name}, {len} bytes");
            }
        }
    }
}
