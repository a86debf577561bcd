//! Own tables of files, whose values win over those of the server's tables.

use std::sync::Arc;

use fibula::sources::{Source, WatchedSources};
use fibula_collect::FlowTable;
use fibula_fib::FibOptions;
use tracing::{info, warn};

use super::tables::prepared;
use crate::config::FlowsConfig;
use crate::{DaemonError, named_table};

/// The tables of files, in the order of the configuration.
pub(crate) struct OwnFiles(Vec<OwnFile>);

struct OwnFile {
    name: String,
    watched: WatchedSources,
    read: OwnTable,
}

/// What a file had when it was read.
#[derive(Clone)]
pub(super) struct OwnTable {
    table: Option<Arc<FlowTable>>,
    /// The names of its values.
    values: Vec<String>,
}

impl OwnFiles {
    /// Reads all files. Their values fit together.
    pub(crate) fn read(config: &FlowsConfig) -> Result<Self, DaemonError> {
        let files = config.own.iter().map(|name| OwnFile::read(name, config));
        let files = Self(files.collect::<Result<_, _>>()?);
        match FlowTable::with_own(&files.tables(), None) {
            Ok(_) => Ok(files),
            Err(error) => Err(DaemonError::Table(format!("flows.own: {error}").into())),
        }
    }

    /// Reads the files that were replaced; returns the tables before, if there are new ones. An old table stays if its
    /// file cannot be read.
    pub(super) fn renew(&mut self, config: &FlowsConfig) -> Option<Vec<OwnTable>> {
        let before: Vec<_> = self.0.iter().map(|file| file.read.clone()).collect();
        let mut is_new = false;
        for file in &mut self.0 {
            if !file.watched.are_new() {
                continue;
            }
            match OwnFile::read(&file.name, config) {
                Ok(new) => {
                    info!("{} was replaced, and is read again for flows", file.name);
                    *file = new;
                    is_new = true;
                }
                Err(error) => {
                    warn!(
                        "the new {} is not used for flows, the old one stays: {error}",
                        file.name
                    );
                }
            }
        }
        is_new.then_some(before)
    }

    /// Takes tables back, until their files are replaced again.
    pub(super) fn take_back(&mut self, before: Vec<OwnTable>) {
        for (file, before) in self.0.iter_mut().zip(before) {
            file.read = before;
        }
    }

    /// The tables that add something.
    pub(super) fn tables(&self) -> Vec<Arc<FlowTable>> {
        self.0.iter().filter_map(|file| file.read.table.clone()).collect()
    }

    /// Whether one of them has a value of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|file| file.read.values.iter().any(|value| value == name))
    }
}

impl OwnFile {
    fn read(name: &str, config: &FlowsConfig) -> Result<Self, DaemonError> {
        let names = [name.to_owned()];
        let failed = |error| DaemonError::Table(error);
        // What changes while it is read is seen at the next look.
        let sources = Source::parse_list(&names).map_err(|error| failed(error.into()))?;
        let watched = WatchedSources::all(&sources);
        let fib = named_table::open(&names, FibOptions::default())?;
        let values: Vec<_> = fib.columns().names().map(str::to_owned).collect();
        let table = prepared(&fib, &values, config)
            .map_err(|what| failed(format!("flows.own {name}: {what}").into()))?;
        Ok(Self { name: name.to_owned(), watched, read: OwnTable { table, values } })
    }
}
