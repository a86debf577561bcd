//! Open tables by the name of their file.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::{Fib, FibError};

/// What tells one file from the next one of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Stamp {
    fn of(path: &Path) -> std::io::Result<Self> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let inode = 0;
        Ok(Self { bytes: metadata.len(), modified: metadata.modified().ok(), inode })
    }
}

#[derive(Debug)]
struct Opened<T> {
    name: String,
    stamp: Stamp,
    table: Arc<T>,
}

/// Tables that stay open, for a host whose queries name the file of a snapshot in each call.
///
/// A table is used until its file is replaced; then the next call opens the new one. The table that was not asked for
/// the longest is forgotten for a new name; whoever still has it keeps it. `T` is what the host makes of a table.
///
/// ```
/// # use fibula_core::{Hop, Routes};
/// # use fibula_fib::{Fib, FibOptions, OpenTables};
/// # use fibula_rib::Table;
/// static OPEN: OpenTables<Fib> = OpenTables::new(64);
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.fib");
/// # let v4: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(0))].into_iter().collect();
/// # Fib::of_table(Table::from_routes(v4, Routes::default()), &FibOptions::default())?.write(&path)?;
/// # let name = path.to_str().expect("UTF-8");
/// let table = OPEN.open(name, |fib| fib)?; // `name` is the path of a snapshot
/// assert!(table.lookup("10.1.2.3".parse()?).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenTables<T> {
    most: usize,
    /// The one used last at the end.
    open: Mutex<Vec<Opened<T>>>,
}

impl<T> OpenTables<T> {
    /// None yet; at most so many will stay open, and at least one.
    pub const fn new(most: usize) -> Self {
        Self { most, open: Mutex::new(Vec::new()) }
    }

    /// The table of a snapshot file, or of a checkpoint with the table's name behind a `#`.
    ///
    /// # Errors
    /// Those of [`Fib::open`]. A file that cannot be read is an error also if its table is open.
    pub fn open(&self, name: &str, made: impl FnOnce(Fib) -> T) -> Result<Arc<T>, FibError> {
        // `rib.fib#bmp/pre-policy` names a table in a checkpoint.
        let file = match Path::new(name).exists() {
            true => name,
            false => name.rsplit_once('#').map_or(name, |(file, _)| file),
        };
        // Without a file, opening says what is wrong.
        let stamp = Stamp::of(Path::new(file)).ok();
        // Held while a table is opened: all threads of a query need the same one.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|opened| opened.name == name) {
            let opened = open.remove(at);
            if Some(opened.stamp) == stamp {
                let table = Arc::clone(&opened.table);
                open.push(opened);
                return Ok(table);
            }
        }
        let table = Arc::new(made(Fib::open(name)?));
        if let Some(stamp) = stamp {
            if open.len() >= self.most.max(1) {
                open.remove(0);
            }
            open.push(Opened { name: name.to_owned(), stamp, table: Arc::clone(&table) });
        }
        Ok(table)
    }
}
