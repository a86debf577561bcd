//! The collector of flows beside a live table.

mod keeper;
mod own;
mod tables;

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fibula_collect::{
    CollectCounts, CollectError, CollectOptions, Collector, ExporterCounts, Talker, Talkers,
    TopTalkers,
};
use fibula_server::api::{TopFlow, TopFlows};
use fibula_server::{MetricsText, TableCopies, rfc3339};

use self::keeper::Keeper;
pub(crate) use self::own::OwnFiles;
use crate::DaemonError;
use crate::config::FlowsConfig;

/// How often is looked whether the collector runs.
const TICK: Duration = Duration::from_secs(1);
/// How often templates are saved.
const SAVE: Duration = Duration::from_secs(60);
/// How long a collector that has failed rests.
const REST: Duration = Duration::from_secs(30);

/// A collector whose table follows a live one.
pub struct LiveFlows {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The collector that runs and its top talkers, for those who ask for them.
#[derive(Clone, Debug)]
pub struct CurrentFlows {
    collector: Arc<Mutex<Option<Collector>>>,
    talkers: Option<Arc<Talkers>>,
}

impl CurrentFlows {
    /// No collector yet.
    pub fn new(config: &FlowsConfig) -> Self {
        let talkers = || Arc::new(Talkers::new(config.top.iter().cloned()));
        Self { collector: Arc::default(), talkers: (!config.top.is_empty()).then(talkers) }
    }

    /// Whether top talkers are counted.
    pub fn has_top(&self) -> bool {
        self.talkers.is_some()
    }

    /// The values of a column with most bytes, as [`fibula_server::FlowTops`] asks for them.
    pub fn top(&self, by: Option<&str>, minutes: u64, limit: usize) -> Result<TopFlows, String> {
        let Some(talkers) = &self.talkers else { return Err("no flows are counted".to_owned()) };
        let columns: Vec<_> = talkers.columns().into_iter().map(str::to_owned).collect();
        let column = by.or(columns.first().map(String::as_str)).map(str::to_owned);
        let top = match &column {
            Some(column) => talkers.top(column, minutes, limit).ok_or_else(|| {
                let known = if columns.is_empty() { "none yet" } else { &columns.join(", ") };
                let names = "flows.top of the configuration names the columns";
                format!("flows are not counted by {column:?}, but by: {known}; {names}")
            })?,
            // There were no flows yet.
            None => TopTalkers::default(),
        };
        let now = SystemTime::now();
        let from = match column {
            Some(_) => UNIX_EPOCH + Duration::from_secs(top.seconds[0]),
            None => now,
        };
        let value = |talker: Talker| TopFlow {
            value: talker.value,
            bytes: talker.sums.bytes,
            packets: talker.sums.packets,
            flows: talker.sums.flows,
            missed_bytes: talker.missed,
        };
        Ok(TopFlows {
            columns,
            column,
            from: rfc3339(from),
            until: rfc3339(now),
            bytes: top.all.bytes,
            packets: top.all.packets,
            flows: top.all.flows,
            top: top.top.into_iter().map(value).collect(),
        })
    }

    /// The options of a collector, whose flows are counted here.
    fn options(&self, config: &FlowsConfig) -> CollectOptions {
        let mut options = config.options();
        options.talkers.clone_from(&self.talkers);
        options
    }

    fn collector(&self) -> MutexGuard<'_, Option<Collector>> {
        // A collector is put in and taken out as a whole.
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the counts of the collector.
    pub fn metrics(&self, text: &mut MetricsText) {
        let counts = self.collector().as_ref().map(Collector::counts);
        let running = "Whether flows are received: 0 while the output cannot be written.";
        text.one("flow_running", "gauge", running, u8::from(counts.is_some()));
        if let Some(counts) = counts {
            flow_metrics(&counts, text);
        }
    }
}

/// Writes the counts of a collector of flows as metrics.
pub fn flow_metrics(counts: &CollectCounts, text: &mut MetricsText) {
    for (at, (name, help, _)) in ExporterCounts::default().named().into_iter().enumerate() {
        let name = format!("flow_exporter_{name}_total");
        text.head(&name, "counter", help);
        for (address, counts) in &counts.exporters {
            let (_, _, value) = counts.named()[at];
            text.sample(&name, &[("exporter", &address.to_string())], value);
        }
    }
    for (name, help, value) in [
        ("datagrams", "Datagrams that were received.", counts.datagrams),
        ("refused", "Datagrams of exporters that are not allowed.", counts.refused),
        (
            "dropped",
            "Datagrams that were dropped because too many waited to be decoded.",
            counts.dropped,
        ),
        (
            "dropped_by_system",
            "Datagrams that the system dropped because a socket's buffer was full.",
            counts.dropped_by_system,
        ),
        ("forwarded", "Flows that were sent on.", counts.forwarded),
        ("unsent", "Flows that could not be sent on.", counts.unsent),
        ("rows", "Rows that were given to the output.", counts.rows),
        ("addresses", "Addresses that were looked up.", counts.addresses),
        ("matched", "Addresses with a route.", counts.matched),
        ("files", "Files that were completed.", counts.files),
        ("written_bytes", "Bytes of completed files.", counts.bytes),
    ] {
        text.one(&format!("flow_{name}_total"), "counter", help, value);
    }
    let memory = "About how many bytes are kept of exporters: templates, rates, names.";
    text.one("flow_memory_bytes", "gauge", memory, counts.memory);
}

impl LiveFlows {
    /// Starts to receive.
    pub fn start(
        config: &FlowsConfig,
        current: CurrentFlows,
        tables: TableCopies,
    ) -> Result<Self, DaemonError> {
        let mut keeper = Keeper::start(config, current, tables)?;
        let (stop, stopped) = channel();
        let run = move || {
            loop {
                keeper.look();
                match stopped.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return keeper.end(),
                }
            }
        };
        let thread = Builder::new().name("flow-tables".to_owned()).spawn(run);
        let failed = |error| DaemonError::System { what: "no thread for flows", error };
        Ok(Self { stop: Some(stop), thread: Some(thread.map_err(failed)?) })
    }
}

impl Drop for LiveFlows {
    /// Writes what was received.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

impl From<CollectError> for DaemonError {
    fn from(error: CollectError) -> Self {
        Self::Flows(error)
    }
}
