//! The hashes of a search alone, for measurements.

use crate::search::packed::Hashes;
use crate::{Batch, Cache};

/// A subtable, by its position in the cache, and the packets of a batch to look up in it, one bit each.
pub type Visit = (usize, u32);

/// Repeats the hashes of a search in each of the subtables, for as many of the batch's first packets as there are
/// bits. The programs of the papers time this.
pub fn repeat_hashes(cache: &Cache, batch: &Batch, visits: &[Visit], times: usize) {
    cache.level.run(Hashes { cache, batch, visits, times });
}
