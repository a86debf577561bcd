//! Interned attribute sets with reference counts.

use std::hash::BuildHasher;

use fibula_core::Attributes;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::set::{self, AttributeSet};
use crate::chunks::Chunks;

/// Every distinct set once, under a small number that is reused when it has no references.
#[derive(Default)]
pub(super) struct Sets {
    /// The sets by number; `None` while a number is free.
    sets: Chunks<Option<AttributeSet>>,
    references: Vec<u32>,
    /// The set that was acquired last: successive updates often have the same set.
    last: Option<u32>,
    numbers: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    scratch: Vec<u8>,
    /// Bytes of all sets.
    bytes: usize,
}

/// Beside its bytes, a set has the two counts of its `Arc`.
const ARC_HEADER: usize = 16;

impl Sets {
    /// The number of the set, with one reference more; `None` when numbers or counts have run out.
    pub(super) fn acquire(&mut self, attributes: &Attributes<'_>) -> Option<u32> {
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        set::encode(attributes, &mut bytes);
        let number = self.acquire_bytes(&bytes);
        self.scratch = bytes;
        number
    }

    pub(super) fn acquire_bytes(&mut self, bytes: &[u8]) -> Option<u32> {
        let Self { sets, numbers, hasher, .. } = self;
        let content = |number: u32| sets[number].as_ref().map_or(&[][..], AttributeSet::as_bytes);
        if let Some(number) = self.last.filter(|&last| content(last) == bytes) {
            return self.refer(number).map(|()| number);
        }
        let hash = hasher.hash_one(bytes);
        if let Some(&number) = numbers.find(hash, |&number| content(number) == bytes) {
            self.last = Some(number);
            return self.refer(number).map(|()| number);
        }
        let set = Some(AttributeSet::of_bytes(bytes));
        let number = match self.free.pop() {
            Some(number) => {
                sets[number] = set;
                self.references[number as usize] = 1;
                number
            }
            None => {
                // The largest number stands for "no route" in hops.
                let number = u32::try_from(sets.len()).ok().filter(|&n| n != u32::MAX)?;
                sets.push(set);
                self.references.push(1);
                number
            }
        };
        numbers.insert_unique(hash, number, |&number| {
            hasher.hash_one(sets[number].as_ref().map_or(&[][..], AttributeSet::as_bytes))
        });
        self.bytes += bytes.len() + ARC_HEADER;
        self.last = Some(number);
        Some(number)
    }

    /// Adds a reference to an existing set; `None` when counts have run out.
    pub(super) fn refer(&mut self, number: u32) -> Option<()> {
        let references = &mut self.references[number as usize];
        *references = references.checked_add(1)?;
        Some(())
    }

    /// Releases one reference.
    pub(super) fn release(&mut self, number: u32) {
        let references = &mut self.references[number as usize];
        *references -= 1;
        if *references > 0 {
            return;
        }
        if let Some(set) = self.sets[number].take() {
            let hash = self.hasher.hash_one(set.as_bytes());
            if let Ok(entry) = self.numbers.find_entry(hash, |&n| n == number) {
                entry.remove();
            }
            self.bytes -= set.as_bytes().len() + ARC_HEADER;
        }
        self.last = self.last.filter(|&last| last != number);
        self.free.push(number);
    }

    /// The set of this number.
    ///
    /// # Panics
    /// If the number is free.
    pub(super) fn get(&self, number: u32) -> &AttributeSet {
        self.sets[number].as_ref().expect("a route's set is there")
    }

    /// All sets by number.
    pub(super) fn all(&self) -> &Chunks<Option<AttributeSet>> {
        &self.sets
    }

    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.sets.len() - self.free.len()
    }

    /// Bytes of the sets and of their index.
    pub(super) fn memory(&self) -> usize {
        self.bytes
            + self.sets.memory()
            + self.references.capacity() * size_of::<u32>()
            + self.free.capacity() * size_of::<u32>()
            + self.numbers.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fibula_core::Value;

    #[test]
    fn numbers_are_used_again_when_nobody_refers_to_them() {
        let mut sets = Sets::default();
        let mut acquire = |v| sets.acquire(&Attributes::Values(&[Value::Int(v)])).unwrap();
        assert_eq!([1, 2, 1, 3].map(&mut acquire), [0, 1, 0, 2]);
        sets.release(0);
        assert_eq!(sets.get(0).values(), [Value::Int(1)]);
        sets.release(0);
        assert_eq!(sets.len(), 2);
        assert_eq!(sets.acquire(&Attributes::Values(&[Value::Int(9)])), Some(0));
        assert_eq!(sets.get(0).values(), [Value::Int(9)]);
        assert_eq!(sets.acquire(&Attributes::Values(&[Value::Int(1)])), Some(3));
        assert_eq!(sets.len(), 4);
    }
}
