//! The table that flows are looked up in.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, RecordBatch, TimestampMicrosecondArray};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use fibula_annotate::{
    AnnotateError, AnnotateOptions, Column, ColumnAnnotator, LookupTable, TextForm,
};

use crate::FlowFormat;
use crate::columns::{ENDS, flow_fields};
use crate::own::OwnTables;
use crate::vrfs::VrfTables;

/// A table, with the values that are added to flows: for the source as `src_NAME`, for the destination as `dst_NAME`.
/// [`FlowTable::by_vrf`] and [`FlowTable::with_own`] make one of several.
pub struct FlowTable {
    lookup: Lookup,
    schema: SchemaRef,
}

enum Lookup {
    One { annotator: ColumnAnnotator, is_dated: bool },
    ByVrf(VrfTables),
    WithOwn(OwnTables),
}

/// Values for flows.
pub(crate) struct Values {
    /// The columns that are added.
    pub(crate) columns: Vec<ArrayRef>,
    /// For each of [`ENDS`] and each flow, whether a route covers the address, if it was looked up.
    pub(crate) matched: [Vec<Option<bool>>; 2],
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
        let lookup = Lookup::One { annotator, is_dated };
        Ok(Self { lookup, schema: Arc::new(Schema::new(fields)) })
    }

    /// Looks the flows of each VRF up in a table of its own. VRFs are given by the number or the name that the exporter
    /// has for them; a flow belongs to the first of these that is given: the number of its ingress VRF (`input_vrf`),
    /// its name (`vrf_name`), the number of its egress VRF (`output_vrf`). Other flows, and those without a VRF, are
    /// looked up in `main`. Flows whose table is `None` have no values.
    ///
    /// The columns are those of all tables, each once. Texts are plain, also for Parquet.
    ///
    /// # Errors
    /// If two tables have a column of the same name with different types.
    pub fn by_vrf(
        main: Option<Arc<Self>>,
        vrfs: &[(String, Option<Arc<Self>>)],
    ) -> Result<Self, AnnotateError> {
        let tables = VrfTables::new(main, vrfs)?;
        let mut fields: Vec<_> = flow_fields().into_iter().map(Arc::new).collect();
        fields.extend(tables.fields().iter().cloned());
        Ok(Self { lookup: Lookup::ByVrf(tables), schema: Arc::new(Schema::new(fields)) })
    }

    /// Puts own tables before another one. Each value is that of the first table that has one for the address, however
    /// long its prefix is: of `own` in their order, then of `main`. The prefix is a value like others.
    ///
    /// The columns are those of all tables, each once. The texts of a column that several tables have are plain, also
    /// for Parquet.
    ///
    /// # Errors
    /// If two tables have a column of the same name with different types.
    pub fn with_own(own: &[Arc<Self>], main: Option<Arc<Self>>) -> Result<Self, AnnotateError> {
        let tables = OwnTables::new(own.iter().cloned().chain(main).collect())?;
        let mut fields: Vec<_> = flow_fields().into_iter().map(Arc::new).collect();
        fields.extend(tables.fields().iter().cloned());
        Ok(Self { lookup: Lookup::WithOwn(tables), schema: Arc::new(Schema::new(fields)) })
    }

    /// The columns of a batch of flows with the values of this table.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The columns that are added.
    pub(crate) fn added(&self) -> &[FieldRef] {
        &self.schema.fields()[flow_fields().len()..]
    }

    /// Adds the values to a batch of flows.
    pub(crate) fn add(&self, batch: &RecordBatch) -> Result<(RecordBatch, Looked), AnnotateError> {
        let values = self.values(batch)?;
        let mut looked = Looked::default();
        for matched in values.matched.iter().flatten().flatten() {
            looked.addresses += 1;
            looked.matched += u64::from(*matched);
        }
        let columns = [batch.columns(), &values.columns[..]].concat();
        Ok((RecordBatch::try_new(Arc::clone(&self.schema), columns)?, looked))
    }

    /// The values for flows, of which the batch has at least the columns [`ENDS`] and [`TIMES`].
    pub(crate) fn values(&self, batch: &RecordBatch) -> Result<Values, AnnotateError> {
        let (annotator, is_dated) = match &self.lookup {
            Lookup::One { annotator, is_dated } => (annotator, *is_dated),
            Lookup::ByVrf(tables) => return tables.values(batch),
            Lookup::WithOwn(tables) => return tables.values(batch),
        };
        let mut columns = Vec::new();
        let times = is_dated.then(|| times(batch));
        let mut matched = ENDS.map(|_| vec![None; batch.num_rows()]);
        for (end, matched) in ENDS.iter().zip(&mut matched) {
            let Some(addresses) = batch.column_by_name(end) else { continue };
            let mut marks = vec![false; addresses.len()];
            let found = annotator.annotate_marking(end, addresses, times.as_deref(), &mut marks)?;
            columns.extend(found.columns);
            for (row, mark) in marks.into_iter().enumerate() {
                matched[row] = addresses.is_valid(row).then_some(mark);
            }
        }
        Ok(Values { columns, matched })
    }
}

/// The columns with times, the best one first.
pub(crate) const TIMES: [&str; 3] = ["last", "first", "time"];

/// The time of each flow.
fn times(batch: &RecordBatch) -> ArrayRef {
    let [last, first, time] = TIMES.map(|name| {
        batch.column_by_name(name).map(|column| column.as_primitive::<TimestampMicrosecondType>())
    });
    let of = |column: Option<&TimestampMicrosecondArray>, row| {
        column.filter(|column| column.is_valid(row)).map(|column| column.value(row))
    };
    let times = (0..batch.num_rows())
        .map(|row| of(last, row).or_else(|| of(first, row)).or_else(|| of(time, row)));
    Arc::new(times.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
}
