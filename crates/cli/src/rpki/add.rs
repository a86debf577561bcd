//! `--rpki FILE`: adds the validity of routes as columns of a table.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use fibula_core::grouped;
use fibula_rib::{Loading, SourceRecord, Table};
use fibula_rpki::{RpkiError, VrpFile, Vrps};

use crate::failure::Failure;
use crate::fetch;
use crate::progress::note;
use crate::same;
use crate::source::{self, ReadArgs};
use crate::table;

/// Options for adding validity to a table.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Route origin validation")]
pub struct RpkiArgs {
    /// Add the columns rpki (valid, invalid-origin, invalid-length, not-found) and rpki_vrps (the VRPs that cover the
    /// prefix), computed from the VRPs in this file: JSON or CSV of routinator or rpki-client. Repeatable
    #[arg(long, value_name = "VRPS,...", conflicts_with = "layer")]
    pub rpki: Vec<String>,
    /// The column with the AS that originates each route
    #[arg(long, value_name = "COLUMN", default_value = fibula_rpki::ORIGIN, hide_default_value = true)]
    #[arg(requires = "rpki")]
    pub origin: String,
}

impl RpkiArgs {
    /// Whether columns are added.
    pub fn is_requested(&self) -> bool {
        !self.rpki.is_empty()
    }

    /// Refuses VRPs from standard input if it is already used for something else.
    pub fn check_input(&self, is_taken: bool) -> Result<(), Failure> {
        match is_taken && files(&self.rpki).iter().any(|path| path.as_os_str() == "-") {
            true => Err(Failure::new("standard input cannot be both the VRPs and something else")
                .hint("give the VRPs as a file")),
            false => Ok(()),
        }
    }

    /// Refuses an output that is also a file of VRPs.
    pub fn refuse(&self, output: &Path) -> Result<(), Failure> {
        refuse(&self.rpki, output)
    }

    /// Reads the table with the added columns. A snapshot is read, not mapped, because the file is not checked for
    /// changes afterwards.
    pub fn load(&self, sources: &[String], read: &ReadArgs) -> Result<Table, Failure> {
        let mut read = read.clone();
        if read.load == Loading::Auto {
            read.load = Loading::Read;
        }
        let loaded = table::load_aloud(&source::parse_list(sources, &read)?, &read)?;
        self.add(loaded.table, read.allow_empty)
    }

    /// The table, with the columns if they are requested.
    pub fn add(&self, table: Table, allow_empty: bool) -> Result<Table, Failure> {
        if !self.is_requested() {
            return Ok(table);
        }
        let (vrps, records) = read(&self.rpki, allow_empty)?;
        report_renamed(&table);
        let mut table = fibula_rpki::add_columns(&table, &vrps, &self.origin)?;
        table.provenance.sources.extend(records);
        Ok(table)
    }
}

/// Reports the table's own columns that have the names of the added ones.
pub fn report_renamed(table: &Table) {
    for (before, after) in fibula_rpki::renamed_columns(&table.columns) {
        note(format_args!("column {before} of the table is called {after} beside the validity"));
    }
}

/// Refuses an output that is also one of the files.
pub fn refuse(names: &[String], output: &Path) -> Result<(), Failure> {
    files(names).iter().try_for_each(|path| same::refuse(path, output))
}

/// Reads files of VRPs into one set, and returns their provenance records with it.
pub fn read(names: &[String], allow_empty: bool) -> Result<(Vrps, Vec<SourceRecord>), Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let files = fetch::vrps(files(names))?;
    Ok(fibula_rpki::read_all(&files, allow_empty, |file| report_expired(file, now))?)
}

/// Reports expired VRPs. They are used all the same, because an old file of VRPs belongs to tables of its time.
fn report_expired(file: &VrpFile, now: u64) {
    let expired = file.expired(now) as u64;
    if expired > 0 {
        let (expired, all) = (grouped(expired), grouped(file.decoded.vrps.len() as u64));
        note(format_args!("{}: {expired} of {all} VRPs have expired; they are used", file.name));
    }
}

/// The files in comma-separated lists. If a file has exactly this name, commas included, the name is not split.
fn files(names: &[String]) -> Vec<PathBuf> {
    let split = |name: &String| -> Vec<PathBuf> {
        match Path::new(name).exists() {
            true => vec![name.into()],
            false => name.split(',').map(Into::into).collect(),
        }
    };
    names.iter().flat_map(split).collect()
}

impl From<RpkiError> for Failure {
    fn from(error: RpkiError) -> Self {
        let failure = Self::new(&error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
