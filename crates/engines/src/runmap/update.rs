use fibula_core::{BuildError, Patched, Prefix, Routes};
use fibula_simd::Table;

use super::Tables;
use super::build::Painter;
use super::record::{Leaf, ROOT_BITS, ROOT_BYTES};
use super::space::LINE;

impl<V: Leaf> Tables<V> {
    /// Writes anew the records of the blocks under the changed prefixes, behind those that are there,
    /// and points the root at them. What it pointed at before is garbage: other blocks may share it,
    /// and nobody counts. When the records have grown by half, a build is due.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<Patched, BuildError> {
        let (root, present) = self.records.to_mut().split_at_mut(ROOT_BYTES);
        let root = bytemuck::cast_slice_mut(root);
        let mut painter = Painter::<V>::new(root, present, self.used);
        for prefix in changed {
            let blocks = Prefix::masked(prefix.addr(), prefix.len().min(ROOT_BITS as u8));
            painter.paint(routes.ranges_within(blocks.expect("shorter than a prefix")));
        }
        let bytes = painter.finish()?;
        let end = self.used + bytes.len();
        if end > self.records.len() && !self.grow(end) {
            return Ok(Patched::Rebuild);
        }
        self.records.to_mut()[self.used..end].copy_from_slice(&bytes);
        self.used = end;
        Ok(Patched::Applied)
    }

    /// Makes room for so many bytes, unless that is too many.
    fn grow(&mut self, needed: usize) -> bool {
        let most = self.built + self.built / 2;
        if needed > most {
            return false;
        }
        // Some steps, so that the copies are few and a table with few changes stays small.
        let room = (needed + self.built / 8).min(most).next_multiple_of(LINE);
        self.records =
            Table::with(room, |to| to[..self.used].copy_from_slice(&self.records[..self.used]));
        true
    }
}
