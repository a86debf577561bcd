//! Rows that do not come as text.

use std::borrow::Cow;

use fibula_core::Value;

use super::layout::emit_key;
use super::overlap::Earlier;
use super::roles::AddressColumns;
use crate::{HostBits, Sink};

/// Turns the rows of one source into prefixes, by the rule of the text formats: an address belongs to the narrowest
/// range that contains it, and of equally narrow ones to the last.
///
/// ```
/// use fibula_core::Value;
/// use fibula_ingest::text::{AddressColumns, RowFeed};
/// use fibula_ingest::{Collected, HostBits};
/// let mut sink = Collected::default();
/// let mut rows = RowFeed::default();
/// let columns = AddressColumns::Two { start: 0, end: 1, decimal: false };
/// let mut add = |record, first: &str, last: &str| {
///     let cells = [first.as_bytes(), last.as_bytes()];
///     rows.row(record, columns, &cells, HostBits::Refuse, &[Value::Int(record)], &mut sink)
/// };
/// add(1, "10.0.0.0", "10.0.0.2").unwrap();
/// let error = add(2, "10.0.0.2", "10.0.0.1").unwrap_err();
/// assert_eq!(error, r#"the range ends before it starts: "10.0.0.2" to "10.0.0.1""#);
/// assert_eq!(sink.lines, ["10.0.0.0/31 = 1", "10.0.0.2/32 = 1"]);
/// ```
#[derive(Default)]
pub struct RowFeed {
    earlier: Earlier,
}

impl RowFeed {
    /// Announces the prefixes of the addresses that belong to a row; `cells` are its cells as text.
    ///
    /// # Errors
    /// If the cells in `columns` hold no addresses, or a range that ends before it starts or overlaps more earlier ones
    /// than is credible. Nothing is announced then.
    pub fn row(
        &mut self,
        record: u64,
        columns: AddressColumns,
        cells: &[&[u8]],
        host_bits: HostBits,
        values: &[Value<'_>],
        sink: &mut dyn Sink,
    ) -> Result<(), Cow<'static, str>> {
        let key = columns.read(cells, host_bits)?;
        emit_key(key, record, &mut self.earlier, values, sink)
    }
}
