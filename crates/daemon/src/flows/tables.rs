//! The tables of the server in which flows are looked up.

use std::sync::Arc;

use fibula_annotate::AnnotateOptions;
use fibula_collect::FlowTable;
use fibula_fib::Fib;
use fibula_server::TableCopies;
use tracing::info;

use crate::config::FlowsConfig;

/// The value that every table has.
const PREFIX: &str = "prefix";

/// A table of the server, and the copy of it that is used.
pub(super) struct Known {
    pub(super) name: Option<String>,
    /// The VRF for which it is, if that is why it is known.
    vrf: Option<String>,
    /// The state of the copy.
    pub(super) sequence: Option<(u64, u64)>,
    pub(super) table: Option<Arc<FlowTable>>,
    /// The names of its values.
    values: Vec<String>,
    /// Whether it was said that it is missing.
    is_said: bool,
}

impl Known {
    /// The tables of a configuration, each once.
    pub(super) fn all(config: &FlowsConfig) -> Vec<Self> {
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
    pub(super) fn has(&self, name: &str) -> bool {
        name == PREFIX || self.values.iter().any(|value| value == name)
    }

    /// Copies the table if it has changed; returns whether it has.
    pub(super) fn renew(
        &mut self,
        tables: &TableCopies,
        config: &FlowsConfig,
    ) -> Result<bool, String> {
        let copy = tables.copy(self.name.as_deref())?;
        if self.sequence == Some(copy.state()) {
            return Ok(false);
        }
        self.values = copy.fib().columns().names().map(str::to_owned).collect();
        self.sequence = Some(copy.state());
        self.table = prepared(copy.fib(), &self.values, config)?;
        Ok(true)
    }

    /// The table is not there, or not yet.
    pub(super) fn missing(&mut self, what: &str) {
        match &self.vrf {
            Some(vrf) if !self.is_said => {
                info!("flows of VRF {vrf} are written without values until there are some: {what}");
            }
            _ => tracing::debug!("flows are written without values yet: {what}"),
        }
        self.is_said = true;
    }
}

/// A table with those of the values that flows get, if it has any of them.
pub(super) fn prepared(
    fib: &Fib,
    values: &[String],
    config: &FlowsConfig,
) -> Result<Option<Arc<FlowTable>>, String> {
    let mut options = AnnotateOptions::default();
    options.add.clone_from(&config.add);
    if options.add.is_empty() {
        options.add.push(PREFIX.to_owned());
        options.add.extend(values.iter().cloned());
    }
    // Of several tables, each adds what it has.
    if config.has_several_tables() {
        options.add.retain(|name| name == PREFIX || values.contains(name));
    }
    if options.add.is_empty() {
        return Ok(None);
    }
    let table = FlowTable::new(fib.clone(), &options, config.format);
    Ok(Some(Arc::new(table.map_err(|error| error.to_string())?)))
}
