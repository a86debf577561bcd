//! Rules for columns: the rows of Parquet and Arrow.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use fibula_classify::{Classifier, Flow, Rules};
use parquet::arrow::ArrowWriter;

use super::choice::{ADDED, FlowChoice};
use super::listing::list;
use super::lookup::{FlowLookup, RuleTotals, rule_numbers};
use crate::columns::flows::FlowColumns;
use crate::files::{
    BatchWork, Batches, ColumnInput, ColumnPosition, ColumnWork, FirstBatch, KeyColumns, Progress,
    ipc, parquet as parquet_file,
};
use crate::{AnnotateError, AnnotateOptions, LogFormat, Summary};

/// Adds the rules of a packet filter to the rows of Parquet and Arrow, on several threads.
///
/// The columns of a flow are found by their names, as in rows of text. Addresses are text, 4 or 16 bytes, or numbers
/// for IPv4. Protocols are numbers or names. Ports are integers, both null where there are none.
pub struct RuleColumnAnnotator {
    classifier: Classifier,
    options: AnnotateOptions,
    values: Vec<RuleValues>,
}

/// The output for a columnar input.
pub enum RuleOutput<W> {
    /// Nothing: rows are only counted.
    Counts,
    /// A CSV row for each row: its number, the five fields, the columns of the rule.
    Rows(W),
    /// Parquet: all columns, followed by those of the rule. Columns of Parquet are copied as they are.
    Parquet(W),
    /// Arrow IPC, as a file or a stream like the input: all columns, followed by those of the rule.
    Arrow(W),
}

/// The values that are added for a rule.
#[derive(Clone, Debug, Default)]
struct RuleValues {
    line: Option<u32>,
    action: String,
    label: Option<String>,
}

impl RuleColumnAnnotator {
    /// Of the options, `threads` is used.
    pub fn new(classifier: Classifier, options: &AnnotateOptions) -> Self {
        let rules = classifier.rules();
        let mut values = vec![RuleValues::default(); rule_numbers(rules)];
        for (id, rule) in rules.iter() {
            let (action, label) = (rule.action.to_string(), rule.label.clone());
            let label = label.map(|label| label.as_ref().to_owned());
            values[id.0 as usize] = RuleValues { line: Some(rule.line), action, label };
        }
        Self { classifier, options: options.clone(), values }
    }

    /// Reads the input to its end and writes every row, in order. Output, summary and the first error do not depend on
    /// the number of threads.
    ///
    /// # Errors
    /// If reading or writing fails, if the input is damaged, at the first row whose fields are no flow, if a column of
    /// the five fields is missing, and if Arrow is to be written of Parquet.
    pub fn annotate<W: Write + Send>(
        &self,
        input: ColumnInput<'_>,
        output: RuleOutput<W>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(Summary, RuleTotals), AnnotateError> {
        let (found, columns) = match (input, output) {
            (ColumnInput::Parquet(file), RuleOutput::Parquet(output)) => {
                parquet_file::annotate(self, file, output, progress)?
            }
            (ColumnInput::Parquet(_), RuleOutput::Arrow(_)) => {
                return Err(AnnotateError::Columnar { format: LogFormat::Parquet });
            }
            (ColumnInput::ArrowFile(file), RuleOutput::Arrow(output)) => {
                ipc::file(self, file, output, progress)?
            }
            (ColumnInput::ArrowStream(stream), RuleOutput::Arrow(output)) => {
                ipc::stream(self, stream, output, progress)?
            }
            (ColumnInput::ArrowFile(file), RuleOutput::Parquet(output)) => {
                to_parquet(output, |give| ipc::file_batches(self, file, progress, give))?
            }
            (ColumnInput::ArrowStream(stream), RuleOutput::Parquet(output)) => {
                to_parquet(output, |give| ipc::stream_batches(self, stream, progress, give))?
            }
            (input, RuleOutput::Rows(output)) => {
                list(self, Batches::open(input)?, Some(output), progress)?
            }
            (input, RuleOutput::Counts) => list(self, Batches::open(input)?, None::<W>, progress)?,
        };
        let totals = found.lookup.totals();
        let summary = Summary {
            rows: found.rows,
            matched: totals.packets.iter().sum(),
            unmatched: totals.unmatched,
            columns: columns.keys.into_iter().map(|column| column.name).collect(),
            ..Summary::default()
        };
        Ok((summary, totals))
    }

    pub(super) fn threads(&self) -> usize {
        self.options.threads.max(1)
    }

    /// The columns with the five fields. Without `adds`, the input may have columns of the rules' names.
    pub(super) fn flow_columns(
        &self,
        schema: &Schema,
        adds: bool,
    ) -> Result<KeyColumns, AnnotateError> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let found = FlowChoice { adds }.of_names(&names);
        let found = found.map_err(|what| AnnotateError::FlowColumns { what })?;
        let keys = found.into_iter().map(|root| ColumnPosition::at_top(root, schema)).collect();
        Ok(KeyColumns { keys, time: None })
    }
}

/// Writes batches as a Parquet file.
fn to_parquet<W: Write + Send, T>(
    output: W,
    batches: impl FnOnce(&mut ipc::Give<'_>) -> Result<T, AnnotateError>,
) -> Result<T, AnnotateError> {
    let (mut output, mut writer) = (Some(output), None);
    let done = batches(&mut |schema, batch| {
        let writer = match &mut writer {
            Some(writer) => writer,
            None => match output.take() {
                Some(output) => {
                    writer.insert(ArrowWriter::try_new(output, Arc::clone(schema), None)?)
                }
                None => return Ok(()),
            },
        };
        Ok(batch.map_or(Ok(()), |batch| writer.write(batch))?)
    })?;
    if let Some(writer) = writer {
        writer.into_inner()?.flush().map_err(AnnotateError::Write)?;
    }
    Ok(done)
}

impl ColumnWork for RuleColumnAnnotator {
    type Batches = RuleBatches;

    fn options(&self) -> &AnnotateOptions {
        &self.options
    }

    fn columns(
        &self,
        schema: &Schema,
        _: LogFormat,
        _: &mut FirstBatch<'_>,
    ) -> Result<KeyColumns, AnnotateError> {
        self.flow_columns(schema, true)
    }

    fn added(&self, _: &Schema, _: &KeyColumns) -> Result<Vec<Field>, AnnotateError> {
        let kinds = [DataType::UInt32, DataType::Utf8, DataType::Utf8];
        let fields = ADDED.into_iter().zip(kinds);
        Ok(fields.map(|(name, kind)| Field::new(name, kind, true)).collect())
    }

    fn batches(&self, _: &KeyColumns) -> RuleBatches {
        let lookup = FlowLookup::new(self.classifier.clone());
        RuleBatches { lookup, flows: Vec::new(), rows: 0 }
    }
}

/// Finds the rules of batches. Each thread has its own classifier.
pub(crate) struct RuleBatches {
    pub(super) lookup: FlowLookup,
    /// The flows of the last batch, before the first row without one.
    pub(super) flows: Vec<Flow>,
    rows: u64,
}

impl RuleBatches {
    pub(super) fn rules(&self) -> &Rules {
        self.lookup.rules()
    }

    /// Finds the rules of the rows of a batch whose first row is `first_row`, counted from 0. On failure, of the rows
    /// before the one that is no flow.
    pub(super) fn find(
        &mut self,
        batch: &RecordBatch,
        columns: &KeyColumns,
        first_row: u64,
    ) -> Result<(), AnnotateError> {
        let arrays = columns.keys.iter().map(|column| column.cells(batch));
        let arrays = arrays.collect::<Result<Vec<ArrayRef>, _>>()?;
        let reader = FlowColumns::new(&arrays);
        self.flows.clear();
        let mut read = Ok(());
        for row in 0..batch.num_rows() {
            match reader.flow(row) {
                Ok(flow) => self.flows.push(flow),
                Err((column, what)) => {
                    let (row, column) = (first_row + row as u64 + 1, &columns.keys[column].name);
                    read = Err(AnnotateError::FlowCell { row, column: column.clone(), what });
                    break;
                }
            }
        }
        self.lookup.flows(self.flows.iter(), &[]);
        self.rows += self.flows.len() as u64;
        read
    }
}

impl BatchWork<RuleColumnAnnotator> for RuleBatches {
    fn batch(
        &mut self,
        annotator: &RuleColumnAnnotator,
        batch: &RecordBatch,
        columns: &KeyColumns,
        first_row: u64,
        _: Option<&mut [bool]>,
    ) -> Result<Vec<ArrayRef>, AnnotateError> {
        self.find(batch, columns, first_row)?;
        let found = self.lookup.found().iter();
        let values = || found.clone().map(|id| Some(&annotator.values[id.as_ref()?.0 as usize]));
        Ok(vec![
            Arc::new(values().map(|values| values?.line).collect::<UInt32Array>()),
            Arc::new(values().map(|values| Some(&*values?.action)).collect::<StringArray>()),
            Arc::new(values().map(|values| values?.label.as_deref()).collect::<StringArray>()),
        ])
    }

    fn merge(&mut self, other: &Self) {
        self.lookup.merge(&other.lookup);
        self.rows += other.rows;
    }
}
