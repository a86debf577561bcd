//! Own tables, whose values win.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::FieldRef;
use fibula_annotate::AnnotateError;

use crate::FlowTable;
use crate::table::Values;
use crate::vrfs::all_fields;

pub(crate) struct OwnTables {
    /// The first one wins.
    tables: Vec<Arc<FlowTable>>,
    fields: Vec<FieldRef>,
    /// For each column, the tables that have it, and where.
    sources: Vec<Vec<(usize, usize)>>,
}

impl OwnTables {
    pub(crate) fn new(tables: Vec<Arc<FlowTable>>) -> Result<Self, AnnotateError> {
        let mut fields = all_fields(&tables)?;
        let mut all = Vec::new();
        for field in &mut fields {
            let sources: Vec<_> = tables
                .iter()
                .map(|table| table.added().iter().position(|own| own.name() == field.name()))
                .enumerate()
                .filter_map(|(table, place)| Some((table, place?)))
                .collect();
            if let [(table, place)] = sources[..] {
                // Its values may stay in a dictionary.
                *field = Arc::clone(&tables[table].added()[place]);
            }
            all.push(sources);
        }
        Ok(Self { tables, fields, sources: all })
    }

    /// The columns that are added.
    pub(crate) fn fields(&self) -> &[FieldRef] {
        &self.fields
    }

    /// The values for flows.
    pub(crate) fn values(&self, batch: &RecordBatch) -> Result<Values, AnnotateError> {
        let found = self.tables.iter().map(|table| table.values(batch));
        let found = found.collect::<Result<Vec<_>, _>>()?;
        let mut columns = Vec::new();
        for (field, sources) in self.fields.iter().zip(&self.sources) {
            let mut best: Option<ArrayRef> = None;
            for &(table, place) in sources {
                let next = arrow_cast::cast(&found[table].columns[place], field.data_type())?;
                best = Some(match best {
                    Some(better) => first_of(better, &next)?,
                    None => next,
                });
            }
            columns.extend(best);
        }
        let mut matched = [0, 1].map(|_| vec![None; batch.num_rows()]);
        for (end, matched) in matched.iter_mut().enumerate() {
            for values in &found {
                // An address without a route in one table may have one in another, or none in any.
                let both = matched.iter_mut().zip(&values.matched[end]);
                both.for_each(|(any, one)| *any = (*any).max(*one));
            }
        }
        Ok(Values { columns, matched })
    }
}

/// Each value of `better`, or else of `next`.
fn first_of(better: ArrayRef, next: &ArrayRef) -> Result<ArrayRef, AnnotateError> {
    let Some(nulls) = better.nulls() else { return Ok(better) };
    let has = BooleanArray::new(nulls.inner().clone(), None);
    Ok(arrow_select::zip::zip(&has, &better, next)?)
}
