//! The values of several sources under the columns of one table.

use fibula_rib::{Listener, TableError};

use fibula_core::{Attributes, Change, Update, Value};

/// The listener's positions of a source's columns.
#[derive(Default)]
pub(crate) struct ColumnMap {
    /// Empty if the order is the same.
    of_columns: Vec<usize>,
    width: usize,
}

impl ColumnMap {
    pub(crate) fn of<'a>(columns: impl Iterator<Item = &'a str>, to: &mut dyn Listener) -> Self {
        let columns: Vec<&str> = columns.collect();
        if columns.is_empty() {
            return Self::default();
        }
        let places = to.value_places(&columns);
        let width = places.iter().max().map_or(0, |last| last + 1);
        let in_order = places.iter().copied().eq(0..places.len());
        Self { of_columns: if in_order { Vec::new() } else { places }, width }
    }

    /// Passes the update on, with its values in the listener's order.
    pub(crate) fn pass_on(
        &self,
        update: &Update<'_>,
        to: &mut dyn Listener,
    ) -> Result<(), TableError> {
        match update.change {
            Change::Announce(Attributes::Values(values)) if !self.of_columns.is_empty() => {
                let mut placed = vec![Value::Null; self.width];
                for (&place, &value) in self.of_columns.iter().zip(values) {
                    placed[place] = value;
                }
                let change = Change::Announce(Attributes::Values(&placed));
                to.update(&Update { change, ..*update })
            }
            _ => to.update(update),
        }
    }
}
