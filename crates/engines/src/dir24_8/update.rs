use fibula_core::{BuildError, Prefix, Routes};

use super::Tables;
use super::build::check_hops;
use super::entry::Entry;

impl<E: Entry> Tables<E> {
    /// Paints anew what lies under the changed prefixes: the work is that of the entries and the
    /// routes there. A prefix longer than /24 stands for its block, of which the other routes may be
    /// what makes it keep its chunk.
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
