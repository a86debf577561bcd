use std::ops::Deref;

use bytemuck::Pod;
use fibula_simd::Table;

/// A table of slots, each of as many elements as the pattern of an empty slot. A slot in use never equals the pattern,
/// so a stored table keeps its empty slots.
pub(super) struct Slots<T: Pod> {
    table: Table<T>,
    empty: Vec<T>,
    free: Vec<u32>,
}

impl<T: Pod + PartialEq> Slots<T> {
    pub(super) fn new(table: Table<T>, empty: Vec<T>) -> Self {
        let slots = table.chunks_exact(empty.len()).zip(0..);
        let free = slots.filter(|(slot, _)| *slot == empty).map(|(_, number)| number).collect();
        Self { table, empty, free }
    }

    /// Number of slots in use.
    pub(super) fn used(&self) -> usize {
        self.table.len() / self.empty.len() - self.free.len()
    }

    /// Whether the slot is in use.
    pub(super) fn is_used(&self, slot: u32) -> bool {
        let width = self.empty.len();
        self.table[slot as usize * width..][..width] != *self.empty
    }

    pub(super) fn slot_mut(&mut self, slot: u32) -> &mut [T] {
        let width = self.empty.len();
        &mut self.table.to_mut()[slot as usize * width..][..width]
    }

    /// An empty slot, which the caller fills. If there is none, the table grows by a quarter.
    pub(super) fn take(&mut self) -> u32 {
        if self.free.is_empty() {
            let (len, width) = (self.table.len(), self.empty.len());
            let slots = len / width;
            let more = slots / 4 + 64;
            self.table = Table::with((slots + more) * width, |new| {
                new[..len].copy_from_slice(&self.table);
                new[len..].chunks_exact_mut(width).for_each(|new| new.copy_from_slice(&self.empty));
            });
            self.free.extend((slots..slots + more).rev().map(|slot| slot as u32));
        }
        self.free.pop().expect("the table has grown")
    }

    /// Empties a slot.
    pub(super) fn give(&mut self, slot: u32) {
        let width = self.empty.len();
        self.table.to_mut()[slot as usize * width..][..width].copy_from_slice(&self.empty);
        self.free.push(slot);
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.table.as_bytes()
    }
}

impl<T: Pod> Deref for Slots<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.table
    }
}
