//! Metrics for Prometheus, in its text format.

use std::iter::{once, once_with};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use fibula_core::{Addr, Vrf};
use fibula_rib::RibMemory;

use super::{peers, rpki};
use crate::counts::{CLASSES, Counts};
use crate::http::answer::{Answer, in_parts};
use crate::http::params::Params;
use crate::metrics_text::{MetricsText as Text, MoreMetrics};
use crate::site::Site;
use crate::table::TableName;

const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Number of tables whose samples are written at once, and whose histograms.
const PART: usize = 256;
const HISTOGRAMS: usize = 16;

pub(crate) fn metrics(site: &Arc<Site>, _: &Params) -> Answer {
    let mut begin = Text::default();
    begin.head("build_info", "gauge", "The version of the program.");
    begin.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = site.started.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    begin.one("start_time_seconds", "gauge", "When the server began, since 1970.", started);
    rib(site, &mut begin);
    let tables = tables(site);
    let held = tables.iter().map(|table| size_of::<OfTable>() + table.table.len()).sum();
    let site = Arc::clone(site);
    let end = once_with(move || {
        let mut end = Text::default();
        sources(&site, &mut end);
        http(&site, &mut end);
        if let Some(vrps) = &site.options.vrps {
            rpki::metrics(vrps, &mut end);
        }
        if let Some(MoreMetrics(more)) = &site.options.metrics {
            more(&mut end);
        }
        end
    });
    let texts = once(begin).chain(numbers(&tables)).chain(histograms(tables)).chain(end);
    Ok(in_parts(TEXT, held, texts.map(|text| text.0.into_bytes())))
}

fn rib(site: &Arc<Site>, text: &mut Text) {
    let (memory, updates, peers, resyncing): (RibMemory, u64, usize, usize) = site
        .live
        .with_rib(|rib| (rib.memory(), rib.sequence(), rib.peers().len(), rib.resyncing().len()));
    text.one("updates_total", "counter", "Events of the feeds that were applied.", updates);
    text.one("rib_paths", "gauge", "Paths of all peers.", memory.routes);
    text.one("rib_prefixes", "gauge", "Prefixes with a path, over all tables.", memory.prefixes);
    text.one("rib_attribute_sets", "gauge", "Distinct attribute sets.", memory.sets);
    text.head("rib_bytes", "gauge", "Memory of the RIB.");
    text.sample("rib_bytes", &[("part", "routes")], memory.route_bytes);
    text.sample("rib_bytes", &[("part", "attribute_sets")], memory.set_bytes);
    text.one("peers", "gauge", "Peers that have announced routes since the start.", peers);
    text.one(
        "peers_resyncing",
        "gauge",
        "Peers that are announcing all their routes again.",
        resyncing,
    );
    // Counting the routes of all peers takes a while, and hardly ever is one lost.
    let lost = match site.lost().is_empty() {
        true => 0,
        false => peers::all(Arc::clone(site)).flatten().filter(|peer| peer.state == "lost").count(),
    };
    text.one(
        "peers_lost",
        "gauge",
        "Peers whose connection is lost and whose routes are kept.",
        lost,
    );
}

/// A number of one family of a table.
struct Number {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&OfTable) -> f64,
}

/// The numbers of one family of a table.
struct OfTable {
    table: String,
    family: &'static str,
    routes: usize,
    generation: u64,
    sequence: u64,
    bytes: usize,
    lag: f64,
    counters: Arc<fibula_rib::Counters>,
}

const fn number(
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    of: fn(&OfTable) -> f64,
) -> Number {
    Number { name, kind, help, of }
}

const NUMBERS: &[Number] = &[
    number("routes", "gauge", "Prefixes with a route.", |t| t.routes as f64),
    number("generation", "gauge", "Number of the compiled table.", |t| t.generation as f64),
    number(
        "generation_updates",
        "gauge",
        "Events of the feeds that the compiled table takes in.",
        |t| t.sequence as f64,
    ),
    number("table_bytes", "gauge", "Memory of the compiled table.", |t| t.bytes as f64),
    number("lag_seconds", "gauge", "How long the oldest change has waited to be visible.", |t| {
        t.lag
    }),
    number("changes_total", "counter", "Changes of best routes.", |t| {
        t.counters.changes.get() as f64
    }),
    number("rebuilds_total", "counter", "Tables compiled anew.", |t| {
        t.counters.rebuilds.get() as f64
    }),
    number("patches_total", "counter", "Tables patched.", |t| t.counters.patches.get() as f64),
    number("compile_failures_total", "counter", "Times that no engine could be made.", |t| {
        t.counters.failures.get() as f64
    }),
    number("compile_seconds_total", "counter", "Time that rebuilds and patches took.", |t| {
        t.counters.making_ns.get() as f64 / 1e9
    }),
    number(
        "reader_stall_seconds_total",
        "counter",
        "Time that compilers waited for readers.",
        |t| t.counters.stalled_ms.get() as f64 / 1e3,
    ),
    number(
        "audit_probes_total",
        "counter",
        "Addresses at which engine and RIB were compared.",
        |t| t.counters.probes.get() as f64,
    ),
    number(
        "audit_differences_total",
        "counter",
        "Addresses at which engine and RIB differed.",
        |t| t.counters.differences.get() as f64,
    ),
];

/// The limits of the buckets for changes, in milliseconds. At low rates a change waits for the 10 or 50 ms in which
/// others are collected.
const VISIBLE_MS: [u64; 13] = [5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 250, 500, 1000];

fn tables(site: &Site) -> Arc<[OfTable]> {
    let of_vrf = |vrf| [of_table::<u32>(site, vrf), of_table::<u128>(site, vrf)];
    site.live.followed().into_iter().flat_map(of_vrf).flatten().collect()
}

/// The ranges of a list, this many at a time; one empty range for an empty list.
fn ranges(all: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    (0..all.max(1)).step_by(part).map(move |at| at..all.min(at + part))
}

fn numbers(tables: &Arc<[OfTable]>) -> impl Iterator<Item = Text> + use<> {
    let tables = Arc::clone(tables);
    NUMBERS.iter().flat_map(move |Number { name, kind, help, of }| {
        let tables = Arc::clone(&tables);
        ranges(tables.len(), PART).map(move |range| {
            let mut text = Text::default();
            if range.start == 0 {
                text.head(name, kind, help);
            }
            for table in &tables[range] {
                let labels = [("table", &*table.table), ("family", table.family)];
                text.sample(name, &labels, of(table));
            }
            text
        })
    })
}

fn histograms(tables: Arc<[OfTable]>) -> impl Iterator<Item = Text> {
    ranges(tables.len(), HISTOGRAMS).map(move |range| {
        let mut text = Text::default();
        if range.start == 0 {
            let help = "How long changes took from the RIB to the readers.";
            text.head("change_visible_seconds", "histogram", help);
        }
        tables[range].iter().for_each(|table| histogram(table, &mut text));
        text
    })
}

fn histogram(table: &OfTable, text: &mut Text) {
    let visible = table.counters.visible();
    let labels = [("table", &*table.table), ("family", table.family)];
    for ms in VISIBLE_MS {
        let limit = Duration::from_millis(ms);
        let le = limit.as_secs_f64().to_string();
        let labels = [labels[0], labels[1], ("le", &le)];
        text.sample("change_visible_seconds_bucket", &labels, visible.up_to(limit));
    }
    let all = [labels[0], labels[1], ("le", "+Inf")];
    text.sample("change_visible_seconds_bucket", &all, visible.count());
    text.sample("change_visible_seconds_sum", &labels, visible.sum().as_secs_f64());
    text.sample("change_visible_seconds_count", &labels, visible.count());
}

fn of_table<A: Addr>(site: &Site, vrf: Vrf) -> Option<OfTable> {
    let generation = site.live.current::<A>(vrf)?;
    let (table, routes) = site.live.with_rib(|rib| (TableName::of(rib, vrf), rib.len::<A>(vrf)));
    Some(OfTable {
        table: table.to_string(),
        family: if A::BITS == 32 { "ipv4" } else { "ipv6" },
        routes,
        generation: generation.number(),
        sequence: generation.sequence(),
        bytes: generation.engine().memory().total(),
        lag: site.live.lag::<A>(vrf)?.as_secs_f64(),
        counters: site.live.counters::<A>(vrf)?,
    })
}

fn sources(site: &Site, text: &mut Text) {
    let all = site.sources();
    text.head("source_state", "gauge", "1 for the state that a source is in.");
    for source in &all {
        for state in ["idle", "resync", "up", "lost", "damaged"] {
            let labels = [("source", &*source.name), ("kind", &*source.kind), ("state", state)];
            text.sample("source_state", &labels, u8::from(source.state == state));
        }
    }
    /// A counter's name, its description and its field.
    type Counter = (&'static str, &'static str, fn(&crate::api::SourceStatus) -> u64);
    let numbers: [Counter; 6] = [
        ("source_connections_total", "Connections that began.", |s| s.connections),
        ("source_bytes_total", "Bytes that came.", |s| s.bytes),
        ("source_announced_total", "Routes that were announced.", |s| s.announced),
        ("source_withdrawn_total", "Routes that were withdrawn.", |s| s.withdrawn),
        ("source_damaged_total", "Parts that could not be decoded.", |s| s.damaged),
        ("source_ignored_total", "Parts that hold nothing for a routing table.", |s| s.ignored),
    ];
    for (name, help, of) in numbers {
        text.head(name, "counter", help);
        for source in &all {
            text.sample(name, &[("source", &source.name), ("kind", &source.kind)], of(source));
        }
    }
    let help = "Parts that are doubtful and were kept, or were not read literally, by what it was.";
    text.head("source_noted_total", "counter", help);
    for source in &all {
        for (what, &count) in &source.noted {
            let labels = [("source", &*source.name), ("kind", &*source.kind), ("what", what)];
            text.sample("source_noted_total", &labels, count);
        }
    }
}

fn http(site: &Site, text: &mut Text) {
    let Counts { connections, accepted, refused, addresses, .. } = &site.counts;
    text.head("http_requests_total", "counter", "Requests that were answered.");
    for ((method, path), classes) in site.counts.answers() {
        for (class, count) in CLASSES.iter().zip(classes) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let labels = [("method", method), ("endpoint", path), ("status", *class)];
                text.sample("http_requests_total", &labels, count);
            }
        }
    }
    let connections = connections.load(Ordering::Relaxed);
    text.one("http_connections", "gauge", "Connections that are open.", connections);
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    text.one("http_connections_total", "counter", "Connections that began.", count(accepted));
    let help = "Connections that were refused, since there were too many.";
    text.one("http_connections_refused_total", "counter", help, count(refused));
    let help = "Addresses that bulk lookups answered.";
    text.one("bulk_addresses_total", "counter", help, count(addresses));
    let help = "Bytes of answers that clients have not taken yet.";
    text.one("http_answer_bytes", "gauge", help, site.answers.held());
    let watchers = site.options.limits.watchers - site.watchers.available_permits();
    text.one("watchers", "gauge", "Clients that read changes.", watchers);
}
