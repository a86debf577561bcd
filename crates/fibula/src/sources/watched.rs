//! Files that may be replaced while they are used.

use std::fs::{self, Metadata};
use std::path::PathBuf;

use crate::sources::Source;

/// The file of a table.
fn file(source: &Source) -> Option<PathBuf> {
    match source {
        Source::Snapshot(path) | Source::Checkpoint { path, .. } | Source::Feed(path) => {
            Some(path.clone())
        }
        Source::Embedded | Source::Generated(_) => None,
    }
}

/// The files of a table, which are replaced by new ones.
///
/// ```
/// use fibula::sources::{Source, WatchedSources};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("networks.csv");
/// # let name = path.to_str().ok_or("a name in UTF-8")?;
/// std::fs::write(name, "prefix,site\n10.0.0.0/8,old\n")?;
/// let mut files = WatchedSources::all(&Source::parse_list(&[name.to_owned()])?);
/// assert!(!files.are_new());
/// std::fs::write(name, "prefix,site\n10.0.0.0/8,newer\n")?;
/// assert!(files.are_new());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WatchedSources(Vec<WatchedFile>);

impl WatchedSources {
    /// The files as they are now.
    pub fn all(sources: &[(String, Source)]) -> Self {
        Self(sources.iter().filter_map(|(_, source)| file(source)).map(WatchedFile::new).collect())
    }

    /// Whether one of the files is another one, or has other bytes, than at the last call. A file that is missing is
    /// about to be replaced.
    pub fn are_new(&mut self) -> bool {
        // All are looked at, so that one new table has the changes of all.
        let mut is_new = false;
        for file in &mut self.0 {
            is_new |= file.is_new();
        }
        is_new
    }
}

/// A file, and what it was like when it was opened.
#[derive(Debug)]
struct WatchedFile {
    path: PathBuf,
    stamp: Option<Stamp>,
}

/// The properties of a file of which at least one changes when it is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    bytes: u64,
    changed: (i64, i64),
}

impl Stamp {
    #[cfg(unix)]
    fn new(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let file = (metadata.dev(), metadata.ino());
        // The time of the last change of the file or of its name is never set by a program.
        Self { file, bytes: metadata.len(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }

    #[cfg(not(unix))]
    fn new(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        let at = std::time::SystemTime::now().checked_sub(since);
        let at =
            at.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()).unwrap_or_default();
        Self { file: (0, 0), bytes: metadata.len(), changed: (at.as_secs() as i64, 0) }
    }
}

impl WatchedFile {
    fn new(path: PathBuf) -> Self {
        let mut file = Self { path, stamp: None };
        file.is_new();
        file
    }

    /// Whether it is another file than at the last call. A file that is missing may be about to be replaced.
    fn is_new(&mut self) -> bool {
        let Ok(metadata) = fs::metadata(&self.path) else { return false };
        let stamp = Some(Stamp::new(&metadata));
        let is_new = self.stamp != stamp;
        self.stamp = stamp;
        is_new
    }
}
