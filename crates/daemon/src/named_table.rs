//! Tables of files.

use fibula::sources::TableSources;
use fibula_fib::{Fib, FibOptions};
use tracing::warn;

use crate::DaemonError;

/// Opens the table of the sources with these names. Notes and damage are logged.
pub(crate) fn open(names: &[String], options: FibOptions) -> Result<Fib, DaemonError> {
    let build = TableSources { options, ..TableSources::of(names.iter().cloned()) };
    let (fib, report) = build.fib().map_err(|error| DaemonError::Table(error.into()))?;
    if report.damaged > 0 {
        warn!("{}: {} damaged records were skipped", names.join(","), report.damaged);
    }
    report.damage.iter().chain(&report.notes).for_each(|line| warn!("{line}"));
    Ok(fib)
}
