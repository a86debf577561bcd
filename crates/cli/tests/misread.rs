//! The cases of `testdata/misread/data`: logs, captures and other data that are easily misread.

use std::fs;

use serde_json::Value;

use crate::common::{Files, TABLE, cuts, execute};

/// The rules of the cases of `classify`.
const RULES: &str = "src 10.0.0.0/8 tcp -> drop\n";

/// The tables that cases name beside that of the other tests.
const TABLES: [(&str, &str); 3] = [
    ("table.csv", TABLE),
    ("bad.csv", "prefix,list\n2001:db8::/32,bad\n"),
    ("named.csv", "network,prefix,site\n10.0.0.0/8,a,hq\n"),
];

fn texts(value: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    value.as_array().map(|all| all.iter().map(text).collect()).unwrap_or_default()
}

fn content(case: &Value) -> Vec<u8> {
    let Some(hex) = case["hex"].as_str() else {
        return texts(&case["lines"])
            .iter()
            .flat_map(|line| format!("{line}\n").into_bytes())
            .collect();
    };
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// What the command does otherwise than the case says.
fn fault(files: &Files, case: &Value) -> Option<String> {
    let input = files.with(case["name"].as_str().expect("a name"), content(case));
    // What is no data for one command is none for the other.
    if let Some(refused) = case["classify"].as_str() {
        let run = execute(&["classify", &files.path("rules.txt"), &input]);
        if run.code != 2 || !run.out.is_empty() || !run.err.contains(refused) {
            return Some(format!("classify ended with {}: {}{}", run.code, run.out, run.err));
        }
    }
    let command = case["command"].as_str().expect("a command");
    let mut args = vec![command.to_owned()];
    let named = texts(&case["args"]);
    if command == "classify" {
        args.push(files.path("rules.txt"));
    } else if !named.iter().any(|arg| arg == "--table") {
        args.extend(["--table".to_owned(), files.path("table.csv")]);
    }
    let is_table = |arg: &String| TABLES.iter().any(|(name, _)| name == arg);
    args.extend(named.into_iter().map(|arg| if is_table(&arg) { files.path(&arg) } else { arg }));
    args.push(input);
    let run = execute(&args.iter().map(String::as_str).collect::<Vec<_>>());
    if let Some(refused) = case["refused"].as_str() {
        let is_printed = run.out.lines().eq(texts(&case["prints"]));
        let is_refused = run.code == 2 && is_printed && run.err.contains(refused);
        return (!is_refused).then(|| format!("ended with {}: {}{}", run.code, run.out, run.err));
    }
    let lines: Vec<&str> = run.out.lines().collect();
    if run.code != 0 || lines != texts(&case["prints"]) {
        return Some(format!("ended with {}: {}{}", run.code, run.out, run.err));
    }
    let mut rest = run.err.as_str();
    for note in texts(&case["notes"]) {
        let Some(at) = rest.find(&note) else {
            return Some(format!("{note:?} is not in: {}", run.err));
        };
        rest = &rest[at + note.len()..];
    }
    None
}

#[test]
fn data_is_read_as_it_is_meant() {
    let files = Files::new();
    for (name, content) in TABLES {
        files.with(name, content);
    }
    files.with("rules.txt", RULES);
    let mut faults = Vec::new();
    let mut count = 0;
    for entry in fs::read_dir(cuts().join("misread/data")).expect("testdata") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        count += 1;
        let case: Value = serde_json::from_slice(&fs::read(&path).expect("a file")).expect("JSON");
        if let Some(fault) = fault(&files, &case) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            faults.push(format!("{name}: {}\n  {fault}", case["why"]));
        }
    }
    assert!(count > 15, "{count} cases");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
