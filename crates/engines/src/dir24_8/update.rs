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
        for prefix in changed {
            let blocks = Prefix::masked(prefix.addr(), prefix.len().min(24));
            self.paint(routes.ranges_within(blocks.expect("24 is a prefix length")))?;
        }
        Ok(())
    }
}
