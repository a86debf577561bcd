//! The records of a sweep, one for each table or number of threads, as text and as a picture.

use std::fmt::Write;

use fibula_core::grouped;

use crate::lines::{Line, Panel, Picture};
use crate::record::{Record, Row};
use crate::report::{circumstances, footnotes, memory};

/// Whether the points are numbers of threads; otherwise they are tables.
fn is_of_threads(points: &[Record]) -> bool {
    points.windows(2).any(|pair| pair[0].threads != pair[1].threads)
}

/// The column of a point.
fn head(point: &Record, is_of_threads: bool) -> String {
    match is_of_threads {
        true if point.threads == 1 => "1 thread".to_owned(),
        true => format!("{} threads", point.threads),
        false => grouped(point.prefixes as u64).to_string(),
    }
}

/// The different values of a field of all rows, in the order in which they come.
fn distinct(points: &[Record], of: fn(&Row) -> &str) -> Vec<&str> {
    let mut all = Vec::new();
    for value in points.iter().flat_map(|point| &point.rows).map(of) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
}

fn row<'a>(point: &'a Record, contestant: &str, traffic: &str) -> Option<&'a Row> {
    point.rows.iter().find(|row| row.contestant == contestant && row.traffic == traffic)
}

/// The records as a page.
pub fn text(points: &[Record]) -> String {
    let Some(first) = points.first() else { return String::new() };
    let is_of_threads = is_of_threads(points);
    let mut out = format!("# {}\n\n{}\n", first.title, circumstances(first));
    let what =
        if is_of_threads { &first.table } else { "the heads say how many prefixes a table has" };
    let _ = writeln!(
        out,
        "IP{}, {what}; {} keys for each round and thread, rounds: {}. Rates are million lookups a second, by processor\n\
         time with one thread; medians, in brackets by those of {} in the same round.",
        first.family,
        grouped(first.keys as u64),
        first.rounds,
        first.baseline,
    );
    let contestants = distinct(points, |row| &row.contestant);
    let kinds = distinct(points, |row| &row.traffic);
    let heads: Vec<String> = points.iter().map(|point| head(point, is_of_threads)).collect();
    let mut grid = |title: &str, cell: &dyn Fn(&Record, &str) -> String| {
        let _ = writeln!(out, "\n## {title}\n\n| contestant | {} |", heads.join(" | "));
        let _ = writeln!(out, "|---|{}", "--:|".repeat(heads.len()));
        for name in &contestants {
            let cells: Vec<String> = points.iter().map(|point| cell(point, name)).collect();
            let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
        }
    };
    for kind in &kinds {
        grid(kind, &|point, name| match row(point, name, kind) {
            Some(Row { rate: Some(rate), .. }) => {
                let ratio = rate.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
                let digits = usize::from(rate.mlps < 10.0);
                format!("{:.digits$} ({ratio})", rate.mlps)
            }
            Some(Row { wrong: Some(_), .. }) => "wrong".to_owned(),
            Some(_) => "right".to_owned(),
            None => "absent".to_owned(),
        });
    }
    let any =
        |point: &Record, name: &str| point.rows.iter().find(|row| row.contestant == name).cloned();
    grid("Memory", &|point, name| any(point, name).map_or(String::new(), |row| memory(&row)));
    grid("Time to build, in ms", &|point, name| {
        any(point, name).map_or(String::new(), |row| format!("{:.0}", row.build_ms))
    });
    // What is said of a contestant at several points is said once.
    let mut said: Vec<String> = Vec::new();
    for point in points {
        for line in footnotes(point).lines() {
            if !said.iter().any(|known| known == line) {
                said.push(line.to_owned());
            }
        }
    }
    out + &said.join("\n").replacen("## Contestants", "\n## Contestants\n", 1) + "\n"
}

/// The records as a picture: a panel for each kind of traffic, and one for memory if the tables differ.
pub fn svg(points: &[Record]) -> Result<String, String> {
    let Some(first) = points.first() else { return Err("no points".to_owned()) };
    let is_of_threads = is_of_threads(points);
    let contestants = distinct(points, |row| &row.contestant);
    let at = |point: &Record| match is_of_threads {
        true => point.threads as f64,
        false => point.prefixes as f64,
    };
    let lines = |value: &dyn Fn(&Record, &str) -> Option<[f64; 3]>| {
        let line = |name: &&str| Line {
            name: (*name).to_owned(),
            points: points.iter().filter_map(|p| Some((at(p), value(p, name)?))).collect(),
        };
        contestants.iter().map(line).collect::<Vec<_>>()
    };
    let mut panels: Vec<Panel> = distinct(points, |row| &row.traffic)
        .into_iter()
        .map(|kind| Panel {
            title: kind.to_owned(),
            up: "million lookups a second",
            lines: lines(&|point, name| {
                let rate = row(point, name, kind)?.rate.as_ref()?;
                Some([rate.mlps, rate.min, rate.max])
            }),
        })
        .collect();
    if !is_of_threads {
        panels.push(Panel {
            title: "Memory".to_owned(),
            up: "MiB",
            lines: lines(&|point, name| {
                let row = point.rows.iter().find(|row| row.contestant == name)?;
                let mib = row.bytes.or(row.resident).filter(|bytes| *bytes > 0)? as f64 / 1048576.0;
                Some([mib; 3])
            }),
        });
    }
    let stamp = &first.stamp;
    let what = match is_of_threads {
        true => format!("{}, {} prefixes", first.table, grouped(first.prefixes as u64)),
        false => format!("{} tables, threads: {}", points.len(), first.threads),
    };
    Picture {
        title: first.title.clone(),
        circumstances: format!(
            "IP{}; {what}; medians, lines from the slowest to the fastest round; {}; {}",
            first.family, stamp.processor, stamp.date
        ),
        across: if is_of_threads { "threads" } else { "prefixes" },
        is_log: !is_of_threads,
        panels,
    }
    .svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn sizes() -> Vec<Record> {
        let point = |prefixes: usize| {
            let mut point = record(&[("a", &[20.0, 40.0]), ("b", &[1.0, 1.0])]);
            point.prefixes = prefixes;
            point
        };
        [1000, 20_000].map(point).to_vec()
    }

    #[test]
    fn sizes_are_columns() {
        let mut points = sizes();
        points[1].rows[1].rate = None;
        points[1].rows[1].wrong = Some("wrong 3 of 10".to_owned());
        let text = text(&points);
        assert!(
            text.contains("## RND\n\n| contestant | 1,000 | 20,000 |\n|---|--:|--:|\n"),
            "{text}"
        );
        assert!(
            text.contains("| a | 30 (1.00) | 30 (1.00) |\n| b | 1.0 (0.04) | wrong |"),
            "{text}"
        );
        assert!(
            text.contains("## Memory\n") && text.contains("| a | 1.0 MiB | 1.0 MiB |"),
            "{text}"
        );
        assert_eq!(text.matches("- a: it 1").count(), 1, "{text}");
        assert!(text.contains("b, RND: wrong 3 of 10"), "{text}");
        let svg = svg(&points).unwrap();
        for word in ["RND", "Memory", "MiB", "prefixes", "10k"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word}: {svg}");
        }
    }

    #[test]
    fn numbers_of_threads_are_columns() {
        let mut points = sizes();
        (points[0].threads, points[1].threads) = (1, 2);
        let text = text(&points);
        assert!(text.contains("| contestant | 1 thread | 2 threads |"), "{text}");
        let svg = svg(&points).unwrap();
        assert!(svg.contains("\nthreads\n") && !svg.contains("\nMemory\n"), "{svg}");
    }
}
