//! The table that flows are looked up in.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{Schema, SchemaRef};
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Column, ColumnAnnotator, LookupTable, TextForm,
};

use crate::FlowFormat;
use crate::columns::{ENDS, flow_fields};

/// A table, with the values that are added to flows: for the source as `src_NAME`, for the destination as `dst_NAME`.
pub struct FlowTable {
    annotator: ColumnAnnotator,
    is_dated: bool,
    schema: SchemaRef,
}

/// How many addresses were looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    pub(crate) addresses: u64,
    pub(crate) matched: u64,
}

impl FlowTable {
    /// Prepares the values of a table. Of the options, [`AnnotateOptions::add`], `all_covering` and `defaults` count.
    /// A table of several dates answers by the time of each flow: its last packet's, or its first's, or when it
    /// arrived.
    ///
    /// # Errors
    /// Those of [`ColumnAnnotator::new`], and if an added column would have the name of a column of flows.
    pub fn new(
        table: impl LookupTable + 'static,
        options: &AnnotateOptions,
        format: FlowFormat,
    ) -> Result<Self, AnnotateError> {
        let is_dated = table.dated().is_some();
        let mut options = options.clone();
        options.time = is_dated.then(|| Column::Name("last".to_owned()));
        options.strict = false;
        options.text = match format {
            // One dictionary for all rows: those of Parquet are made by the writer, of the values that occur.
            FlowFormat::Parquet => TextForm::Dictionary,
            _ => TextForm::Plain,
        };
        let annotator = ColumnAnnotator::new(table, &options)?;
        let mut fields: Vec<_> = flow_fields().into_iter().map(Arc::new).collect();
        ENDS.iter().for_each(|end| fields.extend(annotator.fields(end)));
        let mut names = HashSet::new();
        if let Some(twice) = fields.iter().find(|field| !names.insert(field.name().clone())) {
            return Err(AnnotateError::SameName { name: twice.name().clone() });
        }
        Ok(Self { annotator, is_dated, schema: Arc::new(Schema::new(fields)) })
    }

    /// The columns of a batch of flows with the values of this table.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds the values to a batch of flows.
    pub(crate) fn add(&self, batch: &RecordBatch) -> Result<(RecordBatch, Looked), AnnotateError> {
        let mut columns = batch.columns().to_vec();
        let times = self.is_dated.then(|| times(batch));
        let mut looked = Looked::default();
        for end in ENDS {
            let Some(addresses) = batch.column_by_name(end) else { continue };
            let found = match &times {
                Some(times) => self.annotator.annotate_at(end, addresses, times)?,
                None => self.annotator.annotate(end, addresses)?,
            };
            columns.extend(found.columns);
            looked.addresses += found.counts.matched + found.counts.unmatched;
            looked.matched += found.counts.matched;
        }
        Ok((RecordBatch::try_new(Arc::clone(&self.schema), columns)?, looked))
    }
}

/// The time of each flow.
fn times(batch: &RecordBatch) -> ArrayRef {
    let [last, first, time] = ["last", "first", "time"].map(|name| {
        batch.column_by_name(name).map(|column| column.as_primitive::<TimestampMicrosecondType>())
    });
    let of = |column: Option<&TimestampMicrosecondArray>, row| {
        column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
    };
    let times = (0..batch.num_rows())
        .map(|row| of(last, row).or_else(|| of(first, row)).or_else(|| of(time, row)));
    Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}
