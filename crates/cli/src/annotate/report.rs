//! The summary. It goes to standard error because standard output has the data.

use std::time::Duration;

use fibula_accel::BatchSummary;
use fibula_annotate::{LogFormat, Summary, Top};
use fibula_core::grouped;
use fibula_rib::Moment;
use serde_json::json;

use super::exports;
use super::inputs::Job;
use crate::output::{Grid, bar, size};
use crate::progress::{ms, note};

/// Width of the bars, in characters.
const BAR: usize = 30;

/// One annotated file.
pub struct AnnotatedFile<'a> {
    /// The file's path.
    pub job: &'a Job,
    /// Its format.
    pub format: LogFormat,
    /// Number of columns added for each address column.
    pub values: usize,
    /// The date of the first table, for a table file of several dates.
    pub first_table: Option<Moment>,
    /// Whether the address columns were detected.
    pub found: bool,
    /// Whether it is the only file.
    pub alone: bool,
}

impl AnnotatedFile<'_> {
    /// Prints the summary of the file.
    pub fn print(&self, summary: &Summary, time: Duration) {
        let share = |part: u64| 100.0 * part as f64 / summary.addresses.max(1) as f64;
        let rate = |count: u64| grouped((count as f64 / time.as_secs_f64().max(1e-9)) as u64);
        let name = self.job.input.display();
        let named = if self.alone { String::new() } else { format!("{name}: ") };
        let bytes = match summary.bytes_read {
            0 => String::new(),
            read => format!(", {}/s", size((read as f64 / time.as_secs_f64().max(1e-9)) as u64)),
        };
        note(format_args!(
            "{named}{} rows ({}), {} addresses, {:.1} % matched, in {} ({} addresses/s{bytes})",
            grouped(summary.rows),
            self.format,
            grouped(summary.addresses),
            share(summary.matched),
            ms(time),
            rate(summary.addresses),
        ));
        let is_table =
            matches!(self.format, LogFormat::Csv | LogFormat::Tsv) || self.format.is_columnar();
        if self.found && is_table && !summary.columns.is_empty() {
            note(format_args!(
                "{named}columns with addresses, by their first rows: {}",
                summary.columns.join(", ")
            ));
        }
        for (count, what, first) in [
            (
                summary.unparsable,
                "cells with text that is not an address",
                &summary.first_unparsable,
            ),
            (summary.empty, "cells without an address", &None),
            (summary.left_out, "rows left out by --only", &None),
            (summary.damaged, "damaged records", &summary.first_damaged),
            (summary.truncated, "packets captured too short", &None),
            (summary.cut, "packets of which the capture left out the end", &None),
            (
                summary.unknown_links,
                "packets of a link type that is not known",
                &summary.first_unknown_link,
            ),
        ] {
            if count > 0 {
                note(format_args!("{named}{} {what}", grouped(count)));
                if let Some(first) = first {
                    note(format_args!("  the first: {name}: {first}"));
                }
            }
        }
        if self.format == LogFormat::Flows {
            exports::print(&named, summary);
        }
        let nothing = |rows: u64| if rows == 1 { "it" } else { "them" };
        let row = |rows: u64| if rows == 1 { "row" } else { "rows" };
        if let Some(first) = self.first_table.filter(|_| summary.before > 0) {
            let (rows, before) = (summary.before, grouped(summary.before));
            note(format_args!(
                "{named}{before} {} before the first table, that of {first}: nothing is added to {}",
                row(rows),
                nothing(rows)
            ));
        }
        if summary.untimed > 0 {
            let (rows, untimed) = (summary.untimed, grouped(summary.untimed));
            note(format_args!(
                "{named}{untimed} {} without a time that can be read: nothing is added to {}",
                row(rows),
                nothing(rows)
            ));
            if let Some(first) = &summary.first_untimed {
                note(format_args!("  the first: {name}: {first}"));
            }
        }
        if self.alone {
            self.print_top(summary);
        }
    }

    /// Prints the summary of the file as one line of JSON.
    pub fn print_json(&self, summary: &Summary, lookups: Option<&BatchSummary>, time: Duration) {
        let top = |top: &Top| {
            let values: Vec<_> = top
                .values
                .iter()
                .map(|(value, count)| json!({ "value": value, "addresses": count }))
                .collect();
            json!({ "column": top.column, "distinct": top.distinct, "values": values })
        };
        note(json!({
            "file": self.job.input.display().to_string(),
            "output": self.job.output.display().to_string(),
            "format": self.format.name(),
            "rows": summary.rows,
            "left_out": summary.left_out,
            "columns": summary.columns,
            "addresses": summary.addresses,
            "ipv4": summary.v4,
            "matched": summary.matched,
            "unmatched": summary.unmatched,
            "unparsable": summary.unparsable,
            "first_unparsable": summary.first_unparsable,
            "empty": summary.empty,
            "before": summary.before,
            "untimed": summary.untimed,
            "first_untimed": summary.first_untimed,
            "damaged": summary.damaged,
            "first_damaged": summary.first_damaged,
            "truncated": summary.truncated,
            "cut": summary.cut,
            "unknown_links": summary.unknown_links,
            "first_unknown_link": summary.first_unknown_link,
            "exports": (self.format == LogFormat::Flows).then(|| exports::json(summary)),
            "bytes_read": summary.bytes_read,
            "bytes_written": summary.bytes_written,
            "on_device": lookups.map(|lookups| lookups.on_device),
            "on_cpu": lookups.map(|lookups| lookups.on_cpu),
            "device_failures": lookups.map(|lookups| lookups.failures),
            "device_error": lookups.and_then(|lookups| lookups.error.as_ref()).map(ToString::to_string),
            "seconds": time.as_secs_f64(),
            "top": summary.top.iter().map(top).collect::<Vec<_>>(),
        }));
    }

    /// Prints the most frequent values.
    fn print_top(&self, summary: &Summary) {
        // Every address column adds the same number of columns, so this is the number of address columns.
        let slots = summary.top.len() / self.values.clamp(1, summary.top.len().max(1));
        let each = summary.addresses as f64 / slots.max(1) as f64;
        for top in summary.top.iter().filter(|top| !top.values.is_empty()) {
            let distinct = grouped(top.distinct as u64);
            note(format_args!("\n{}: {distinct} distinct values", top.column));
            let mut grid = Grid::headless(&[false, true, true, false]);
            let most = top.values.first().map_or(1, |(_, count)| (*count).max(1));
            for (value, count) in &top.values {
                grid.row([
                    value.chars().take(40).collect(),
                    grouped(*count),
                    format!("{:.1} %", 100.0 * *count as f64 / each),
                    bar(*count as f64 / most as f64, BAR),
                ]);
            }
            let mut text = Vec::new();
            // Writing to memory cannot fail.
            let _ = grid.write_aligned(&mut text);
            note(String::from_utf8_lossy(&text).trim_end());
        }
    }
}

/// The totals of several files.
#[derive(Default)]
pub struct Totals {
    rows: u64,
    addresses: u64,
    matched: u64,
    unparsable: u64,
    time: Duration,
}

impl Totals {
    /// Adds the counts of one file.
    pub fn add(&mut self, summary: &Summary, time: Duration) {
        self.rows += summary.rows;
        self.addresses += summary.addresses;
        self.matched += summary.matched;
        self.unparsable += summary.unparsable;
        self.time += time;
    }

    /// Prints the totals.
    pub fn print(&self, files: usize) {
        note(format_args!(
            "{files} files, {} rows, {} addresses, {:.1} % matched, {} not an address, in {}",
            grouped(self.rows),
            grouped(self.addresses),
            100.0 * self.matched as f64 / self.addresses.max(1) as f64,
            grouped(self.unparsable),
            ms(self.time),
        ));
    }
}
