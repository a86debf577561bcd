//! `--aspa FILE`: adds the validity of AS paths as a column of a table.

use std::path::{Path, PathBuf};

use clap::Args;
use fibula_core::grouped;
use fibula_rib::{SourceRecord, Table};
use fibula_rpki::{Aspas, ReceivedFrom, Relations};

use super::add;
use crate::failure::Failure;
use crate::fetch;
use crate::progress::note;
use crate::same;

/// Options for verifying AS paths.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Verification of AS paths")]
pub struct AspaArgs {
    /// Add the column aspa (valid, invalid, unknown), the result of verifying the AS path with the ASPAs in this file:
    /// JSON of rpki-client or routinator. AS paths are kept as with --as-path. Repeatable
    #[arg(long, value_name = "ASPAS,...")]
    pub aspa: Vec<String>,
    /// From whom the routes were received: customer, peer, route-server, provider (also for collectors, whose peers
    /// send all routes), or unknown: then a path is valid or invalid only if it is so for all of these
    #[arg(long, value_name = "RELATION", default_value_t, hide_default_value = true)]
    #[arg(requires = "aspa")]
    pub received_from: ReceivedFrom,
    /// From whom the routes of some peers were received: a file of lines such as 64500,provider. --received-from is for
    /// the other peers
    #[arg(long, value_name = "FILE", requires = "aspa")]
    pub relations: Option<PathBuf>,
}

/// What paths are verified with.
pub struct Verifier {
    pub aspas: Aspas,
    pub files: Vec<SourceRecord>,
    relations: Relations,
}

impl AspaArgs {
    /// Whether the column is added.
    pub fn is_requested(&self) -> bool {
        !self.aspa.is_empty()
    }

    /// How often standard input is read.
    pub fn inputs(&self) -> usize {
        let relations = self.relations.iter().filter(|path| path.as_os_str() == "-").count();
        relations + add::inputs(&self.aspa)
    }

    /// Refuses an output that is also one of the files.
    pub fn refuse(&self, output: &Path) -> Result<(), Failure> {
        add::refuse(&self.aspa, output)?;
        self.relations.iter().try_for_each(|path| same::refuse(path, output))
    }

    /// Reads the files.
    pub fn read(&self, allow_empty: bool) -> Result<Verifier, Failure> {
        let relations = match &self.relations {
            Some(path) => Relations::read(path, self.received_from)?,
            None => Relations::all(self.received_from),
        };
        let now = add::now();
        let files = fetch::vrps(add::files(&self.aspa))?;
        let (aspas, files) = fibula_rpki::read_all_aspas(&files, allow_empty, |file| {
            let expired = file.expired(now) as u64;
            if expired > 0 {
                let (expired, all) = (grouped(expired), grouped(file.decoded.aspas.len() as u64));
                let name = &file.name;
                note(format_args!("{name}: {expired} of {all} ASPAs have expired; they are used"));
            }
        })?;
        Ok(Verifier { aspas, files, relations })
    }
}

impl Verifier {
    /// The table with the column.
    pub fn add(&self, table: Table) -> Result<Table, Failure> {
        if let Some((before, after)) = fibula_rpki::renamed_path_column(&table.columns) {
            note(format_args!(
                "column {before} of the table is called {after} beside the validity"
            ));
        }
        Ok(fibula_rpki::add_path_column(table, &self.aspas, &self.relations)?)
    }
}
