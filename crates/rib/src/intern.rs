use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Gives equal slices the same small number, in order of first appearance.
///
/// The items of all slices lie in one vector, so that millions of short ones cost their content plus
/// about 14 bytes each, and asking for a known slice does not allocate.
pub(crate) struct Interner<T> {
    items: Vec<T>,
    /// `ends[i]` is where slice `i` ends in `items`; it begins where its predecessor ends.
    ends: Vec<usize>,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            ends: Vec::new(),
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

fn slice<'a, T>(items: &'a [T], ends: &[usize], id: u32) -> &'a [T] {
    let id = id as usize;
    let start = if id == 0 { 0 } else { ends[id - 1] };
    &items[start..ends[id]]
}

impl<T: Copy + Eq + Hash> Interner<T> {
    /// The number of `key`, a new one if it has not been seen; `None` when 2^32 - 1 are taken (so
    /// that `u32::MAX` stays free for "none").
    pub(crate) fn intern(&mut self, key: &[T]) -> Option<u32> {
        let Self { items, ends, table, hasher } = self;
        let hash = hasher.hash_one(key);
        if let Some(&id) = table.find(hash, |&id| slice(items, ends, id) == key) {
            return Some(id);
        }
        let id = u32::try_from(ends.len()).ok().filter(|&id| id != u32::MAX)?;
        items.extend_from_slice(key);
        ends.push(items.len());
        table.insert_unique(hash, id, |&id| hasher.hash_one(slice(items, ends, id)));
        Some(id)
    }

    /// The slice with this number.
    pub(crate) fn get(&self, id: u32) -> &[T] {
        slice(&self.items, &self.ends, id)
    }

    /// Number of distinct slices.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// All items, and where each slice ends in them.
    pub(crate) fn into_parts(self) -> (Vec<T>, Vec<usize>) {
        (self.items, self.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_slices_share_a_number() {
        let mut strings = Interner::<u8>::default();
        assert_eq!(strings.intern(b"a"), Some(0));
        assert_eq!(strings.intern(b""), Some(1));
        assert_eq!(strings.intern(b"ab"), Some(2));
        assert_eq!(strings.intern(b""), Some(1));
        assert_eq!(
            (strings.get(0), strings.get(1), strings.get(2)),
            (&b"a"[..], &b""[..], &b"ab"[..])
        );
        for i in 0..10_000u32 {
            strings.intern(&i.to_le_bytes());
        }
        assert_eq!(strings.intern(&77u32.to_le_bytes()), Some(80));
        assert_eq!(strings.len(), 10_003);
    }
}
