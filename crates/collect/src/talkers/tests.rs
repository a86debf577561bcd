use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};

use super::{FlowSums, LONGEST, MINUTE, Talker, Talkers, TopTalkers};

const PREFIXES: [Option<&str>; 5] =
    [Some("10.0.0.0/8"), None, Some("192.0.2.0/24"), Some("10.0.0.0/8"), None];

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let own: [(&str, ArrayRef); 3] = [
        ("bytes", Arc::new(UInt64Array::from(vec![Some(100), Some(5), Some(7), Some(1), None]))),
        ("packets", Arc::new(UInt64Array::from(vec![1, 2, 3, 4, 5]))),
        ("sampling", Arc::new(UInt32Array::from(vec![None, Some(10), Some(0), Some(2), None]))),
    ];
    RecordBatch::try_from_iter(own.into_iter().chain(columns)).unwrap()
}

fn strings() -> ArrayRef {
    Arc::new(StringArray::from(PREFIXES.to_vec()))
}

fn talkers(columns: &[&str]) -> Talkers {
    Talkers::new(columns.iter().map(|&column| column.to_owned()))
}

fn sums(bytes: u64, packets: u64, flows: u64) -> FlowSums {
    FlowSums { bytes, packets, flows }
}

fn top(talkers: &Talkers, column: &str, minutes: u64, now: u64) -> Vec<(Option<String>, FlowSums)> {
    let top = talkers.top_at(column, minutes, 10, now * MINUTE).unwrap().top;
    top.into_iter()
        .map(|Talker { value, sums, missed }| {
            assert_eq!(missed, 0);
            (value, sums)
        })
        .collect()
}

#[test]
fn values_of_all_types_are_counted_with_their_sampling() {
    let dictionary: DictionaryArray<Int32Type> = PREFIXES.into_iter().collect();
    let numbers = |numbers: [Option<u32>; 5]| UInt32Array::from(numbers.to_vec());
    let mut lists = ListBuilder::new(UInt32Builder::new());
    for list in
        [Some([Some(1), Some(2)]), None, Some([Some(3), Some(4)]), Some([Some(1), Some(2)]), None]
    {
        lists.append_option(list);
    }
    let lists: ListArray = lists.finish();
    let expected = |first: &str, second: &str| {
        vec![
            (Some(first.to_owned()), sums(102, 9, 2)),
            (None, sums(50, 25, 2)),
            (Some(second.to_owned()), sums(7, 3, 1)),
        ]
    };
    let columns: [(ArrayRef, _); 5] = [
        (strings(), expected("10.0.0.0/8", "192.0.2.0/24")),
        (Arc::new(dictionary), expected("10.0.0.0/8", "192.0.2.0/24")),
        (
            Arc::new(numbers([Some(64500), None, Some(1), Some(64500), None])),
            expected("64500", "1"),
        ),
        (
            Arc::new(Int64Array::from(vec![Some(-5), None, Some(9), Some(-5), None])),
            expected("-5", "9"),
        ),
        (Arc::new(lists), expected("[1, 2]", "[3, 4]")),
    ];
    for (column, expected) in columns {
        let talkers = talkers(&["x", "y"]);
        talkers.add(&batch(vec![("x", column)]), MINUTE).unwrap();
        assert_eq!(talkers.columns(), ["x"]);
        assert_eq!(top(&talkers, "x", 1, 1), expected);
        let all = talkers.top_at("x", 1, 2, MINUTE).unwrap();
        assert_eq!((all.all, all.top.len(), all.seconds), (sums(159, 37, 5), 2, [60, 120]));
        // A column that flows do not have, and one that is not counted.
        assert_eq!(talkers.top_at("y", 1, 2, MINUTE), None);
        assert_eq!(talkers.top_at("bytes", 1, 2, MINUTE), None);
    }
}

#[test]
fn minutes_pass() {
    let talkers = talkers(&["x"]);
    let batch = batch(vec![("x", strings())]);
    let flows = |minutes, now| {
        let TopTalkers { all, top, .. } = talkers.top_at("x", minutes, 10, now * MINUTE).unwrap();
        assert_eq!(all.flows, top.iter().map(|talker| talker.sums.flows).sum::<u64>());
        all.flows
    };
    let kept = || talkers.state().minutes.len();
    for minute in [100, 101, 101, 103, 102, 100] {
        talkers.add(&batch, minute * MINUTE + 5).unwrap();
    }
    assert_eq!([1, 2, 3, 4, 30].map(|minutes| flows(minutes, 103)), [5, 10, 20, 30, 30]);
    assert_eq!([1, 2, 30].map(|minutes| flows(minutes, 104)), [0, 5, 30]);
    // The longest time that can be asked for.
    assert_eq!((flows(30, 130), flows(99, 130)), (20, 20));
    // Half an hour later the first one is dropped, and a flow that comes as late is not counted.
    talkers.add(&batch, 130 * MINUTE).unwrap();
    assert_eq!(kept(), 4);
    talkers.add(&batch, 100 * MINUTE).unwrap();
    assert_eq!((kept(), flows(30, 130)), (4, 25));
    // The clock is set back, and forward.
    talkers.add(&batch, 50 * MINUTE).unwrap();
    assert_eq!((kept(), flows(30, 50)), (1, 5));
    talkers.add(&batch, 5000 * MINUTE).unwrap();
    assert_eq!((kept(), flows(30, 5000)), (1, 5));
}

#[test]
fn what_is_missing_is_told_over_all_minutes() {
    let talkers = Talkers::with_limit(["x".to_owned()], 4);
    let named = |name: &str, bytes: u64| {
        let column: ArrayRef = Arc::new(StringArray::from(vec![name]));
        let bytes: ArrayRef = Arc::new(UInt64Array::from(vec![bytes]));
        RecordBatch::try_from_iter([("x", column), ("bytes", bytes)]).unwrap()
    };
    for minute in 1..=2 {
        talkers.add(&named("large", 1000), minute * MINUTE).unwrap();
        for small in 0..40 {
            talkers.add(&named(&format!("{minute} {small}"), 1), minute * MINUTE).unwrap();
        }
    }
    let answer = talkers.top_at("x", 2, 10, 2 * MINUTE).unwrap();
    let large = Talker { value: Some("large".to_owned()), sums: sums(2000, 0, 2), missed: 0 };
    assert_eq!(answer.top[0], large);
    assert_eq!(answer.all.bytes, 2080);
    for small in &answer.top[1..] {
        // It had nothing before, and 1 byte: less than what may be missing, of both minutes.
        assert!(small.sums.bytes == 1 && small.missed > 0 && small.missed <= 2080 / 2, "{small:?}");
    }
}

#[test]
fn long_values_are_cut() {
    let talkers = talkers(&["x"]);
    let long = "é".repeat(100);
    let column: ArrayRef = Arc::new(StringArray::from(vec![long.as_str(); 5]));
    talkers.add(&batch(vec![("x", column)]), MINUTE).unwrap();
    let (value, _) = top(&talkers, "x", 1, 1).remove(0);
    let value = value.unwrap();
    assert!(value.len() <= LONGEST && value.ends_with("é…"), "{value}");
}
