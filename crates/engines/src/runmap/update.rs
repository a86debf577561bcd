use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::{Table, prefetch_read};

use super::build::{Painter, set, too_many_bytes};
use super::record::{
    LONG_HEAD, Leaf, MAP, ROOT_BITS, ROOT_BYTES, ROOT_WORDS, escapes, front, read, runs, values,
};
use super::space::{LINE, Space};
use super::{MOSTLY, Tables};

/// The block of a changed prefix, or the prefix itself if it covers several.
pub(super) fn block(prefix: Prefix<u32>) -> Prefix<u32> {
    let len = prefix.len().min(ROOT_BITS as u8);
    Prefix::masked(prefix.addr(), len).expect("shorter than a prefix")
}

impl<V: Leaf> Tables<V> {
    /// Compiles the blocks under the changed prefixes again. A new record replaces the old one if it is no longer and
    /// no other block has the old one. Others are appended, and the root is pointed at them; those that they replace
    /// stay in the table. Once the records have grown by half, those in use are copied to a new table. That takes
    /// longer than a patch of a thousand prefixes, so a copy does it earlier ([`own`](Self::own)).
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        if self.alone.is_empty() {
            self.alone = alone(self.root(), self.used);
        }
        let (root, present) = self.records.to_mut().split_at_mut(ROOT_BYTES);
        let root = bytemuck::cast_slice_mut(root);
        let mut painter = Painter::<V>::new(root, present, &mut self.alone, self.used);
        let mut blocks = Vec::<Prefix<u32>>::with_capacity(changed.len());
        for prefix in changed {
            let block = block(*prefix);
            // Many changed prefixes often lie in the same few blocks.
            if blocks.last().is_none_or(|last| !last.covers(block)) {
                blocks.push(block);
            }
        }
        routes.each_within(&blocks, |ranges| painter.paint(ranges));
        let bytes = painter.finish()?;
        let end = self.used + bytes.len();
        if end > self.records.len() {
            self.reserve(bytes.len());
        }
        self.records.to_mut()[self.used..end].copy_from_slice(&bytes);
        self.used = end;
        if end > self.built + self.built / 2 {
            self.compact()?;
        }
        Ok(Patched::Applied)
    }

    /// Copies the table to new memory, only the records in use if the table has grown by three eighths.
    pub(super) fn own(&mut self) {
        if self.used > self.built + self.built / 8 * 3 && self.compact().is_ok() {
            return;
        }
        self.reserve(0);
    }

    /// Copies the table to new memory with room for `bytes` more and for a few patches; few, so that a table with few
    /// changes stays small.
    fn reserve(&mut self, bytes: usize) {
        let room = (self.used + bytes + self.built / 8).next_multiple_of(LINE);
        self.records = Table::with_room(&self.records[..self.used], room);
    }

    /// Copies the records in use to a new table, without the garbage and with room for patches as in
    /// [`reserve`](Self::reserve).
    fn compact(&mut self) -> Result<(), BuildError> {
        let old = &self.records[..self.used];
        let mut space = Space::with_capacity(ROOT_BYTES, old.len() - ROOT_BYTES);
        let mut root = vec![0u32; ROOT_WORDS];
        let mut record = Vec::new();
        let mut last = None;
        // Records of several runs that blocks share have a place in common already. The new place of each is kept under
        // the old one's number of `APART` bytes, which no two such records share. Records of one run are found by their
        // content, because each patch writes some that are equal.
        let mut moved = vec![0u32; old.len().div_ceil(APART)];
        for (i, (word, &from)) in root.iter_mut().zip(self.root()).enumerate() {
            if let Some(&next) = self.root().get(i + AHEAD) {
                prefetch_read(old, next as usize);
            }
            *word = match last {
                Some((known, to)) if known == from => to,
                _ => {
                    let at = from as usize;
                    if runs(old, at) > 1 {
                        let to = &mut moved[at / APART];
                        if *to == 0 {
                            let front = copy_record::<V>(old, at, &mut space, &mut record);
                            *to = space.add(&record, 1) + front as u32;
                        }
                        *to
                    } else {
                        let front = copy_record::<V>(old, at, &mut space, &mut record);
                        space.put(&record, 1) + front as u32
                    }
                }
            };
            last = Some((from, *word));
        }
        let bytes = space.finish().map_err(too_many_bytes)?;
        let used = ROOT_BYTES + bytes.len();
        let room = (used + used / 8).next_multiple_of(LINE);
        self.records = Table::with(room, |to| {
            to[..ROOT_BYTES].copy_from_slice(bytemuck::cast_slice(&root));
            to[ROOT_BYTES..used].copy_from_slice(&bytes);
        });
        (self.used, self.built) = (used, used);
        self.alone.clear();
        self.mostly_long = self.share_of_escapes() >= MOSTLY;
        Ok(())
    }
}

/// The bitmaps of two records lie at least so many bytes apart: those of one bitmap.
const APART: usize = MAP;
/// How many root words ahead a compaction prefetches records.
const AHEAD: usize = 24;

/// For each block a bit: no other one has its record.
fn alone(root: &[u32], used: usize) -> Vec<u64> {
    let mut blocks = vec![0u8; used / APART + 1];
    for &word in root {
        let count = &mut blocks[word as usize / APART];
        *count = count.saturating_add(1);
    }
    let mut alone = vec![0; root.len().div_ceil(64)];
    for (block, &word) in (0..).zip(root) {
        set(&mut alone, block, blocks[word as usize / APART] == 1);
    }
    alone
}

/// Puts the records of the block's divided networks into `space`, and the block's own record with their new places into
/// `record`; returns the bytes in front of the bitmap.
fn copy_record<V: Leaf>(old: &[u8], at: usize, space: &mut Space, record: &mut Vec<u8>) -> usize {
    let escapes = escapes::<V>(old, at);
    let front = front(escapes);
    record.clear();
    for place in old[at - front..at].chunks_exact(4) {
        let place = read::<u32>(place, 0) as usize;
        let map: [u64; 4] = read(old, place);
        let codes: u32 = map.iter().map(|word| word.count_ones()).sum();
        let long = space.put(&old[place..][..LONG_HEAD + 4 * codes as usize], 4);
        record.extend_from_slice(&long.to_ne_bytes());
    }
    let end = values(at) + runs(old, at) * size_of::<V>();
    record.extend_from_slice(&old[at..end]);
    front
}
