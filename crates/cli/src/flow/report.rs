//! Says what was received, and what became of it.

use std::io::Write;
use std::path::Path;

use fibula_collect::{CollectCounts, ExporterCounts};
use fibula_core::grouped;
use fibula_rib::AtomicFile;
use fibula_server::MetricsText;
use serde_json::{Value, json};

use crate::failure::{Failure, eprint_line};
use crate::output;
use crate::progress::note;

/// Prints the counts on one line.
pub fn line(counts: &CollectCounts) {
    let lost = counts.dropped + counts.dropped_by_system;
    note(format_args!(
        "{} datagrams of {} exporters, {} flows, {} files, {} datagrams dropped, {} lost before",
        grouped(counts.datagrams),
        grouped(counts.exporters.len() as u64),
        grouped(counts.exports.flows),
        grouped(counts.files),
        grouped(lost),
        grouped(counts.exports.lost),
    ));
}

/// Prints all counts that are not zero.
pub fn summary(counts: &CollectCounts) {
    line(counts);
    note(format_args!(
        "{} of {} addresses matched, {} written",
        grouped(counts.matched),
        grouped(counts.addresses),
        output::size(counts.bytes)
    ));
    let exports = &counts.exports;
    let waiting = exports.held.saturating_sub(exports.released).saturating_sub(exports.dropped);
    for (count, what) in [
        (counts.forwarded, "flows sent on"),
        (counts.unsent, "flows that could not be sent on"),
        (counts.refused, "datagrams of exporters that --allow does not name"),
        (counts.dropped, "datagrams dropped because too many waited: see --queue and --sockets"),
        (counts.dropped_by_system, "datagrams dropped by the system: see --receive-buffer"),
        (waiting, "sets of records without a template: they have no rows"),
        (
            exports.dropped,
            "sets without a template that were dropped, because too many waited for theirs",
        ),
        (
            exports.lost,
            "flows (NetFlow v5, IPFIX) or exports (NetFlow v9, sFlow) missing by their sequence numbers",
        ),
        (exports.late, "exports late or twice"),
        (exports.restarts, "restarts of exporters"),
        (exports.forgotten, "templates, domains or exporters forgotten because of their number"),
        (exports.faults, "faults in datagrams"),
    ] {
        if count > 0 {
            note(format_args!("{} {what}", grouped(count)));
        }
    }
    if let Some((sender, fault)) = &counts.last_fault {
        note(format_args!("  the last, from {sender}: {fault}"));
    }
}

fn exporter(counts: &ExporterCounts) -> Value {
    let named = counts.named().into_iter();
    named.map(|(name, _, value)| (name.to_owned(), Value::from(value))).collect()
}

/// Prints the counts as an object of JSON.
pub fn json(counts: &CollectCounts) {
    let exporters = counts.exporters.iter();
    let exporters: Value =
        exporters.map(|(address, counts)| (address.to_string(), exporter(counts))).collect();
    let object = json!({
        "datagrams": counts.datagrams,
        "refused": counts.refused,
        "dropped": counts.dropped,
        "dropped_by_system": counts.dropped_by_system,
        "flows": counts.exports.flows,
        "lost": counts.exports.lost,
        "faults": counts.exports.faults,
        "rows": counts.rows,
        "addresses": counts.addresses,
        "matched": counts.matched,
        "forwarded": counts.forwarded,
        "unsent": counts.unsent,
        "files": counts.files,
        "bytes": counts.bytes,
        "exporters": exporters,
    });
    eprint_line(format_args!("{object}"));
}

/// Writes the counts in Prometheus's text format, whole or not at all.
pub fn write_metrics(counts: &CollectCounts, file: &Path) -> Result<(), Failure> {
    let write = || {
        let mut text = MetricsText::default();
        fibula_daemon::flow_metrics(counts, &mut text);
        let mut out = AtomicFile::create(file)?;
        out.write_all(text.into_string().as_bytes())?;
        out.commit()
    };
    write().map_err(|error| Failure::io(file.display(), &error))
}
