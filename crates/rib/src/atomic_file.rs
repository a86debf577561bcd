use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that appears whole or not at all.
///
/// What is written goes to a temporary file in the same directory; [`commit`](Self::commit) syncs it
/// and renames it over the target. Dropped before that, it leaves the target as it was. Programs that
/// have the old file open keep it. A symbolic link is followed, and the mode of the file that is
/// replaced is kept. What is no regular file, such as `/dev/null` or a pipe, is written to directly.
///
/// ```
/// use std::io::Write;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("result.csv");
/// let mut file = fibula_rib::AtomicFile::create(&path)?;
/// file.write_all(b"addr,country\n")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"addr,country\n");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Temporary {
        file: NamedTempFile,
        target: PathBuf,
    },
    /// What cannot be replaced by another file.
    Special(File),
}

impl AtomicFile {
    /// Begins to write the file.
    ///
    /// # Errors
    /// If the path is a directory, or if the operating system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        // Through a link, the file that it points to is what is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let permissions = match fs::metadata(&target) {
            Ok(old) if old.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(old) if !old.is_file() => {
                let file = OpenOptions::new().write(true).open(&target)?;
                return Ok(Self { inner: Inner::Special(file) });
            }
            Ok(old) => Some(old.permissions()),
            Err(_) => None,
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".fibula-").suffix(".tmp");
        // What any new file gets, less the process's mask; the library's default is private.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(directory(&target))?;
        if let Some(permissions) = permissions {
            // The old file may belong to somebody else; its mode is a courtesy, not a promise.
            let _ = file.as_file().set_permissions(permissions);
        }
        Ok(Self { inner: Inner::Temporary { file, target } })
    }

    /// Puts the file in its place, read-only for everybody: whoever maps it may rely on its content.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn commit_read_only(self) -> io::Result<()> {
        if let Inner::Temporary { file, .. } = &self.inner {
            let mut permissions = file.as_file().metadata()?.permissions();
            permissions.set_readonly(true);
            file.as_file().set_permissions(permissions)?;
        }
        self.commit()
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// If the operating system refuses; the target is as it was.
    pub fn commit(self) -> io::Result<()> {
        let Inner::Temporary { file, target } = self.inner else { return Ok(()) };
        file.as_file().sync_all()?;
        file.persist(&target)?;
        // The rename is on disk only when the directory is. Some file systems cannot sync those.
        if let Ok(directory) = File::open(directory(&target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Temporary { file, .. } => file.as_file_mut().write(bytes),
            Inner::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the file lies.
fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_committed_leaves_no_trace() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    }

    #[test]
    fn a_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let error = AtomicFile::create(directory.path()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
        assert!(AtomicFile::create(&directory.path().join("missing/file")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn new_files_are_as_readable_as_any() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let (ours, any) = (directory.path().join("ours"), directory.path().join("any"));
        AtomicFile::create(&ours).unwrap().commit().unwrap();
        File::create(&any).unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&any));
    }
}
