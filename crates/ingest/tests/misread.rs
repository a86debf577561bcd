//! The cases of `testdata/misread`: tables that are easily misread, and how they must be read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;

use fibula_ingest::{Collected, ReadError, ReadOptions, ReadReport, SourceSpec, read_from};
use serde_json::Value;

use crate::common::cuts;

type Reads = BTreeMap<String, BTreeMap<String, String>>;

fn content(case: &Value) -> Vec<u8> {
    if let Some(hex) = case["hex"].as_str() {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
        return (0..hex.len()).step_by(2).map(digits).collect();
    }
    let lines = case["lines"].as_array().expect("lines");
    lines
        .iter()
        .flat_map(|line| format!("{}\n", line.as_str().expect("a line")).into_bytes())
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn expected(case: &Value) -> Reads {
    let routes = case["reads"].as_object().expect("reads").iter();
    let values = |values: &Value| {
        values
            .as_object()
            .expect("values")
            .iter()
            .map(|(name, value)| (name.clone(), text(value)))
            .collect()
    };
    routes.map(|(prefix, of)| (prefix.clone(), values(of))).collect()
}

/// The last line of each prefix, by column.
fn reads(sink: &Collected) -> Reads {
    let columns = &sink.info.as_ref().expect("begun").columns;
    let route = |line: &String| {
        let (prefix, values) = line.split_once(" = ").unwrap_or((line, ""));
        let names = columns.iter().map(|column| column.name.clone());
        (prefix.to_owned(), names.zip(values.split(", ").map(str::to_owned)).collect())
    };
    sink.lines.iter().map(route).collect()
}

fn fault(case: &Value, result: Result<ReadReport, ReadError>, sink: &Collected) -> Option<String> {
    let parts = |name: &str| -> Vec<String> {
        case[name].as_array().into_iter().flatten().map(text).collect()
    };
    let (report, refused) = match (result, case["refused"].as_str()) {
        (Err(error), Some(part)) if error.to_string().contains(part) => return None,
        (Err(error), _) => return Some(format!("refused: {error}")),
        (Ok(report), refused) => (report, refused),
    };
    let read = reads(sink);
    let notes: Vec<&str> = report.noted.iter().map(|(what, _)| *what).collect();
    let wanted = parts("notes");
    let is_noted = notes.len() == wanted.len()
        && notes.iter().zip(&wanted).all(|(note, part)| note.contains(part.as_str()));
    if refused.is_some() || read != expected(case) {
        return Some(format!("read {read:#?}, damage {:?}", sink.damage));
    }
    if !is_noted {
        return Some(format!("notes {notes:?}"));
    }
    (Some(report.damaged) != case["damaged"].as_u64()).then(|| format!("damage {:?}", sink.damage))
}

#[test]
fn tables_are_read_as_they_are_meant() {
    let mut faults = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(cuts().join("misread")).expect("testdata") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        count += 1;
        let case: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        let spec = SourceSpec::new(case["name"].as_str().expect("a name"));
        let mut sink = Collected::default();
        let input = Cursor::new(content(&case));
        let result = read_from(&spec, input, &mut ReadOptions::default(), &mut sink);
        if let Some(fault) = fault(&case, result, &sink) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            faults.push(format!("{name}: {}\n  {fault}", case["why"]));
        }
    }
    assert!(count > 20, "{count} cases");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
