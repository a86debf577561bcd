//! Open tables, by the name that a query gives.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fibula_fib::Fib;

/// How many tables stay open. A column of more names costs an opening for each change of the name.
const MOST: usize = 64;

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

struct Opened {
    name: String,
    stamp: Stamp,
    table: Arc<Fib>,
}

/// The open tables, the one used last at the end.
static OPEN: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

/// The table of a snapshot file. An open table is used until the file is replaced.
pub fn open(name: &str) -> Result<Arc<Fib>, String> {
    // `rib.fib#bmp/pre-policy` names a table in a checkpoint.
    let file = match Path::new(name).exists() {
        true => name,
        false => name.rsplit_once('#').map_or(name, |(file, _)| file),
    };
    let stamp = Stamp::of(Path::new(file)).map_err(|error| format!("{name}: {error}"))?;
    // Held while a table is opened: all threads of a query need the same one.
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = open.iter().position(|opened| opened.name == name) {
        let opened = open.remove(at);
        if opened.stamp == stamp {
            let table = Arc::clone(&opened.table);
            open.push(opened);
            return Ok(table);
        }
    }
    let table = Fib::open(name).map_err(|error| error.to_string())?;
    let table = Arc::new(table);
    if open.len() >= MOST {
        open.remove(0);
    }
    open.push(Opened { name: name.to_owned(), stamp, table: Arc::clone(&table) });
    Ok(table)
}
