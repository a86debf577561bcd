//! The collector of flows beside a live table.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use fibula_annotate::AnnotateOptions;
use fibula_collect::{CollectCounts, CollectError, Collector, ExporterCounts, FlowTable};
use fibula_server::{MetricsText, TableCopies};
use tracing::{error, info, warn};

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

/// The collector that runs, for those who ask for its counts.
#[derive(Clone, Debug, Default)]
pub struct CurrentFlows(Arc<Mutex<Option<Collector>>>);

impl CurrentFlows {
    fn collector(&self) -> MutexGuard<'_, Option<Collector>> {
        // A collector is put in and taken out as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let collector = Collector::start(config.options(), None)?;
        for address in collector.addresses() {
            info!("receiving flows at {address}");
        }
        *current.collector() = Some(collector);
        let (stop, stopped) = channel();
        let mut keeper = Keeper {
            config: config.clone(),
            current,
            tables,
            table: None,
            sequence: None,
            looked: None,
            saved: Instant::now(),
            failed: None,
        };
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

/// Keeps the collector running and its table new.
struct Keeper {
    config: FlowsConfig,
    current: CurrentFlows,
    tables: TableCopies,
    table: Option<Arc<FlowTable>>,
    /// The state of the table that is used.
    sequence: Option<(u64, u64)>,
    /// When the table was looked at.
    looked: Option<Instant>,
    saved: Instant,
    failed: Option<Instant>,
}

impl Keeper {
    fn look(&mut self) {
        let is_running = self.current.collector().as_ref().is_some_and(Collector::is_running);
        if !is_running && self.failed.is_none_or(|at| at.elapsed() >= REST) {
            self.start_again();
        }
        if self.looked.is_none_or(|at| at.elapsed() >= self.config.refresh.0) {
            self.renew();
            self.looked = Some(Instant::now());
        }
        if self.saved.elapsed() >= SAVE {
            self.saved = Instant::now();
            let saved = self.current.collector().as_ref().map(Collector::save_templates);
            if let Some(Err(failed)) = saved {
                warn!("templates of flows are not saved: {failed}");
            }
        }
    }

    /// Takes a collector that has failed out, and after a rest starts another one.
    fn start_again(&mut self) {
        let ended = self.current.collector().take();
        if let Some(Err(failed)) = ended.map(Collector::stop) {
            error!("no flows are written: {failed}; again in {} s", REST.as_secs());
            self.failed = Some(Instant::now());
            return;
        }
        match Collector::start(self.config.options(), self.table.clone()) {
            Ok(collector) => {
                info!("flows are received again");
                self.failed = None;
                *self.current.collector() = Some(collector);
            }
            Err(failed) => {
                error!("no flows are received: {failed}; again in {} s", REST.as_secs());
                self.failed = Some(Instant::now());
            }
        }
    }

    /// Copies the table if it has changed.
    fn renew(&mut self) {
        match self.newer() {
            Ok(None) => {}
            Ok(Some(table)) => {
                self.table = Some(Arc::new(table));
                if let Some(collector) = &*self.current.collector() {
                    collector.replace(self.table.clone());
                }
            }
            // A table is there once its source has announced a route.
            Err(what) if self.table.is_none() => {
                tracing::debug!("flows are written without values yet: {what}");
            }
            Err(what) => warn!("flows are looked up in an old table: {what}"),
        }
    }

    fn newer(&mut self) -> Result<Option<FlowTable>, String> {
        let copy = self.tables.copy(self.config.table.as_deref())?;
        if self.sequence == Some(copy.state()) {
            return Ok(None);
        }
        let mut options = AnnotateOptions::default();
        options.add.clone_from(&self.config.add);
        if options.add.is_empty() {
            options.add.push("prefix".to_owned());
            options.add.extend(copy.fib().columns().names().map(str::to_owned));
        }
        let table = FlowTable::new(copy.fib().clone(), &options, self.config.format);
        self.sequence = Some(copy.state());
        table.map(Some).map_err(|error| error.to_string())
    }

    fn end(self) {
        let collector = self.current.collector().take();
        match collector.map(Collector::stop) {
            Some(Ok(CollectCounts { rows, files, .. })) => info!(rows, files, "flows are written"),
            Some(Err(failed)) => error!("flows are not written: {failed}"),
            None => {}
        }
    }
}

impl From<CollectError> for DaemonError {
    fn from(error: CollectError) -> Self {
        Self::Flows(error)
    }
}
