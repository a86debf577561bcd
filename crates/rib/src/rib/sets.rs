//! Interned attribute sets with reference counts.

use std::hash::BuildHasher;

use fibula_core::Attributes;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::set::{self, AttributeSet};

/// Every distinct set once, under a small number that is used again when nobody refers to it.
#[derive(Default)]
pub(super) struct Sets {
    slots: Vec<Slot>,
    numbers: HashTable<u32>,
    free: Vec<u32>,
    hasher: DefaultHashBuilder,
    scratch: Vec<u8>,
    /// Bytes of all sets.
    bytes: usize,
}

struct Slot {
    /// `None` while the number is free.
    set: Option<AttributeSet>,
    references: u32,
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
        let Self { slots, numbers, hasher, .. } = self;
        let content =
            |slot: &Slot| slot.set.as_ref().map_or(&[][..], |set| set.as_bytes()) == bytes;
        let hash = hasher.hash_one(bytes);
        if let Some(&number) = numbers.find(hash, |&number| content(&slots[number as usize])) {
            let slot = &mut slots[number as usize];
            slot.references = slot.references.checked_add(1)?;
            return Some(number);
        }
        let slot = Slot { set: Some(AttributeSet::of_bytes(bytes)), references: 1 };
        let number = match self.free.pop() {
            Some(number) => {
                slots[number as usize] = slot;
                number
            }
            None => {
                // The largest number stands for "no route" in hops.
                let number = u32::try_from(slots.len()).ok().filter(|&n| n != u32::MAX)?;
                slots.push(slot);
                number
            }
        };
        numbers.insert_unique(hash, number, |&number| {
            let set = slots[number as usize].set.as_ref();
            hasher.hash_one(set.map_or(&[][..], |set| set.as_bytes()))
        });
        self.bytes += bytes.len() + ARC_HEADER;
        Some(number)
    }

    /// One reference more to a set that is there; `None` when counts have run out.
    pub(super) fn refer(&mut self, number: u32) -> Option<()> {
        let references = &mut self.slots[number as usize].references;
        *references = references.checked_add(1)?;
        Some(())
    }

    /// Gives one reference back.
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.references -= 1;
        if slot.references > 0 {
            return;
        }
        if let Some(set) = slot.set.take() {
            let hash = self.hasher.hash_one(set.as_bytes());
            if let Ok(entry) = self.numbers.find_entry(hash, |&n| n == number) {
                entry.remove();
            }
            self.bytes -= set.as_bytes().len() + ARC_HEADER;
        }
        self.free.push(number);
    }

    /// The set of this number.
    ///
    /// # Panics
    /// If the number is free.
    pub(super) fn get(&self, number: u32) -> &AttributeSet {
        self.slots[number as usize].set.as_ref().expect("a route's set is there")
    }

    /// All slots, in order of their numbers.
    pub(super) fn slots(&self) -> impl ExactSizeIterator<Item = Option<&AttributeSet>> {
        self.slots.iter().map(|slot| slot.set.as_ref())
    }

    /// How many sets there are.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Bytes of the sets and of what finds them.
    pub(super) fn memory(&self) -> usize {
        self.bytes
            + self.slots.capacity() * size_of::<Slot>()
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
