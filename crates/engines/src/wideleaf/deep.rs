use fibula_core::{BuildError, Hop, LoadError, Range, TableRef, TableSource};
use fibula_simd::{Table, prefetch_read};

use crate::common::table;

const STARTS: &str = "deep_starts";
const LASTS: &str = "deep_lasts";
const HOPS: &str = "deep_hops";

/// The deep blocks, which records cannot resolve: for each, its elementary intervals of whole addresses.
///
/// Block *b* has the intervals `starts[b]..starts[b + 1]`.
///
/// Invariants: `starts` ascends strictly from 0 to the length of `lasts` and `hops`; within a block
/// `lasts` ascends strictly.
#[derive(Clone)]
pub(super) struct Deep {
    starts: Table<u32>,
    lasts: Table<u128>,
    hops: Table<u32>,
}

impl Deep {
    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// The hop of the address, which lies in the block.
    #[cold]
    pub(super) fn find(&self, block: usize, addr: u128) -> Hop {
        let (start, end) = (self.starts[block] as usize, self.starts[block + 1] as usize);
        let below = self.lasts[start..end].partition_point(|&last| last < addr);
        // A stored block may end before the address.
        Hop::from_bits(self.hops[(start + below).min(end - 1)])
    }

    /// Finds the hops of addresses; `in_block` has the block of each. Each step of the bisection is executed for all
    /// addresses and prefetches what the next step compares.
    pub(super) fn find_all(&self, addrs: &[u128], in_block: &mut [InBlock]) {
        for one in in_block.iter() {
            prefetch_read(&self.starts, one.block as usize);
        }
        let mut longest = 1;
        for one in in_block.iter_mut() {
            let block = one.block as usize;
            let (start, end) = (self.starts[block], self.starts[block + 1]);
            (one.from, one.len) = (start, end - start);
            longest = longest.max(one.len);
            self.prefetch(one);
        }
        // All addresses take as many steps as the longest block needs, because a branch for each would be
        // mispredicted. Once one interval is left, further steps change nothing.
        for _ in 0..u32::BITS - (longest - 1).leading_zeros() {
            for one in in_block.iter_mut() {
                let half = one.len / 2;
                let is_below = is_below(self.lasts[one.middle()], addrs[usize::from(one.at)]);
                one.from += half & is_below.wrapping_neg();
                one.len -= half;
                self.prefetch(one);
            }
        }
        for one in in_block.iter() {
            prefetch_read(&self.hops, one.from as usize);
        }
        for one in in_block.iter_mut() {
            one.from = self.hops[one.from as usize];
        }
    }

    #[inline(always)]
    fn prefetch(&self, one: &InBlock) {
        prefetch_read(&self.lasts, one.middle());
    }

    pub(super) fn tables(&self) -> [TableRef<'_>; 3] {
        [
            TableRef { name: STARTS, bytes: self.starts.as_bytes() },
            TableRef { name: LASTS, bytes: self.lasts.as_bytes() },
            TableRef { name: HOPS, bytes: self.hops.as_bytes() },
        ]
    }

    pub(super) fn load(tables: &dyn TableSource, hop_count: u32) -> Result<Self, LoadError> {
        let deep = Self {
            starts: table(tables, STARTS)?,
            lasts: table(tables, LASTS)?,
            hops: table(tables, HOPS)?,
        };
        let len = deep.lasts.len();
        if deep.hops.len() != len {
            return Err(LoadError::new(HOPS, "is not as long as deep_lasts"));
        }
        let whole = deep.starts.first() == Some(&0)
            && deep.starts.last().is_some_and(|&end| end as usize == len);
        if !whole || !deep.starts.is_sorted_by(|a, b| a < b) {
            return Err(LoadError::new(STARTS, "does not divide deep_lasts into blocks"));
        }
        for block in deep.starts.windows(2) {
            if !deep.lasts[block[0] as usize..block[1] as usize].is_sorted_by(|a, b| a < b) {
                return Err(LoadError::new(LASTS, "a block is not sorted"));
            }
        }
        if deep.hops.iter().any(|&hop| hop != Hop::NONE.to_bits() && hop >= hop_count) {
            return Err(LoadError::new(HOPS, "names a hop beyond the hop count"));
        }
        Ok(deep)
    }
}

/// 1 if the first number is below the second one, else 0: the borrow of their difference. The compiler would turn
/// a comparison into a branch here.
#[inline(always)]
fn is_below(a: u128, b: u128) -> u32 {
    ((!a & b | (!a | b) & a.wrapping_sub(b)) >> 127) as u32
}

/// An address that is searched in a block.
#[derive(Clone, Copy, Default)]
pub(super) struct InBlock {
    /// The index of the address.
    pub(super) at: u8,
    block: u32,
    /// The first interval of the rest of the search; at the end, the hop.
    from: u32,
    /// The number of these intervals.
    len: u32,
}

impl InBlock {
    pub(super) fn new(at: u8, block: u32) -> Self {
        Self { at, block, ..Self::default() }
    }

    /// The hop, once it is found.
    pub(super) fn hop(&self) -> Hop {
        Hop::from_bits(self.from)
    }

    /// The interval that the next step compares: the last one of the first half.
    #[inline(always)]
    fn middle(&self) -> usize {
        (self.from + (self.len / 2).saturating_sub(1)) as usize
    }
}

/// Collects the blocks of a [`Deep`].
pub(super) struct DeepBuilder {
    starts: Vec<u32>,
    lasts: Vec<u128>,
    hops: Vec<u32>,
}

impl DeepBuilder {
    pub(super) fn new() -> Self {
        Self { starts: vec![0], lasts: Vec::new(), hops: Vec::new() }
    }

    /// Begins with the blocks of `deep`.
    pub(super) fn from(deep: &Deep) -> Self {
        Self { starts: deep.starts.to_vec(), lasts: deep.lasts.to_vec(), hops: deep.hops.to_vec() }
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.starts.len() - 1
    }

    /// Adds a block and returns its number.
    pub(super) fn push(&mut self, ranges: impl Iterator<Item = Range<u128>>) -> usize {
        for range in ranges {
            self.lasts.push(range.last);
            self.hops.push(range.hop.to_bits());
        }
        // Truncated beyond 2^32 intervals; `finish` refuses these.
        self.starts.push(self.lasts.len() as u32);
        self.starts.len() - 2
    }

    /// Adds a copy of a block of `from` and returns its number.
    pub(super) fn push_block(&mut self, from: &Deep, block: usize) -> usize {
        let intervals = from.starts[block] as usize..from.starts[block + 1] as usize;
        self.lasts.extend_from_slice(&from.lasts[intervals.clone()]);
        self.hops.extend_from_slice(&from.hops[intervals]);
        self.starts.push(self.lasts.len() as u32);
        self.starts.len() - 2
    }

    pub(super) fn finish(self) -> Result<Deep, BuildError> {
        if u32::try_from(self.lasts.len()).is_err() {
            return Err(BuildError::Limit {
                engine: super::NAME,
                what: "intervals that leaves do not tell apart",
                limit: u32::MAX.into(),
                needed: self.lasts.len() as u64,
            });
        }
        Ok(Deep {
            starts: Table::from_vec(self.starts),
            lasts: Table::from_vec(self.lasts),
            hops: Table::from_vec(self.hops),
        })
    }
}
