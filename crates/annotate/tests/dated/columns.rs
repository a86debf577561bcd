//! Columns, Parquet files and Arrow streams with times.

use std::io::Cursor;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Date32Array, DictionaryArray, Float64Array, RecordBatch,
    TimestampMicrosecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt32Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

/// Addresses and times of all kinds of columns.
#[test]
fn columns_are_looked_up_at_their_time() {
    let (oracle, rows) = (Oracle::new(), rows(false));
    let text = StringArray::from_iter_values(rows.iter().map(|row| row.0));
    let coded: DictionaryArray<Int32Type> = rows.iter().map(|row| Some(row.0)).collect();
    let bytes: Vec<Vec<u8>> = rows
        .iter()
        .map(|row| match row.0.parse().unwrap() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        })
        .collect();
    let bytes = BinaryArray::from_iter_values(bytes);
    let number = |row: &(&str, &str, _)| row.0.parse::<Ipv4Addr>().map_or(0x0a01_0203, u32::from);
    let numbers = UInt32Array::from_iter_values(rows.iter().map(number));
    let columns: [(&dyn Array, bool); 4] =
        [(&text, false), (&coded, false), (&bytes, false), (&numbers, true)];
    let seconds = || rows.iter().map(|row| row.2);
    let texts: StringArray =
        rows.iter().enumerate().map(|(way, row)| Some(written(row.2, way))).collect();
    let coded: DictionaryArray<Int32Type> = rows
        .iter()
        .map(|row| row.2.map(|time| Moment::from_unix(time).to_string()))
        .collect::<Vec<_>>()
        .iter()
        .map(|text| text.as_deref())
        .collect();
    let float: Float64Array = seconds().map(|time| time.map(|time| time as f64 + 0.25)).collect();
    let unit = |per: i64| move |time: Option<i64>| time.map(|time| time * per + per / 2);
    let days: Date32Array = seconds().map(|time| time.map(|t| t.div_euclid(DAY) as i32)).collect();
    let times: [(&dyn Array, bool); 8] = [
        (&seconds().map(unit(1)).collect::<TimestampSecondArray>(), false),
        (
            &seconds()
                .map(unit(1_000_000))
                .collect::<TimestampMicrosecondArray>()
                .with_timezone("+02:00"),
            false,
        ),
        (&seconds().map(unit(1_000_000_000)).collect::<TimestampNanosecondArray>(), false),
        (&seconds().map(unit(1_000)).collect::<Int64Array>(), false),
        (&float, false),
        (&texts, false),
        (&coded, false),
        (&days, true),
    ];
    for (add, fields) in ADDED {
        let mut options = options(add);
        options.columns.clear();
        let annotator = ColumnAnnotator::new(dated(), &options).unwrap();
        for (column, (array, is_number)) in columns.into_iter().enumerate() {
            for (kind, (times, is_day)) in times.into_iter().enumerate() {
                let found = annotator.annotate_at("src", array, times).unwrap();
                for (row, (src, _, time)) in rows.iter().enumerate() {
                    let time = if is_day { time.map(|t| t.div_euclid(DAY) * DAY) } else { *time };
                    let mapped = Ipv4Addr::from(number(&rows[row])).to_string();
                    let address = if is_number { &mapped } else { *src };
                    let all = oracle.fields(address, time);
                    let expected: Vec<_> = fields.iter().map(|&at| all[at].clone()).collect();
                    let told: Vec<_> = found.columns.iter().map(|added| cell(added, row)).collect();
                    assert_eq!(told, expected, "{add:?}, column {column}, times {kind}, row {row}");
                }
                let untimed = rows.iter().filter(|row| row.2.is_none()).count();
                let counts = found.counts;
                assert_eq!((counts.untimed, counts.rows), (untimed as u64, rows.len() as u64));
                let asked = counts.matched + counts.unmatched;
                assert_eq!(counts.rows, asked + counts.untimed + counts.before);
            }
        }
    }
}

/// A cell as a field of text.
fn cell(array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return String::new();
    }
    match array.data_type() {
        arrow_schema::DataType::Utf8 => array.as_string::<i32>().value(row).to_owned(),
        arrow_schema::DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        arrow_schema::DataType::List(_) => {
            let list = array.as_list::<i32>().value(row);
            let texts = list.as_string::<i32>();
            texts.iter().map(|text| text.unwrap()).collect::<Vec<_>>().join(";")
        }
        other => panic!("{other}"),
    }
}

/// Parquet and Arrow streams, whose column of times may come before or behind that of addresses.
#[test]
fn files_are_looked_up_at_their_time() {
    let (oracle, rows) = (Oracle::new(), rows(true));
    let ts: TimestampMicrosecondArray =
        rows.iter().map(|row| row.2.map(|time| time * 1_000_000)).collect();
    let src: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.0)));
    let dst: ArrayRef = Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.1)));
    let other: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows.len() as i64));
    let ts: ArrayRef = Arc::new(ts);
    for order in [["ts", "src", "n", "dst"], ["dst", "n", "ts", "src"]] {
        let column = |name: &str| match name {
            "ts" => &ts,
            "src" => &src,
            "dst" => &dst,
            _ => &other,
        };
        let fields = order.map(|name| (name, Arc::clone(column(name)), true));
        let batch = RecordBatch::try_from_iter_with_nullable(fields).unwrap();
        let annotator = ColumnAnnotator::new(dated(), &options(&["prefix", "asn"])).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        let properties = parquet::file::properties::WriterProperties::builder();
        let properties = properties.set_max_row_group_row_count(Some(1700)).build();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let mut parquet = Vec::new();
        let of_parquet = annotator.annotate_parquet(file, &mut parquet, &mut |_| {}).unwrap();
        let read = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(parquet)).unwrap();
        let mut batches: Vec<RecordBatch> =
            read.with_batch_size(9000).build().unwrap().map(Result::unwrap).collect();
        let mut stream = Vec::new();
        let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).unwrap();
        for at in (0..rows.len()).step_by(1000) {
            writer.write(&batch.slice(at, 1000.min(rows.len() - at))).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        let mut ipc = Vec::new();
        let of_ipc = annotator.annotate_ipc_stream(&stream[..], &mut ipc, &mut |_| {}).unwrap();
        assert_eq!(of_ipc, of_parquet);
        batches.extend(StreamReader::try_new(Cursor::new(ipc), None).unwrap().map(Result::unwrap));
        let mut at = 0;
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let (src, dst, time) = rows[at % rows.len()];
                at += 1;
                for (name, address) in [("src", src), ("dst", dst)] {
                    let added = |what: &str| {
                        cell(batch.column_by_name(&format!("{name}_{what}")).unwrap(), row)
                    };
                    let [prefix, asn, _] = oracle.fields(address, time);
                    assert_eq!((added("prefix"), added("asn")), (prefix, asn), "row {row}");
                }
            }
        }
        assert_eq!(at, 2 * rows.len());
        check_summary(&of_parquet, &rows, &oracle);
    }
}
