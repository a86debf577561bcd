use std::collections::BTreeSet;
use std::ops::Range;

/// Sizes of blocks: 1, 2, 4 .. 64, the most children or leaves that a node has.
const ORDERS: usize = 7;

/// The free places of an array: a buddy system. A block lies at a multiple of its size, a power of two, and merges with
/// its buddy, the other half of the block of twice the size, when both are free. Runs of any size can be allocated. If
/// the size is no power of two, the remaining places of the block stay free.
#[derive(Default)]
pub(super) struct Buddies {
    free: [BTreeSet<u32>; ORDERS],
    places: usize,
}

impl Buddies {
    /// Number of free places.
    pub(super) fn places(&self) -> usize {
        self.places
    }

    /// The first of `len` free neighbours, from 1 to 64.
    pub(super) fn take(&mut self, len: usize) -> Option<usize> {
        let order = len.next_power_of_two().trailing_zeros() as usize;
        let (order, at) =
            (order..ORDERS).find_map(|order| Some((order, self.free[order].pop_first()?)))?;
        let at = at as usize;
        self.places -= 1 << order;
        self.give(at + len..at + (1 << order));
        Some(at)
    }

    /// Adds places, none of which is free. They must be below 2^32.
    pub(super) fn give(&mut self, places: Range<usize>) {
        self.places += places.len();
        let mut at = places.start;
        while at < places.end {
            let order = (places.end - at).ilog2().min(at.trailing_zeros()).min(ORDERS as u32 - 1);
            self.insert(at as u32, order as usize);
            at += 1 << order;
        }
    }

    fn insert(&mut self, mut at: u32, mut order: usize) {
        while order + 1 < ORDERS && self.free[order].remove(&(at ^ 1 << order)) {
            at &= !(1 << order);
            order += 1;
        }
        self.free[order].insert(at);
    }
}

#[cfg(test)]
mod tests {
    use fibula_testkit::Rng;

    use super::Buddies;

    /// Blocks never overlap, and all places are whole blocks again in the end.
    #[test]
    fn takes_and_gives() {
        let mut buddies = Buddies::default();
        buddies.give(37..37 + 1000);
        let mut taken = vec![true; 1100];
        taken[37..1037].fill(false);
        let (mut rng, mut blocks) = (Rng::new(3), Vec::new());
        for round in 0..20_000 {
            if rng.chance(if round % 2000 < 1000 { 0.7 } else { 0.3 }) {
                let len = 1 + rng.below(64) as usize;
                let Some(at) = buddies.take(len) else { continue };
                assert!(taken[at..at + len].iter().all(|taken| !taken), "{at} {len}");
                taken[at..at + len].fill(true);
                blocks.push(at..at + len);
            } else if !blocks.is_empty() {
                let block = blocks.swap_remove(rng.below(blocks.len() as u64) as usize);
                taken[block.clone()].fill(false);
                buddies.give(block);
            }
            assert_eq!(buddies.places(), taken.iter().filter(|taken| !**taken).count());
        }
        blocks.into_iter().for_each(|block| buddies.give(block));
        // 37..1037: 1 + 2 + 8 + 16, then 64 .. 1024 in blocks of 64, then 8 + 4 + 1.
        let sizes = buddies.free.each_ref().map(|free| free.len());
        assert_eq!((sizes, buddies.places()), ([2, 1, 1, 2, 1, 0, 15], 1000));
        assert_eq!(buddies.take(64), Some(64));
    }
}
