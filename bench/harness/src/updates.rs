//! What `fibula bench --updates --json` measured, as a picture: how long a burst of changes takes until it is in the
//! table, and how many changes a second that is.

use fibula_core::grouped;
use fibula_testkit::measure::Stamp;
use serde::Deserialize;

use crate::lines::{Line, Panel, Picture};

/// The command's output.
#[derive(Deserialize)]
pub struct Updates {
    stamp: Stamp,
    rows: Vec<Row>,
}

/// An engine with bursts of a size.
#[derive(Deserialize)]
struct Row {
    engine: String,
    family: String,
    table: String,
    prefixes: usize,
    burst: usize,
    us_per_change: f64,
    us_p50: f64,
    us_p99: f64,
}

impl Updates {
    /// The picture: two panels for each table.
    pub fn svg(&self) -> Result<String, String> {
        let mut tables: Vec<&Row> = Vec::new();
        let mut engines: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !tables.iter().any(|known| known.table == row.table && known.family == row.family) {
                tables.push(row);
            }
            if !engines.contains(&&*row.engine) {
                engines.push(&row.engine);
            }
        }
        if tables.is_empty() {
            return Err("no rows: no engine was patched".to_owned());
        }
        let lines = |of: &Row, values: &dyn Fn(&Row) -> [f64; 3]| -> Vec<Line> {
            let is_of = |row: &&Row| row.table == of.table && row.family == of.family;
            let line = |engine: &&str| {
                let rows = self.rows.iter().filter(is_of).filter(|row| row.engine == *engine);
                let points = rows.map(|row| (row.burst as f64, values(row))).collect();
                Line { name: (*engine).to_owned(), points }
            };
            engines.iter().map(line).collect()
        };
        let panels = tables.into_iter().flat_map(|of| {
            let prefixes = grouped(of.prefixes as u64);
            let latency = Panel {
                title: format!("IP{}, {prefixes} prefixes: time until a burst is in", of.family),
                up: "microseconds (median, line to 99 %)",
                lines: lines(of, &|row| {
                    // Less than the clock's resolution cannot be drawn on a logarithmic axis.
                    let all = |us: f64| (us * row.burst as f64).max(0.01);
                    [all(row.us_p50), all(row.us_p50), all(row.us_p99)]
                }),
            };
            let rate = Panel {
                title: format!("IP{}, {prefixes} prefixes: rate", of.family),
                up: "changes a second",
                lines: lines(of, &|row| [1e6 / row.us_per_change.max(1e-4); 3]),
            };
            [latency, rate]
        });
        Picture {
            title: "Changes of routes: engines that are patched".to_owned(),
            circumstances: format!("{}; {}", self.stamp.processor, self.stamp.date),
            across: "changed prefixes in a burst",
            is_log: true,
            panels: panels.collect(),
        }
        .svg()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_both_families_are_drawn() {
        let row = |engine: &str, family: &str, burst: usize| {
            format!(
                "{{\"engine\":\"{engine}\",\"isa\":\"avx2\",\"family\":\"{family}\",\"table\":\"t\",\"prefixes\":1000,\
                 \"burst\":{burst},\"us_per_change\":2.5,\"us_p50\":2.0,\"us_p99\":40.0}}"
            )
        };
        let rows = [row("runmap", "v4", 1), row("runmap", "v4", 100), row("wideleaf", "v6", 1)];
        let stamp = serde_json::to_string(&Stamp::take()).unwrap();
        let text = format!("{{\"stamp\":{stamp},\"rows\":[{}]}}", rows.join(","));
        let updates: Updates = serde_json::from_str(&text).unwrap();
        let svg = updates.svg().unwrap();
        for word in ["IPv4, 1,000 prefixes: rate", "IPv6, 1,000 prefixes: rate", "wideleaf"] {
            assert!(svg.contains(&format!("\n{word}\n")), "{word}: {svg}");
        }
        // Two panels with three points each, and the marks of the legend.
        assert_eq!(svg.matches("<circle").count(), 2 * 3 + 2);
        let none: Updates =
            serde_json::from_str(&format!("{{\"stamp\":{stamp},\"rows\":[]}}")).unwrap();
        assert!(none.svg().unwrap_err().contains("no rows"));
    }
}
