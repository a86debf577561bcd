//! Columns of lists: the values of all prefixes that cover an address.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::Field;

use super::Grow;
use super::covering::covering;
use crate::columns::lookup::BLOCK;
use crate::pipeline::answers::{Answers, Numbers, RouteNumbers, Without};
use crate::{AnnotateError, LookupTable};

/// The values of all covering prefixes, starting with the longest prefix.
pub(super) struct AllValues<'a> {
    table: &'a dyn LookupTable,
    /// The column of all values, to which the table's rows are given at the end.
    values: Box<dyn Grow + 'a>,
    rows: Vec<u32>,
    ends: Vec<i32>,
    valid: Vec<bool>,
    /// Whether addresses that no route covers have a value.
    has_default: bool,
}

impl<'a> AllValues<'a> {
    pub(super) fn new(
        table: &'a dyn LookupTable,
        values: Box<dyn Grow + 'a>,
        has_default: bool,
    ) -> Self {
        Self { table, values, rows: Vec::new(), ends: vec![0], valid: Vec::new(), has_default }
    }
}

impl Grow for AllValues<'_> {
    fn block(&mut self, answers: &Answers) -> Result<(), AnnotateError> {
        let routes = RouteNumbers::new(self.table).numbers();
        let rows = Numbers::rows(self.table);
        for (at, &route) in answers.routes.iter().enumerate() {
            // A prefix without a value also has an item in the list.
            let date = answers.dates.get(at).copied();
            let hops = covering(self.table, route, date).into_iter().map(|(_, hop)| hop.index());
            let hops = hops.map(|row| row.unwrap_or_else(|| rows.of(Without::Empty)));
            self.rows.extend(hops.map(|row| row.min(rows.of(Without::Empty))));
            let unmatched = routes.is_unmatched(route);
            if unmatched && self.has_default {
                self.rows.push(rows.of(Without::Unmatched));
            }
            let end = i32::try_from(self.rows.len());
            self.ends.push(end.map_err(|_| AnnotateError::Limit { what: "items of lists" })?);
            self.valid.push(routes.is_known(route) || unmatched);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<ArrayRef, AnnotateError> {
        let mut answers = Answers::default();
        for rows in self.rows.chunks(BLOCK) {
            answers.rows.clear();
            answers.rows.extend_from_slice(rows);
            self.values.block(&answers)?;
        }
        let values = self.values.finish()?;
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let nulls = Some(NullBuffer::from(self.valid)).filter(|nulls| nulls.null_count() > 0);
        let ends = OffsetBuffer::new(self.ends.into());
        Ok(Arc::new(ListArray::try_new(item, ends, values, nulls)?))
    }
}
