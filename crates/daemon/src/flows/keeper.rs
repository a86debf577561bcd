//! Keeps the collector of flows running, and its table new.

use std::sync::Arc;
use std::time::Instant;

use fibula_collect::{CollectCounts, Collector, FlowTable};
use fibula_server::TableCopies;
use tracing::{error, info, warn};

use super::own::OwnFiles;
use super::tables::Known;
use super::{CurrentFlows, REST, SAVE};
use crate::DaemonError;
use crate::config::FlowsConfig;

/// Keeps the collector running and its table new.
pub(super) struct Keeper {
    config: FlowsConfig,
    current: CurrentFlows,
    tables: TableCopies,
    /// The main table, and those of VRFs.
    known: Vec<Known>,
    /// The tables before them.
    own: OwnFiles,
    /// What flows are looked up in: the main table, or all of them.
    table: Option<Arc<FlowTable>>,
    /// When the tables were looked at.
    looked: Option<Instant>,
    saved: Instant,
    failed: Option<Instant>,
}

impl Keeper {
    /// Starts the collector, with the own tables.
    pub(super) fn start(
        config: &FlowsConfig,
        current: CurrentFlows,
        tables: TableCopies,
    ) -> Result<Self, DaemonError> {
        let mut keeper = Self {
            config: config.clone(),
            current,
            tables,
            known: Known::all(config),
            own: OwnFiles::read(config)?,
            table: None,
            looked: None,
            saved: Instant::now(),
            failed: None,
        };
        keeper.table = keeper.combined().map_err(|what| DaemonError::Table(what.into()))?;
        let collector = Collector::start(keeper.current.options(config), keeper.table.clone())?;
        for address in collector.addresses() {
            info!("receiving flows at {address}");
        }
        *keeper.current.collector() = Some(collector);
        Ok(keeper)
    }

    /// Does what is due.
    pub(super) fn look(&mut self) {
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

    /// Copies the tables that have changed, and reads the files that were replaced.
    fn renew(&mut self) {
        let before = self.own.renew(&self.config);
        let mut is_changed = before.is_some();
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
        let mut combined = self.combined();
        if let (Err(what), Some(before)) = (&combined, before) {
            warn!("the new own tables are not used for flows, the old ones stay: {what}");
            self.own.take_back(before);
            combined = self.combined();
        }
        match combined {
            Ok(table) => {
                self.table = table;
                if let Some(collector) = &*self.current.collector() {
                    collector.replace(self.table.clone());
                }
            }
            Err(what) => warn!("flows are looked up in old tables: {what}"),
        }
    }

    /// The main table alone, or with those of VRFs and the own ones.
    fn combined(&self) -> Result<Option<Arc<FlowTable>>, String> {
        let Self { config, known, own, .. } = self;
        let of = |name: Option<&str>| {
            let known = known.iter().find(|known| known.name.as_deref() == name);
            known.and_then(|known| known.table.clone())
        };
        if config.has_several_tables() && known.iter().all(|known| known.sequence.is_some()) {
            let is_known =
                |name: &&String| own.has(name) || known.iter().any(|known| known.has(name));
            if let Some(name) = config.add.iter().find(|name| !is_known(name)) {
                return Err(format!("no table has the value {name:?}"));
            }
        }
        let mut table = of(config.table.as_deref());
        if !config.vrfs.is_empty() {
            let vrfs = config.vrfs.iter();
            let vrfs: Vec<_> = vrfs.map(|(vrf, table)| (vrf.clone(), of(Some(table)))).collect();
            let combined = FlowTable::by_vrf(table, &vrfs).map_err(|error| error.to_string())?;
            table = Some(Arc::new(combined));
        }
        let own = own.tables();
        if !own.is_empty() {
            let combined = FlowTable::with_own(&own, table).map_err(|error| error.to_string())?;
            table = Some(Arc::new(combined));
        }
        Ok(table)
    }

    /// Writes what was received.
    pub(super) fn end(self) {
        let collector = self.current.collector().take();
        match collector.map(Collector::stop) {
            Some(Ok(CollectCounts { rows, files, .. })) => info!(rows, files, "flows are written"),
            Some(Err(failed)) => error!("flows are not written: {failed}"),
            None => {}
        }
    }
}
