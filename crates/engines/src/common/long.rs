use std::collections::BTreeMap;

use fibula_core::{BuildError, LoadError, TableRef, TableSource};
use fibula_simd::Table;

use super::{optional_table, table};

const STARTS: &str = "long_starts";
const LASTS: &str = "long_lasts";
const CODES: &str = "long_codes";

/// The networks in which routes longer than the key lie, so that the key alone does not give the answer:
/// for each, the intervals of the low bits.
///
/// Block *b* has the intervals `starts[b]..starts[b + 1]`, sorted, the final one ending at the last
/// low part. The searching engine stores for such a network a code that names its block.
///
/// Invariants: `starts` ascends strictly from 0 to the length of `lasts` and `codes`; within a block
/// `lasts` ascends strictly and ends with [`u64::MAX`].
#[derive(Clone)]
pub(crate) struct Long {
    starts: Table<u32>,
    lasts: Table<u64>,
    codes: Table<u32>,
}

impl Long {
    /// Number of blocks, at least one.
    pub(crate) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The code of the low bits in the block.
    #[cold]
    pub(crate) fn find(&self, block: usize, low: u64) -> u32 {
        let (start, end) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        self.codes[start + self.lasts[start..end].partition_point(|&last| last < low)]
    }

    /// Whether the block has these intervals: their ends and codes.
    pub(crate) fn is_block(&self, block: usize, intervals: &[(u64, u32)]) -> bool {
        let range = self.starts[block] as usize..self.starts[block + 1] as usize;
        let own = self.lasts[range.clone()].iter().copied().zip(self.codes[range].iter().copied());
        own.eq(intervals.iter().copied())
    }

    /// The blocks of `before` with the intervals of some exchanged, and blocks behind them: those from `before`'s
    /// number on, without a gap. O(all intervals).
    pub(crate) fn with_blocks(
        before: Option<&Self>,
        changed: &BTreeMap<usize, Vec<(u64, u32)>>,
        engine: &'static str,
    ) -> Result<Option<Self>, BuildError> {
        let known = before.map_or(0, Self::blocks);
        let blocks = changed.last_key_value().map_or(known, |(last, _)| known.max(last + 1));
        let mut changed = changed.iter().peekable();
        let mut all = LongBuilder::default();
        for block in 0..blocks {
            all.begin();
            if let Some((_, intervals)) = changed.next_if(|(next, _)| **next == block) {
                intervals.iter().for_each(|&(last, code)| all.push(last, code));
            } else if let Some(before) = before {
                let range = before.starts[block] as usize..before.starts[block + 1] as usize;
                all.lasts.extend_from_slice(&before.lasts[range.clone()]);
                all.codes.extend_from_slice(&before.codes[range]);
            }
        }
        all.finish(engine)
    }

    pub(crate) fn tables(&self) -> [TableRef<'_>; 3] {
        [
            TableRef { name: STARTS, bytes: self.starts.as_bytes() },
            TableRef { name: LASTS, bytes: self.lasts.as_bytes() },
            TableRef { name: CODES, bytes: self.codes.as_bytes() },
        ]
    }

    /// Loads the stored tables; `None` if there are none, because no route was longer than the key.
    pub(crate) fn load(
        tables: &dyn TableSource,
        hop_count: u32,
    ) -> Result<Option<Self>, LoadError> {
        let long = Self::load_any(tables)?;
        if long
            .as_ref()
            .is_some_and(|long| (0..long.blocks()).any(|b| !long.is_sound(b, hop_count)))
        {
            return Err(LoadError::new(CODES, "names a hop beyond the hop count"));
        }
        Ok(long)
    }

    /// As [`Self::load`], for blocks that may have codes of any hops, because patches have left them behind.
    pub(crate) fn load_any(tables: &dyn TableSource) -> Result<Option<Self>, LoadError> {
        let Some(starts) = optional_table::<u32>(tables, STARTS)? else { return Ok(None) };
        let long = Self { starts, lasts: table(tables, LASTS)?, codes: table(tables, CODES)? };
        long.check()?;
        Ok(Some(long))
    }

    /// Whether the block's codes are those of hops.
    pub(crate) fn is_sound(&self, block: usize, hop_count: u32) -> bool {
        let codes = &self.codes[self.starts[block] as usize..self.starts[block + 1] as usize];
        codes.iter().all(|&code| code <= hop_count)
    }

    fn check(&self) -> Result<(), LoadError> {
        let len = self.lasts.len();
        if self.codes.len() != len {
            return Err(LoadError::new(CODES, "is not as long as long_lasts"));
        }
        let ends = (self.starts.first(), self.starts.last());
        let whole = ends.0 == Some(&0) && ends.1.is_some_and(|&end| end as usize == len);
        if self.starts.len() < 2 || !whole || !self.starts.is_sorted_by(|a, b| a < b) {
            return Err(LoadError::new(STARTS, "does not divide long_lasts into blocks"));
        }
        for block in self.starts.windows(2) {
            let lasts = &self.lasts[block[0] as usize..block[1] as usize];
            if !lasts.is_sorted_by(|a, b| a < b) || lasts.last() != Some(&u64::MAX) {
                return Err(LoadError::new(
                    LASTS,
                    "a block is not sorted or does not end at the top",
                ));
            }
        }
        Ok(())
    }
}

/// Collects the blocks of a [`Long`].
#[derive(Default)]
pub(crate) struct LongBuilder {
    starts: Vec<u32>,
    lasts: Vec<u64>,
    codes: Vec<u32>,
}

impl LongBuilder {
    /// Begins a block and returns its number.
    pub(crate) fn begin(&mut self) -> usize {
        // Truncated beyond 2^32 intervals; `finish` refuses these.
        self.starts.push(self.lasts.len() as u32);
        self.starts.len() - 1
    }

    /// Adds an interval to the latest block.
    pub(crate) fn push(&mut self, last: u64, code: u32) {
        self.lasts.push(last);
        self.codes.push(code);
    }

    /// The blocks, `None` if there are none.
    pub(crate) fn finish(mut self, engine: &'static str) -> Result<Option<Long>, BuildError> {
        if self.starts.is_empty() {
            return Ok(None);
        }
        let end = u32::try_from(self.lasts.len()).map_err(|_| BuildError::Limit {
            engine,
            what: "intervals of routes longer than /64",
            limit: u32::MAX.into(),
            needed: self.lasts.len() as u64,
        })?;
        self.starts.push(end);
        Ok(Some(Long {
            starts: Table::from_vec(self.starts),
            lasts: Table::from_vec(self.lasts),
            codes: Table::from_vec(self.codes),
        }))
    }
}
