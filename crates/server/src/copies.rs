//! Copies of a server's tables, for what looks many addresses up beside it.

use std::fmt;
use std::sync::Arc;

use fibula_fib::Fib;

use crate::frozen::Frozen;
use crate::site::Site;

/// Gives copies of the tables of a [`Server`](crate::Server), which its bulk answers share.
#[derive(Clone)]
pub struct TableCopies(pub(crate) Arc<Site>);

impl TableCopies {
    /// A current or recent copy of a table, by its name; without one, of the table that answers without a name. With a
    /// validator, it has the validity of its routes. Blocks while a copy is made, a second for a million routes, and
    /// takes at most a fifth of a processor's time if it is called again and again.
    ///
    /// # Errors
    /// If there is no such table, or no copy can be made.
    pub fn copy(&self, table: Option<&str>) -> Result<TableCopy, String> {
        self.0.frozen_table(table).map(TableCopy).map_err(|refusal| refusal.sentence)
    }
}

impl fmt::Debug for TableCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCopies").finish_non_exhaustive()
    }
}

/// A table at one moment.
#[derive(Clone)]
pub struct TableCopy(Arc<Frozen>);

impl TableCopy {
    /// The table, with its values as columns.
    pub fn fib(&self) -> &Fib {
        &self.0.fib
    }

    /// The numbers of the updates and of the VRPs that it includes: of two copies with the same, either will do.
    pub fn state(&self) -> (u64, u64) {
        (self.0.sequence, self.0.vrps)
    }
}

impl fmt::Debug for TableCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCopy").field("state", &self.state()).finish_non_exhaustive()
    }
}
