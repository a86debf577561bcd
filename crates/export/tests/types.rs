//! Types of columns in Parquet.

use arrow_array::StringArray;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type};
use fibula_core::{Attributes, Change, Update, Value};
use fibula_export::{intervals, prefixes};
use fibula_rib::{BuilderOptions, ColumnKind, ScalarType, TableBuilder};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// Fractions and booleans have their types, unless a value of the column is none.
#[test]
fn parquet_has_types() {
    let names = ["share", "is_on", "mixed"];
    let kinds: Vec<_> = names.iter().map(|name| ((*name).to_owned(), ColumnKind::Str)).collect();
    let types =
        [("share", ScalarType::Double), ("is_on", ScalarType::Bool), ("mixed", ScalarType::Double)];
    let mut builder = TableBuilder::new(BuilderOptions::default());
    builder.types_of_next(&types.map(|(name, of)| (name.to_owned(), of)));
    builder.begin_source("x", "text", &kinds, false, None);
    let rows = [
        ("10.0.0.0/8", [Value::Str("-47.25"), Value::Str("true"), Value::Str("1")]),
        ("11.0.0.0/8", [Value::Null, Value::Str("false"), Value::Str("north")]),
        ("12.0.0.0/8", [Value::Str("1e-300"), Value::Null, Value::Null]),
    ];
    for (prefix, values) in &rows {
        let change = Change::Announce(Attributes::Values(values));
        builder.apply(&Update::new(prefix.parse().unwrap(), change));
    }
    let table = builder.finish().unwrap();
    let (mut of_prefixes, mut of_intervals) = (Vec::new(), Vec::new());
    prefixes(&table, &mut of_prefixes).unwrap();
    intervals::<u32>(&table, &mut of_intervals).unwrap();
    for (bytes, keys) in [(of_prefixes, 1), (of_intervals, 2)] {
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let batch = reader.build().unwrap().next().unwrap().unwrap();
        let shares: Vec<_> = batch.column(keys).as_primitive::<Float64Type>().iter().collect();
        assert_eq!(shares, [Some(-47.25), None, Some(1e-300)]);
        let is_on: Vec<_> = batch.column(keys + 1).as_boolean().iter().collect();
        assert_eq!(is_on, [Some(true), Some(false), None]);
        let mixed = batch.column(keys + 2).as_dictionary::<Int32Type>();
        let mixed: Vec<_> = mixed.downcast_dict::<StringArray>().unwrap().into_iter().collect();
        assert_eq!(mixed, [Some("1"), Some("north"), None]);
    }
}
