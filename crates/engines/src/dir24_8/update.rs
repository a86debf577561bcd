use fibula_core::{BuildError, Prefix, Routes};

use super::Tables;
use super::build::check_hops;
use super::entry::Entry;

impl<E: Entry> Tables<E> {
    /// Rewrites the entries under the changed prefixes. The work is proportional to the entries and routes there. For a
    /// prefix longer than /24 the whole block is rewritten, which keeps its chunk if other routes divide it.
    pub(super) fn patch(
        &mut self,
        routes: &Routes<u32>,
        changed: &[Prefix<u32>],
    ) -> Result<(), BuildError> {
        check_hops::<E>(routes)?;
        let mut near = 0;
        for prefix in changed {
            let blocks = Prefix::masked(prefix.addr(), prefix.len().min(24));
            let blocks = blocks.expect("24 is a prefix length");
            self.paint(routes.ranges_within_near(blocks, &mut near))?;
        }
        Ok(())
    }
}
