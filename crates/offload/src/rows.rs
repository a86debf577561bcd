use fibula_annotate::{LookupFamily, LookupTable};
use fibula_core::{Hop, Lookup, Memory};
use fibula_fib::{Columns, Fib, IndexedRoutes};

/// The rows of a table, by their numbers: a table in which the IPv4 address *n* has the values of row *n*, and those
/// behind the last row have none. A caller whose addresses stay on a device gets the number of a row for each of them,
/// and with this table the columns that the numbers belong to, in the types and with the defaults of annotation.
///
/// Prefixes are those of the table's routes, not of rows.
#[derive(Clone)]
pub struct RowTable(pub Fib);

impl Lookup<u32> for RowTable {
    fn lookup(&self, row: u32) -> Hop {
        if row < self.0.columns().len() { Hop::new(row) } else { Hop::NONE }
    }

    fn lookup_batch(&self, rows: &[u32], hops: &mut [Hop]) {
        assert_eq!(rows.len(), hops.len(), "as many hops as rows");
        hops.iter_mut().zip(rows).for_each(|(hop, &row)| *hop = self.lookup(row));
    }

    fn memory(&self) -> Memory {
        Memory::new([])
    }
}

impl LookupFamily<u32> for RowTable {
    fn engine(&self) -> &dyn Lookup<u32> {
        self
    }

    fn routes(&self) -> &IndexedRoutes<u32> {
        self.0.family::<u32>().routes()
    }
}

impl LookupTable for RowTable {
    fn columns(&self) -> &Columns {
        self.0.columns()
    }

    fn v4(&self) -> &dyn LookupFamily<u32> {
        self
    }

    fn v6(&self) -> &dyn LookupFamily<u128> {
        self.0.family::<u128>()
    }

    fn has_columns(&self) -> bool {
        !self.0.is_live()
    }
}
