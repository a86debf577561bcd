//! Arrays that are cheap to copy while they change.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// An array in chunks, which copies share until one of them changes. A copy costs a reference for each chunk, and
/// later, at the first change of each chunk that both have, the chunk. Growing moves at most the last chunk.
#[derive(Clone)]
pub(crate) struct Chunks<T> {
    /// All of [`CHUNK`] elements but the last one, which may have fewer.
    chunks: Vec<Arc<[T]>>,
    len: usize,
}

/// Elements of a chunk: some 16 KiB of the RIB's elements, which takes a microsecond to copy.
const CHUNK: usize = 1 << BITS;
const BITS: u32 = 10;
/// Elements of the first chunk at first: most tables of most VRFs are small.
const FEWEST: usize = 4;

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { chunks: Vec::new(), len: 0 }
    }
}

impl<T: Clone> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, element: T) {
        let (chunk, at) = (self.len >> BITS, self.len & (CHUNK - 1));
        match self.chunks.get_mut(chunk) {
            Some(chunk) if at < chunk.len() => Arc::make_mut(chunk)[at] = element,
            Some(chunk) => {
                // The first chunk, which doubles until it is a whole one.
                let more = std::iter::repeat_n(element, chunk.len());
                *chunk = chunk.iter().cloned().chain(more).collect();
            }
            None => {
                let room = if chunk == 0 { FEWEST } else { CHUNK };
                self.chunks.push(std::iter::repeat_n(element, room).collect());
            }
        }
        self.len += 1;
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).take(self.len)
    }

    /// Changes the elements that `which` selects; chunks without such elements stay shared.
    pub(crate) fn change(&mut self, which: impl Fn(&T) -> bool, mut change: impl FnMut(&mut T)) {
        for chunk in &mut self.chunks {
            if chunk.iter().any(&which) {
                Arc::make_mut(chunk)
                    .iter_mut()
                    .filter(|element| which(element))
                    .for_each(&mut change);
            }
        }
    }

    /// Bytes of all chunks, shared or not.
    pub(crate) fn memory(&self) -> usize {
        let last = self.chunks.last().map_or(0, |chunk| chunk.len());
        let elements = self.chunks.len().saturating_sub(1) * CHUNK + last;
        elements * size_of::<T>() + self.chunks.capacity() * size_of::<Arc<[T]>>()
    }
}

impl<T: Clone> Index<u32> for Chunks<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.chunks[(at >> BITS) as usize][at as usize & (CHUNK - 1)]
    }
}

impl<T: Clone> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut Arc::make_mut(&mut self.chunks[(at >> BITS) as usize])[at as usize & (CHUNK - 1)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Set(u32, u32),
        Change(u32),
        Copy,
        Forget,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1..700usize).prop_map(Step::Push),
            8 => (any::<u32>(), any::<u32>()).prop_map(|(at, to)| Step::Set(at, to)),
            1 => (0..50u32).prop_map(Step::Change),
            2 => Just(Step::Copy),
            1 => Just(Step::Forget),
        ]
    }

    proptest! {
        /// The array behaves like a vector, and each copy like the vector at the time of the copy.
        #[test]
        fn as_vectors_are(steps in prop::collection::vec(step(), 0..40)) {
            let (mut chunks, mut vector) = (Chunks::default(), Vec::new());
            let mut copies: Vec<(Chunks<u32>, Vec<u32>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Push(count) => for i in 0..count as u32 {
                        chunks.push(i);
                        vector.push(i);
                    },
                    Step::Set(at, to) if !vector.is_empty() => {
                        let at = at % vector.len() as u32;
                        chunks[at] = to;
                        vector[at as usize] = to;
                    }
                    Step::Set(..) => {}
                    Step::Change(rest) => {
                        chunks.change(|v| v % 50 == rest, |v| *v ^= 7);
                        vector.iter_mut().filter(|v| **v % 50 == rest).for_each(|v| *v ^= 7);
                    }
                    Step::Copy => copies.push((chunks.clone(), vector.clone())),
                    Step::Forget => drop(copies.pop()),
                }
            }
            copies.push((chunks, vector));
            for (chunks, vector) in copies {
                prop_assert_eq!(chunks.len(), vector.len());
                prop_assert!(chunks.iter().eq(&vector));
                for (at, element) in (0..).zip(&vector) {
                    prop_assert_eq!(&chunks[at], element);
                }
            }
        }
    }

    #[test]
    fn few_elements_take_little() {
        let mut chunks = Chunks::default();
        assert_eq!(chunks.memory(), 0);
        chunks.push(1u64);
        assert!(chunks.memory() <= 4 * 8 + 4 * 16);
        (0..5000).for_each(|i| chunks.push(i));
        assert!(chunks.memory() <= (5001 + CHUNK) * 8 + 8 * 16);
    }
}
