use std::collections::BTreeSet;

use bytemuck::Pod;
use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::build::{Cells, Parts};
use super::deep::DeepBuilder;
use super::leaf::Leaf;
use super::word::Entry;
use super::{ROOT_BITS, Tables};

/// Root entries that a patch makes anew, at most: more are better served by a build.
const ENTRIES_MAX: usize = 4096;

impl<L: Leaf> Tables<L> {
    /// Compiles what lies under the root entries of the changed prefixes anew, behind what is there,
    /// and turns the entries to it. What they named before is garbage.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u128>,
        changed: &[Prefix<u128>],
    ) -> Result<Patched, BuildError> {
        let mut entries = BTreeSet::new();
        for prefix in changed {
            entries.extend(super::root(prefix.first())..=super::root(prefix.last()));
            if entries.len() > ENTRIES_MAX {
                return Ok(Patched::Rebuild);
            }
        }
        let deep = DeepBuilder::from(&self.deep);
        let mut parts = Parts::<L>::new(routes, self.grain, deep, self.words_used, self.lines_used);
        let words: Vec<u32> = entries
            .iter()
            .map(|&entry| {
                let addr = (entry as u128) << (128 - ROOT_BITS);
                let block = Prefix::new(addr, ROOT_BITS as u8).expect("nothing behind its bits");
                parts.root_word(&Cells::new(routes.ranges_within(block)), entry as u64, &mut 0)
            })
            .collect();
        if parts.overflows() {
            return Ok(Patched::Rebuild);
        }
        let (words_at, lines_at) = (parts.words_at(), self.lines_used);
        if parts.deep.blocks() != self.deep.blocks() {
            self.deep = parts.deep.finish()?;
        }
        self.garbage += entries.iter().map(|&entry| self.bytes(self.words[entry])).sum::<usize>();
        append(&mut self.words, words_at, &parts.words);
        append(&mut self.lines, lines_at, &parts.lines);
        (self.words_used, self.lines_used) =
            (words_at + parts.words.len(), lines_at + parts.lines.len());
        let root = self.words.to_mut();
        for (entry, word) in entries.into_iter().zip(words) {
            root[entry] = word;
        }
        let used = 4 * (self.words_used - (1 << ROOT_BITS)) + 64 * self.lines_used;
        Ok(if self.garbage > used / 2 + SLACK { Patched::Rebuild } else { Patched::Applied })
    }

    /// The bytes of the tables and lines that an entry names.
    fn bytes(&self, word: u32) -> usize {
        match Entry::of(word) {
            Entry::Constant(_) => 0,
            Entry::Leaf(_) => 64,
            // Keys that are there name leaves, and there is one more; and the node's own line.
            Entry::Node(line) => {
                let keys = self.lines[line].partition_point(|&key| key != super::leaf::NO_KEY);
                64 * (keys + 2)
            }
            Entry::Table { base, down, .. } => {
                let start = base << self.grain;
                let words = &self.words[start..start + (1 << (32 - down))];
                4 * words.len() + words.iter().map(|&word| self.bytes(word)).sum::<usize>()
            }
        }
    }
}

/// Bytes of garbage that are nothing to speak of: small tables are all change.
const SLACK: usize = 1 << 18;

/// Writes the elements from place `at` on; a table without room for them grows by a quarter.
fn append<T: Pod>(table: &mut Table<T>, at: usize, elements: &[T]) {
    let end = at + elements.len();
    if end > table.len() {
        *table = Table::with(end + end / 4, |larger| larger[..table.len()].copy_from_slice(table));
    }
    table.to_mut()[at..end].copy_from_slice(elements);
}
