use fibula_core::{BuildError, Engine, Hop, Range, Routes};
use fibula_simd::Table;

use super::record::{
    BLOCK, LONG_HEAD, Leaf, ROOT_BYTES, ROOT_WORDS, behind, escapes as escapes_of,
    front as front_of, runs, values,
};
use super::space::Space;
use super::{Runmap, Tables};

/// Compiles the routes.
pub(super) fn build<V: Leaf>(routes: &Routes<u32>) -> Result<Tables<V>, BuildError> {
    paint(|painter| painter.paint(routes.ranges()))
}

/// Tables in which `draw` paints the whole address space.
pub(super) fn paint<V: Leaf>(
    draw: impl FnOnce(&mut Painter<'_, V>),
) -> Result<Tables<V>, BuildError> {
    let mut root = vec![0; ROOT_WORDS];
    let mut painter = Painter::<V>::new(&mut root, &mut [], &mut [], ROOT_BYTES);
    draw(&mut painter);
    let bytes = painter.finish()?;
    let records = Table::with(ROOT_BYTES + bytes.len(), |records| {
        let (to, rest) = records.split_at_mut(ROOT_BYTES);
        to.copy_from_slice(bytemuck::cast_slice(&root));
        rest.copy_from_slice(&bytes);
    });
    Ok(Tables::new(records))
}

/// The error for tables that need more bytes than places can number.
pub(super) fn too_many_bytes(needed: u64) -> BuildError {
    let (engine, what, limit) = (Runmap::NAME, "bytes of records", u32::MAX.into());
    BuildError::Limit { engine, what, limit, needed }
}

/// The value that the /24 networks of a run share.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Value {
    Code(u32),
    /// The place of the network record that all of them share: either no code of this width represents their hop, or
    /// the run is one network, which longer routes divide.
    Long(u32),
}

/// Writes records for ranges, which must come in order and cover whole blocks, and points the root words at them.
pub(super) struct Painter<'a, V: Leaf> {
    root: &'a mut [u32],
    /// The records in the table so far, from the end of the root on. A record that is unchanged is not
    /// written again.
    present: &'a mut [u8],
    /// For each block a bit: no other one has its record. Nothing if there are no records so far.
    alone: &'a mut [u64],
    space: Space,
    /// The blocks with new records of several runs, behind the records' places.
    added: Vec<(u32, u32)>,
    /// The ranges of the divided network at hand, each as its last address and its code.
    network: Vec<(u8, u32)>,
    /// The runs of the block at hand, each as its last network and its value.
    runs: Vec<(u8, Value)>,
    record: Vec<u8>,
    _width: std::marker::PhantomData<V>,
}

impl<'a, V: Leaf> Painter<'a, V> {
    /// New records begin at byte `base` of the table.
    pub(super) fn new(
        root: &'a mut [u32],
        present: &'a mut [u8],
        alone: &'a mut [u64],
        base: usize,
    ) -> Self {
        Self {
            root,
            present,
            alone,
            space: Space::new(base),
            added: Vec::new(),
            network: Vec::new(),
            runs: Vec::new(),
            record: Vec::new(),
            _width: std::marker::PhantomData,
        }
    }

    /// The records.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, BuildError> {
        self.added.sort_unstable();
        for blocks in self.added.chunk_by(|(a, _), (b, _)| a == b) {
            if let [(place, block)] = *blocks
                && self.root[block as usize] == place
            {
                set(self.alone, block, true);
            }
        }
        self.space.finish().map_err(too_many_bytes)
    }

    pub(super) fn paint(&mut self, ranges: impl Iterator<Item = Range<u32>>) {
        for Range { first, last, hop } in ranges {
            self.range(first, last, code_of(hop));
        }
    }

    pub(super) fn range(&mut self, mut first: u32, last: u32, code: u32) {
        if first & 0xff != 0 {
            let end = last.min(first | 0xff);
            self.part(end, code);
            if end == last {
                return;
            }
            first = end + 1;
        }
        // Whole networks end before this one.
        let end = (u64::from(last) + 1) >> 8;
        if u64::from(first >> 8) < end {
            let value = if code < V::ESCAPE {
                Value::Code(code)
            } else {
                // No code of this width represents the hop.
                self.network.push((0xff, code));
                Value::Long(self.long())
            };
            self.networks(first >> 8, end as u32 - 1, value);
        }
        if last & 0xff != 0xff {
            self.part(last, code);
        }
    }

    /// Adds a part of a divided network, up to the address `last`.
    fn part(&mut self, last: u32, code: u32) {
        self.network.push((last as u8, code));
        if last & 0xff == 0xff {
            let value = Value::Long(self.long());
            self.run(last >> 8, value);
        }
    }

    /// Adds the whole networks `first..=last`.
    fn networks(&mut self, mut first: u32, last: u32, value: Value) {
        let end = last.min(first | (BLOCK - 1));
        if !first.is_multiple_of(BLOCK) || end % BLOCK != BLOCK - 1 {
            self.run(end, value);
            if end == last {
                return;
            }
            first = end + 1;
        }
        let (begin, end) = (first / BLOCK, (last + 1) / BLOCK);
        if begin < end {
            // Each of these blocks has one run, and they share a record.
            self.run(first | (BLOCK - 1), value);
            let word = self.root[begin as usize];
            self.root[begin as usize..end as usize].fill(word);
            (begin..end).for_each(|block| set(self.alone, block, false));
        }
        if last % BLOCK != BLOCK - 1 {
            self.run(last, value);
        }
    }

    /// Adds a run that ends with this network.
    fn run(&mut self, last: u32, value: Value) {
        self.runs.push(((last % BLOCK) as u8, value));
        if last % BLOCK == BLOCK - 1 {
            self.block(last / BLOCK);
        }
    }

    /// Writes the record of a block after its last run.
    fn block(&mut self, block: u32) {
        self.record.clear();
        let mut map = 0u64;
        for (last, value) in &self.runs {
            map |= 1 << last;
            if let Value::Long(place) = value {
                self.record.extend(place.to_ne_bytes());
            }
        }
        let front = self.record.len();
        self.record.extend(map.to_ne_bytes());
        let mut escapes = V::ESCAPE..;
        for (_, value) in self.runs.iter().rev() {
            let code = match value {
                Value::Code(code) => *code,
                Value::Long(_) => escapes.next().expect("a block has as many networks"),
            };
            self.record.extend(bytemuck::bytes_of(&V::new(code)));
        }
        let several = self.runs.len() > 1;
        self.runs.clear();
        let word = &mut self.root[block as usize];
        let present = (*word as usize).checked_sub(ROOT_BYTES + front).unwrap_or(usize::MAX);
        if self.present.get(present..).is_some_and(|present| present.starts_with(&self.record)) {
            return;
        }
        // In place of the old record, if that is at least as long and no other block has it. Records of one run are
        // shared by many.
        if several && is_set(self.alone, block) {
            let at = *word as usize - ROOT_BYTES;
            let start = at - front_of(escapes_of::<V>(self.present, at));
            let end = values(at) + runs(self.present, at) * size_of::<V>();
            if self.record.len() <= end - start {
                self.present[start..][..self.record.len()].copy_from_slice(&self.record);
                *word = (ROOT_BYTES + start + front) as u32;
                return;
            }
        }
        *word = self.space.put(&self.record, 1) + front as u32;
        set(self.alone, block, false);
        if several && !self.alone.is_empty() {
            self.added.push((*word, block));
        }
    }

    /// Writes the record of the divided network.
    fn long(&mut self) -> u32 {
        let mut map = [0u64; 4];
        for (last, _) in &self.network {
            map[usize::from(last >> 6)] |= 1 << (last & 63);
        }
        let mut record = Vec::with_capacity(LONG_HEAD + 4 * self.network.len());
        record.extend(bytemuck::bytes_of(&map));
        record.extend(behind(map));
        record.extend(self.network.iter().rev().flat_map(|(_, code)| code.to_ne_bytes()));
        self.network.clear();
        self.space.put(&record, 4)
    }
}

/// Whether the block's bit is set; without bits it is not.
fn is_set(bits: &[u64], block: u32) -> bool {
    bits.get(block as usize / 64).is_some_and(|word| word >> (block % 64) & 1 == 1)
}

/// Sets the block's bit to this, if there are bits.
pub(super) fn set(bits: &mut [u64], block: u32, to: bool) {
    if let Some(word) = bits.get_mut(block as usize / 64) {
        *word = *word & !(1 << (block % 64)) | u64::from(to) << (block % 64);
    }
}

/// The code of a hop.
fn code_of(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}
