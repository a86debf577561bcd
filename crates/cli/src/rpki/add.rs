//! `--rpki FILE` and `--aspa FILE`: adds the validity of routes as columns of a table.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use fibula_core::grouped;
use fibula_rib::{Loading, SourceRecord, Table};
use fibula_rpki::{RpkiError, VrpFile, Vrps};

use super::aspa::AspaArgs;
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
    #[command(flatten)]
    pub aspa: AspaArgs,
}

impl RpkiArgs {
    /// Whether columns are added.
    pub fn is_requested(&self) -> bool {
        !self.rpki.is_empty() || self.aspa.is_requested()
    }

    /// Refuses what cannot be combined: standard input for two things, of which `is_taken` says that it is one already,
    /// and layers, whose routes are parts of routes.
    pub fn check(&self, is_taken: bool, layers: &[String]) -> Result<(), Failure> {
        if self.aspa.is_requested() && !layers.is_empty() {
            return Err(Failure::new("--aspa cannot be used with --layer")
                .hint("build the layer with --aspa, and give that snapshot as the layer"));
        }
        match usize::from(is_taken) + inputs(&self.rpki) + self.aspa.inputs() {
            0 | 1 => Ok(()),
            _ => Err(Failure::new("standard input cannot be both the VRPs and something else")
                .hint("give the VRPs as a file")),
        }
    }

    /// Refuses an output that is also a file of VRPs.
    pub fn refuse(&self, output: &Path) -> Result<(), Failure> {
        refuse(&self.rpki, output)?;
        self.aspa.refuse(output)
    }

    /// The options for reading the table: with paths, if they are verified.
    pub fn reading(&self, read: &ReadArgs) -> ReadArgs {
        let mut read = read.clone();
        read.as_path |= self.aspa.is_requested();
        read
    }

    /// Reads the table with the added columns. A snapshot is read, not mapped, because the file is not checked for
    /// changes afterwards.
    pub fn load(&self, sources: &[String], read: &ReadArgs) -> Result<Table, Failure> {
        let mut read = self.reading(read);
        if read.load == Loading::Auto {
            read.load = Loading::Read;
        }
        let loaded = table::load_aloud(&source::parse_list(sources, &read)?, &read)?;
        self.add(loaded.table, read.allow_empty)
    }

    /// The table, with the columns if they are requested.
    pub fn add(&self, mut table: Table, allow_empty: bool) -> Result<Table, Failure> {
        if !self.rpki.is_empty() {
            let (vrps, records) = read(&self.rpki, allow_empty)?;
            report_renamed(&table);
            table = fibula_rpki::add_columns(&table, &vrps, &self.origin)?;
            table.provenance.sources.extend(records);
        }
        if self.aspa.is_requested() {
            let verifier = self.aspa.read(allow_empty)?;
            table = verifier.add(table)?;
            table.provenance.sources.extend(verifier.files);
        }
        Ok(table)
    }
}

/// How often these files are standard input.
pub fn inputs(names: &[String]) -> usize {
    files(names).iter().filter(|path| path.as_os_str() == "-").count()
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
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
    let now = now();
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
pub fn files(names: &[String]) -> Vec<PathBuf> {
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
