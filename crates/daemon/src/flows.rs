//! The collector of flows beside a live table.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fibula_annotate::AnnotateOptions;
use fibula_collect::{
    CollectCounts, CollectError, CollectOptions, Collector, ExporterCounts, FlowTable, Talker,
    Talkers, TopTalkers,
};
use fibula_server::api::{TopFlow, TopFlows};
use fibula_server::{MetricsText, TableCopies, rfc3339};
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
        let collector = Collector::start(current.options(config), None)?;
        for address in collector.addresses() {
            info!("receiving flows at {address}");
        }
        *current.collector() = Some(collector);
        let (stop, stopped) = channel();
        let mut keeper = Keeper {
            config: config.clone(),
            current,
            tables,
            known: Known::all(config),
            table: None,
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
    /// The main table, and those of VRFs.
    known: Vec<Known>,
    /// What flows are looked up in: the main table, or all of them.
    table: Option<Arc<FlowTable>>,
    /// When the tables were looked at.
    looked: Option<Instant>,
    saved: Instant,
    failed: Option<Instant>,
}

/// A table of the server, and the copy of it that is used.
struct Known {
    name: Option<String>,
    /// The VRF for which it is, if that is why it is known.
    vrf: Option<String>,
    /// The state of the copy.
    sequence: Option<(u64, u64)>,
    table: Option<Arc<FlowTable>>,
    /// The names of its values.
    values: Vec<String>,
    /// Whether it was said that it is missing.
    is_said: bool,
}

impl Known {
    /// The tables of a configuration, each once.
    fn all(config: &FlowsConfig) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        let main = std::iter::once((None, config.table.clone()));
        let vrfs = config.vrfs.iter().map(|(vrf, table)| (Some(vrf.clone()), Some(table.clone())));
        for (vrf, name) in main.chain(vrfs) {
            if all.iter().all(|known| known.name != name) {
                let values = Vec::new();
                all.push(Self { name, vrf, sequence: None, table: None, values, is_said: false });
            }
        }
        all
    }

    /// Whether a value can be added from it.
    fn has(&self, name: &str) -> bool {
        name == "prefix" || self.values.iter().any(|value| value == name)
    }

    /// Copies the table if it has changed; returns whether it has.
    fn renew(&mut self, tables: &TableCopies, config: &FlowsConfig) -> Result<bool, String> {
        let copy = tables.copy(self.name.as_deref())?;
        if self.sequence == Some(copy.state()) {
            return Ok(false);
        }
        self.values = copy.fib().columns().names().map(str::to_owned).collect();
        let mut options = AnnotateOptions::default();
        options.add.clone_from(&config.add);
        if options.add.is_empty() {
            options.add.push("prefix".to_owned());
            options.add.extend(self.values.iter().cloned());
        }
        // Of several tables, each adds what it has.
        if !config.vrfs.is_empty() {
            options.add.retain(|name| self.has(name));
        }
        self.sequence = Some(copy.state());
        let table = match options.add.is_empty() {
            true => None,
            false => {
                let table = FlowTable::new(copy.fib().clone(), &options, config.format);
                Some(Arc::new(table.map_err(|error| error.to_string())?))
            }
        };
        self.table = table;
        Ok(true)
    }

    /// The table is not there, or not yet.
    fn missing(&mut self, what: &str) {
        match &self.vrf {
            Some(vrf) if !self.is_said => {
                info!("flows of VRF {vrf} are written without values until there are some: {what}");
            }
            _ => tracing::debug!("flows are written without values yet: {what}"),
        }
        self.is_said = true;
    }
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
        match Collector::start(self.current.options(&self.config), self.table.clone()) {
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

    /// Copies the tables that have changed.
    fn renew(&mut self) {
        let mut is_changed = false;
        for known in &mut self.known {
            match known.renew(&self.tables, &self.config) {
                Ok(changed) => is_changed |= changed,
                // A table is there once its source has announced a route.
                Err(what) if known.table.is_none() => known.missing(&what),
                Err(what) => warn!("flows are looked up in an old table: {what}"),
            }
        }
        if !is_changed {
            return;
        }
        match self.combined() {
            Ok(table) => {
                self.table = table;
                if let Some(collector) = &*self.current.collector() {
                    collector.replace(self.table.clone());
                }
            }
            Err(what) => warn!("flows are looked up in old tables: {what}"),
        }
    }

    /// The main table alone, or with those of VRFs.
    fn combined(&self) -> Result<Option<Arc<FlowTable>>, String> {
        let of = |name: Option<&str>| {
            let known = self.known.iter().find(|known| known.name.as_deref() == name);
            known.and_then(|known| known.table.clone())
        };
        let main = of(self.config.table.as_deref());
        if self.config.vrfs.is_empty() {
            return Ok(main);
        }
        if self.known.iter().all(|known| known.sequence.is_some()) {
            let is_known = |name: &&String| self.known.iter().any(|known| known.has(name));
            if let Some(name) = self.config.add.iter().find(|name| !is_known(name)) {
                return Err(format!("no table has the value {name:?}"));
            }
        }
        let vrfs = self.config.vrfs.iter();
        let vrfs: Vec<_> = vrfs.map(|(vrf, table)| (vrf.clone(), of(Some(table)))).collect();
        let table = FlowTable::by_vrf(main, &vrfs).map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(table)))
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
