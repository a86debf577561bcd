//! Many updates that readers see all at once.

use std::marker::PhantomData;

use fibula_core::PerFamily;

use super::{Live, Pipelines};

/// While it exists, the updates of a [`Live`] table are parts of one change: see [`Live::hold`].
pub struct Hold<'a> {
    tables: PerFamily<Pipelines>,
    live: PhantomData<&'a Live>,
}

impl Live {
    /// Readers see the updates from now on all at once, when the returned value is dropped: each changed table is read
    /// from the RIB and built once. For the load of a table; an update of a few routes is compiled faster without.
    /// Updates do not wait for the compiler meanwhile.
    pub fn hold(&self) -> Hold<'_> {
        let tables = {
            let tables = self.tables();
            PerFamily::<Pipelines> { v4: tables.v4.clone(), v6: tables.v6.clone() }
        };
        tables.v4.iter().for_each(|table| table.log.hold());
        tables.v6.iter().for_each(|table| table.log.hold());
        Hold { tables, live: PhantomData }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.tables.v4.iter().for_each(|table| table.log.release());
        self.tables.v6.iter().for_each(|table| table.log.release());
    }
}
