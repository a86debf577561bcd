//! Says what was decoded of exports of flows, and what was not.

use fibula_annotate::Summary;
use fibula_core::grouped;
use serde_json::{Value, json};

use crate::progress::note;

/// Sets whose template did not come before the input ended.
fn waiting(summary: &Summary) -> u64 {
    let exports = &summary.exports;
    exports.held.saturating_sub(exports.released).saturating_sub(exports.dropped)
}

/// Prints the counts, each behind the name of the file.
pub fn print(named: &str, summary: &Summary) {
    let exports = &summary.exports;
    if summary.stored_blocks > 0 {
        let (blocks, flows) = (grouped(summary.stored_blocks), grouped(exports.flows));
        return note(format_args!(
            "{named}blocks of nfcapd: {blocks}, with records of flows: {flows}"
        ));
    }
    note(format_args!(
        "{named}exports: {}, with records of flows: {}, of options: {}, templates: {}",
        grouped(exports.datagrams),
        grouped(exports.flows),
        grouped(exports.options),
        grouped(exports.templates),
    ));
    for (count, what) in [
        (waiting(summary), "sets of records without a template: they have no rows"),
        (
            exports.dropped,
            "sets without a template that were dropped, because too many waited for theirs",
        ),
        (
            exports.lost,
            "flows (NetFlow v5, IPFIX) or exports (NetFlow v9, sFlow) missing by their sequence numbers",
        ),
        (exports.lost_samples, "samples of sFlow missing by their sequence numbers"),
        (exports.late, "exports late or twice"),
        (exports.restarts, "restarts of exporters"),
        (exports.without_addresses, "sampled packets without addresses"),
        (exports.other_samples, "samples of counters and other data, skipped"),
        (exports.forgotten, "templates, domains or exporters forgotten because of their number"),
        (summary.fragments, "fragments of UDP datagrams, skipped: they are not put together"),
        (summary.other_packets, "packets that are no exports, skipped"),
    ] {
        if count > 0 {
            note(format_args!("{named}{} {what}", grouped(count)));
        }
    }
}

/// The counts as an object of JSON.
pub fn json(summary: &Summary) -> Value {
    let exports = &summary.exports;
    json!({
        "datagrams": exports.datagrams,
        "nfcapd_blocks": summary.stored_blocks,
        "flows": exports.flows,
        "options": exports.options,
        "templates": exports.templates,
        "without_template": waiting(summary),
        "dropped": exports.dropped,
        "released": exports.released,
        "lost": exports.lost,
        "lost_samples": exports.lost_samples,
        "late": exports.late,
        "restarts": exports.restarts,
        "without_addresses": exports.without_addresses,
        "other_samples": exports.other_samples,
        "faults": exports.faults,
        "forgotten": exports.forgotten,
        "fragments": summary.fragments,
        "other_packets": summary.other_packets,
    })
}
