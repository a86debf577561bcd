//! The summary, on standard error: standard output has the data.

use std::time::Duration;

use fibula_annotate::{Format, Summary};
use fibula_core::grouped;

use crate::output::{Grid, bar, size};
use crate::progress::{ms, note};

/// Width of the bars.
const BAR: usize = 30;

/// Says what was done with a file, by its name where there are several.
pub fn say(summary: &Summary, format: Format, added: usize, time: Duration, name: Option<&str>) {
    let share = |part: u64| 100.0 * part as f64 / summary.addresses.max(1) as f64;
    let rate = |count: u64| grouped((count as f64 / time.as_secs_f64().max(1e-9)) as u64);
    let said = name.map_or(String::new(), |name| format!("{name}: "));
    let bytes = match summary.bytes_read {
        0 => String::new(),
        read => format!(", {}/s", size((read as f64 / time.as_secs_f64().max(1e-9)) as u64)),
    };
    note(format_args!(
        "{said}{} rows ({format}), {} addresses, {:.1} % matched, in {} ({} addresses/s{bytes})",
        grouped(summary.rows),
        grouped(summary.addresses),
        share(summary.matched),
        ms(time),
        rate(summary.addresses),
    ));
    for (count, what) in [
        (summary.unparsable, "cells with text that is not an address"),
        (summary.empty, "cells without an address"),
        (summary.damaged, "damaged records"),
        (summary.truncated, "packets captured too short"),
    ] {
        if count > 0 {
            note(format_args!("{} {what}", grouped(count)));
        }
    }
    if name.is_some() {
        return; // of several files: not a page for each
    }
    // Every address column adds the same values, so its tops are as many.
    let slots = summary.top.len() / added.clamp(1, summary.top.len().max(1));
    let each = summary.addresses as f64 / slots.max(1) as f64;
    for top in summary.top.iter().filter(|top| !top.values.is_empty()) {
        note(format_args!("\n{}: {} distinct values", top.column, grouped(top.distinct as u64)));
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
        // Writing to memory does not fail.
        let _ = grid.write_aligned(&mut text);
        note(String::from_utf8_lossy(&text).trim_end());
    }
}

/// What several files had together.
#[derive(Default)]
pub struct Totals {
    rows: u64,
    addresses: u64,
    matched: u64,
    unparsable: u64,
    time: Duration,
}

impl Totals {
    /// Adds those of a file.
    pub fn add(&mut self, summary: &Summary, time: Duration) {
        self.rows += summary.rows;
        self.addresses += summary.addresses;
        self.matched += summary.matched;
        self.unparsable += summary.unparsable;
        self.time += time;
    }

    /// Says them.
    pub fn say(&self, files: usize) {
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
