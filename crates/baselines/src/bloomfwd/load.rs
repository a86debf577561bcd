use std::marker::PhantomData;

use fibula_core::{LoadError, TableSource};
use fibula_filter::{Hash, Parameters};
use fibula_simd::Table;

use super::bucket::{Address, Code, EMPTY, Keyed, Line, Slot, entries, is_sound};
use super::tables::{Level, Tables};
use super::{FILTERS, Hashes, SHAPE};
use fibula_engines::common::{optional_table, table};

/// Loads stored tables, if their codes have this width.
///
/// Checks everything that a lookup relies on: levels in order of their lengths, each with the number of words and
/// buckets of its shape, and their sums; the length of the direct array; codes of existing hops; valid marks. Filter
/// bits and places of keys are not checked: wrong ones only cause wrong answers.
pub(super) fn load<A: Address, C: Code>(
    tables: &dyn TableSource,
    hop_count: u32,
) -> Result<Option<Tables<A, C>>, LoadError> {
    let Some(buckets) = optional_table::<Line>(tables, C::BUCKETS)? else { return Ok(None) };
    let shape: Table<u32> = table(tables, SHAPE)?;
    let direct: Table<C> = table(tables, C::DIRECT)?;
    let filters: Table<u64> = table(tables, FILTERS)?;
    let bad = |reason| Err(LoadError::new(SHAPE, reason));

    let (&[direct_bits, filter_hash, table_hash, levels, long], rest) =
        shape.split_first_chunk().ok_or_else(|| LoadError::new(SHAPE, "is cut short"))?;
    let hash = |number: u32| Hash::ALL.get(number as usize).copied();
    let (Some(filter), Some(table)) = (hash(filter_hash), hash(table_hash)) else {
        return bad("names an unknown hash function");
    };
    if direct_bits > 24 {
        return bad("has too many direct bits");
    }
    let top = <A as Keyed>::TOP;
    let (rows, []) = rest.as_chunks::<4>() else { return bad("is cut short") };
    let (levels, long) = (levels as usize, long as usize);
    let gates = usize::from(long > 0);
    if [levels, long].iter().any(|n| *n > 128) || rows.len() != levels + long + gates {
        return bad("has another number of levels than it says");
    }
    let mut at = At::default();
    let mut all = rows.iter().map(|row| at.level(row)).collect::<Option<Vec<_>>>();
    let Some(all) =
        all.as_mut().filter(|_| at.words == filters.len() && at.buckets == buckets.len())
    else {
        return bad("has levels of another size than the tables");
    };
    let gate = if gates > 0 { all.pop() } else { None };
    let mut long = all.split_off(levels);
    let mut levels = std::mem::take(all);
    let descend = |levels: &[Level], from: u8, to: u8| {
        levels.is_sorted_by(|a, b| a.len > b.len)
            && levels.iter().all(|l| (from..=to).contains(&l.len) && !l.buckets.is_empty())
    };
    let direct_bits = direct_bits as u8;
    let gate_ok = gate.as_ref().is_none_or(|gate| gate.len == top && gate.buckets.is_empty());
    // The longest level takes every prefix, which patches rely on.
    if levels.first().is_none_or(|level| level.len != top)
        || !descend(&levels, direct_bits + 1, top)
        || !descend(&long, top + 1, A::BITS)
        || !gate_ok
    {
        return bad("has levels out of order");
    }

    if direct.len() != 1 << direct_bits {
        return Err(LoadError::new(C::DIRECT, "has another length than its bits say"));
    }
    // There may be more hops than these codes number: those of the other family.
    let known = |code: C| code.into() <= hop_count.min(C::HOPS_MAX);
    if !direct.iter().all(|code| known(*code)) {
        return Err(LoadError::new(C::DIRECT, "names a hop beyond the hop count"));
    }
    let sound = levels.iter_mut().all(|l| check::<<A as Keyed>::Key, C>(l, &buckets, known))
        && long.iter_mut().all(|level| check::<u128, C>(level, &buckets, known));
    if !sound {
        return Err(LoadError::new(C::BUCKETS, "has a damaged bucket"));
    }
    Ok(Some(Tables {
        hashes: Hashes { filter, table },
        direct_bits,
        direct,
        levels,
        long,
        gate,
        filters,
        buckets,
        shape,
        counters: None,
        family: PhantomData,
    }))
}

/// Checks the level's buckets, and counts its keys.
fn check<K: Slot, C: Code>(level: &mut Level, buckets: &[Line], known: impl Fn(C) -> bool) -> bool {
    let mut keys = 0;
    for line in buckets[level.buckets.clone()].iter().filter(|line| **line != EMPTY) {
        if !is_sound::<K, C>(line) {
            return false;
        }
        for (_, code) in entries::<K, C>(line) {
            keys += 1;
            if !known(code) {
                return false;
            }
        }
    }
    level.keys = keys;
    true
}

/// Up to where words and buckets belong to levels.
#[derive(Default)]
struct At {
    words: usize,
    buckets: usize,
}

impl At {
    /// The next level; `None` if it is none.
    fn level(&mut self, row: &[u32; 4]) -> Option<Level> {
        let &[len, bits, hashes, buckets] = row;
        let shape = Parameters::new(bits, hashes);
        let words = self.words..self.words.checked_add(shape.words())?;
        let buckets = self.buckets..self.buckets.checked_add(buckets as usize)?;
        (self.words, self.buckets) = (words.end, buckets.end);
        let len = u8::try_from(len).ok()?;
        (shape.bits() == bits && shape.hashes() == hashes).then_some(Level {
            len,
            shape,
            words,
            buckets,
            keys: 0,
        })
    }
}
