use std::ops::Deref;

use bytemuck::Pod;
use fibula_simd::Table;

/// Nodes that are allocated and freed, in one aligned array.
///
/// A node has a fixed number of elements and is named by the place of its first. Places that were
/// given back are taken again before the array grows.
#[derive(Clone)]
pub(super) struct Pool<T: Pod> {
    elements: Table<T>,
    /// Elements of a node.
    size: usize,
    /// Elements in use or given back; behind them lies room.
    used: usize,
    free: Vec<u32>,
}

impl<T: Pod> Pool<T> {
    pub(super) fn with_room(nodes: usize, size: usize) -> Self {
        Self { elements: Table::with(nodes * size, |_| {}), size, used: 0, free: Vec::new() }
    }

    /// Stored nodes, all of them in use until they are given.
    pub(super) fn stored(elements: Table<T>, size: usize) -> Self {
        let used = elements.len();
        Self { elements, size, used, free: Vec::new() }
    }

    /// A place for a node, with undefined contents.
    pub(super) fn take(&mut self) -> u32 {
        if let Some(place) = self.free.pop() {
            return place;
        }
        let place = self.used;
        self.used += self.size;
        if self.used > self.elements.len() {
            // Some steps, so that the copies are few and a table with few changes stays small.
            let room = (self.used + self.used / 4).next_multiple_of(self.size);
            self.resize(room);
        }
        place as u32
    }

    /// The place may be taken again.
    pub(super) fn give(&mut self, place: u32) {
        self.free.push(place);
    }

    /// Nodes that were taken and not given back.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        self.used / self.size - self.free.len()
    }

    /// Leaves no room behind the last node: the end of a build.
    pub(super) fn fit(&mut self) {
        if self.used < self.elements.len() {
            self.resize(self.used);
        }
    }

    fn resize(&mut self, len: usize) {
        let kept = len.min(self.elements.len());
        self.elements = Table::with(len, |to| to[..kept].copy_from_slice(&self.elements[..kept]));
    }

    /// Elements of a node.
    pub(super) fn node_size(&self) -> usize {
        self.size
    }

    pub(super) fn to_mut(&mut self) -> &mut [T] {
        self.elements.to_mut()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.elements.as_bytes()
    }
}

impl<T: Pod> Deref for Pool<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.elements
    }
}
