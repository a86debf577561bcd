//! The tables of a checkpoint, for programs that use one of them and do not go on with the feed.

use std::path::{Path, PathBuf};

use super::restore::{META, restore};
use crate::snapshot::SnapshotErrorKind;
use crate::{Preference, Rib, Snapshot, SnapshotError, Table};

/// Maximum number of tables that an error names.
const NAMED: usize = 20;

/// The file and the table of a name such as `rib.fib#bmp/pre-policy`, which chooses a table of a checkpoint. `None` if
/// a file has this name, or there is none with the name before the `#`.
pub fn table_choice(name: &Path) -> Option<(PathBuf, String)> {
    let (file, table) = name.to_str()?.split_once('#')?;
    let is_choice = !table.is_empty() && Path::new(file).is_file() && !name.exists();
    is_choice.then(|| (file.into(), table.to_owned()))
}

impl Snapshot {
    /// The table with this name in a checkpoint, with its best routes.
    ///
    /// # Errors
    /// If the file cannot be read, is no checkpoint, or has no table of this name; the text names the tables.
    pub fn open_checkpoint_table(path: &Path, table: &str) -> Result<Table, SnapshotError> {
        let open = || {
            let rib = restore(&Self::open(path)?, Preference::default())?.rib;
            match rib.find_vrf(table) {
                Some(vrf) => {
                    let made = rib.freeze(vrf).table();
                    made.map_err(|error| SnapshotError::invalid(error.to_string()))
                }
                None => Err(choose(format!("there is no table {table:?}; {}", tables(&rib)))),
            }
        };
        open().map_err(|error: SnapshotError| error.in_file(path))
    }

    /// Refuses a checkpoint of which no table is chosen, if its first one is empty and others are not: an empty table
    /// would answer every question, and wrongly.
    ///
    /// # Errors
    /// The names of the other tables.
    pub fn chosen(self) -> Result<Self, SnapshotError> {
        let has_routes = !self.family::<u32>().is_empty() || !self.family::<u128>().is_empty();
        if has_routes || self.sections().all(|(name, _)| name != META) {
            return Ok(self);
        }
        match restore(&self, Preference::default()) {
            Ok(restored) if !restored.rib.is_empty() => {
                Err(choose(format!("its first table is empty; {}", tables(&restored.rib))))
            }
            _ => Ok(self),
        }
    }
}

fn choose(reason: String) -> SnapshotError {
    SnapshotError::new(SnapshotErrorKind::Choice, reason)
}

/// The tables that have routes.
fn tables(rib: &Rib) -> String {
    let routes = |vrf| rib.len::<u32>(vrf) + rib.len::<u128>(vrf);
    let text = |vrf| {
        let name = rib.vrf_name(vrf).map_or_else(|| vrf.to_string(), ToString::to_string);
        format!("{name} ({} routes)", routes(vrf))
    };
    let all: Vec<_> = rib.vrfs().filter(|&vrf| routes(vrf) > 0).collect();
    let named: Vec<String> = all.iter().take(NAMED).map(|&vrf| text(vrf)).collect();
    let more = match all.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the checkpoint has {}{more}", named.join(", "))
}
