//! Records of measurements, as JSON and CSV.

use std::fs;
use std::path::Path;

use fibula_testkit::measure::Stamp;
use serde::{Deserialize, Serialize};

/// A record: what was measured by one definition in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Machine, commit, command, time.
    pub stamp: Stamp,
    /// The load at the end.
    pub load_after: [f64; 3],
    /// The definition's name.
    pub definition: String,
    /// Its title.
    pub title: String,
    /// The table, and how many prefixes it has.
    pub table: String,
    /// `v4` or `v6`.
    pub family: String,
    /// Prefixes of the table.
    pub prefixes: usize,
    /// Keys for each thread and round.
    pub keys: usize,
    /// Lookup threads.
    pub threads: usize,
    /// Timed rounds.
    pub rounds: usize,
    /// The contestant whose rate the others are divided by.
    pub baseline: String,
    /// Contestants that did not take part, and why.
    pub absent: Vec<Absent>,
    /// A row for each contestant and traffic.
    pub rows: Vec<Row>,
}

/// A contestant that did not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Absent {
    /// Its name.
    pub contestant: String,
    /// Why.
    pub reason: String,
}

/// A contestant with a kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub contestant: String,
    /// What it calls itself.
    pub version: String,
    /// What it says about its table.
    pub note: String,
    /// The kind of traffic.
    pub traffic: String,
    /// Keys that it got at a time.
    pub batch: usize,
    /// Milliseconds in which it built its table.
    pub build_ms: f64,
    /// Bytes of its table, if it knows.
    pub bytes: Option<u64>,
    /// What its process grew by when it built its table.
    pub resident: Option<u64>,
    /// Why it has no rate: its answers are wrong, or it failed.
    pub wrong: Option<String>,
    /// Its rate, if it has one.
    pub rate: Option<Rate>,
}

/// A rate in million lookups a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// The median of the rounds.
    pub mlps: f64,
    /// The slowest round.
    pub min: f64,
    /// The fastest round.
    pub max: f64,
    /// The median over the rounds of its rate by the baseline's of the same round; `None` if that one has no rate.
    pub ratio: Option<f64>,
    /// Wall time by processor time, in all rounds: more than 1 if other processes had the core.
    pub wall_by_cpu: f64,
    /// The rate of each round.
    pub each: Vec<f64>,
}

/// Reads the records of a file: one, or those of a sweep.
pub fn read(path: &Path) -> Result<Vec<Record>, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let is_list = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let read = match is_list {
        true => serde_json::from_slice(&text),
        false => serde_json::from_slice(&text).map(|record| vec![record]),
    };
    read.map_err(|error| format!("{}: no record of the harness: {error}", path.display()))
}

/// As JSON: an object, or a list of those of a sweep.
pub fn json(records: &[Record]) -> String {
    let text = match records {
        [record] => serde_json::to_string_pretty(record),
        records => serde_json::to_string_pretty(records),
    };
    text.expect("it has only text and numbers") + "\n"
}

/// As CSV, a line for each row, and the stamp's main facts in each.
pub fn csv(records: &[Record]) -> String {
    let head = "date,processor,stepping,commit,definition,table,family,prefixes,threads,contestant,version,\
                traffic,batch,mlps,mlps_min,mlps_max,ratio,baseline,build_ms,bytes,resident_bytes,wrong\n";
    let lines = records.iter().map(Record::csv_lines);
    head.to_owned() + &lines.collect::<String>()
}

impl Record {
    /// Its lines of a CSV file.
    fn csv_lines(&self) -> String {
        let Stamp { date, processor, commit, .. } = &self.stamp;
        let dirty =
            if commit.as_ref().is_some_and(|commit| commit.is_dirty) { "-dirty" } else { "" };
        let commit = commit.as_ref().map_or("", |commit| commit.id.get(..12).unwrap_or(&commit.id));
        let mut text = String::new();
        for row in &self.rows {
            let rate =
                |of: fn(&Rate) -> f64| row.rate.as_ref().map(of).map_or(String::new(), three);
            let size = |bytes: Option<u64>| bytes.map_or(String::new(), |bytes| bytes.to_string());
            let ratio = row.rate.as_ref().and_then(|rate| rate.ratio);
            let cells = [
                date.clone(),
                processor.folder(),
                processor.stepping.clone(),
                format!("{commit}{dirty}"),
                self.definition.clone(),
                self.table.clone(),
                self.family.clone(),
                self.prefixes.to_string(),
                self.threads.to_string(),
                row.contestant.clone(),
                row.version.clone(),
                row.traffic.clone(),
                row.batch.to_string(),
                rate(|rate| rate.mlps),
                rate(|rate| rate.min),
                rate(|rate| rate.max),
                ratio.map_or(String::new(), three),
                self.baseline.clone(),
                three(row.build_ms),
                size(row.bytes),
                size(row.resident),
                row.wrong.clone().unwrap_or_default(),
            ];
            text += &cells.map(|cell| quoted(&cell)).join(",");
            text.push('\n');
        }
        text
    }
}

fn three(number: f64) -> String {
    format!("{number:.3}")
}

fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record with a row for each contestant's rounds.
    pub(crate) fn record(rounds: &[(&str, &[f64])]) -> Record {
        let row = |&(name, each): &(&str, &[f64])| Row {
            contestant: name.to_owned(),
            version: "it 1".to_owned(),
            note: String::new(),
            traffic: "RND".to_owned(),
            batch: 256,
            build_ms: 1.0,
            bytes: Some(1 << 20),
            resident: None,
            wrong: None,
            rate: crate::measure::rate(each.to_vec(), Some(rounds[0].1), 1.0),
        };
        Record {
            stamp: Stamp::take(),
            load_after: [0.0; 3],
            definition: "a".to_owned(),
            title: "A".to_owned(),
            table: "gen:v4:2024:100:1".to_owned(),
            family: "v4".to_owned(),
            prefixes: 100,
            keys: 10,
            threads: 1,
            rounds: rounds[0].1.len(),
            baseline: rounds[0].0.to_owned(),
            absent: Vec::new(),
            rows: rounds.iter().map(row).collect(),
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        let record = record(&[("a", &[2.0, 4.0, 3.0]), ("b", &[1.0, 1.0, 1.0])]);
        let path = std::env::temp_dir().join(format!("bench-record-{}", std::process::id()));
        for count in [1, 2] {
            fs::write(&path, json(&vec![record.clone(); count])).unwrap();
            let all = read(&path).unwrap();
            assert_eq!(all.len(), count);
            assert_eq!((&all[0].rows, &all[0].stamp), (&record.rows, &record.stamp));
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(csv(&[record.clone(), record.clone()]).lines().count(), 5);
        let csv = csv(&[record]);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 3);
        let columns = lines[0].split(',').count();
        assert!(lines.iter().all(|line| line.split(',').count() == columns), "{csv}");
        assert!(lines[1].contains("3.000,2.000,4.000,1.000,a"), "{csv}");
        assert!(lines[2].contains("1.000,1.000,1.000,0.333,a"), "{csv}");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
