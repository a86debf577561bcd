//! Files that are written completely or not at all.

mod target;
mod unfinished;

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use target::Target;
pub use unfinished::remove_unfinished;
use unfinished::{PREFIX, SUFFIX, Unfinished, remove_stale};

/// A file that is written completely or not at all.
///
/// Data go to a temporary file in the same directory. [`commit`](Self::commit) syncs it and renames it to the target.
/// If it is dropped before, the target stays unchanged. Programs that have the old file open keep it. Symbolic links
/// are followed, even if their target does not exist yet. The mode and, if the system allows it, the owner of a
/// replaced file are kept. A read-only file is not replaced.
///
/// Targets that are not directory entries (`/dev/stdout` and other names of open descriptors), or not regular files
/// (`/dev/null`, a pipe), are written directly.
///
/// A killed process leaves its temporary file behind, and the next one that writes into the same directory removes
/// it. [`remove_unfinished`] is for processes that can still remove theirs.
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
    Temporary(Temporary),
    /// A target that cannot be replaced by another file.
    Special(File),
}

#[derive(Debug)]
struct Temporary {
    // Dropped in this order: a file is on the list of the unfinished as long as it exists.
    file: NamedTempFile,
    listed: Unfinished,
    target: PathBuf,
    /// The file is read-only once it is in its place.
    read_only: bool,
}

impl AtomicFile {
    /// Begins writing the file.
    ///
    /// # Errors
    /// If the path is a directory, the existing file is read-only, or an I/O operation fails.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::begin(path, None)
    }

    /// Like [`create`](Self::create), but the finished file is read-only, so that others can map it. It replaces a
    /// read-only file only if that file also begins with `magic`.
    ///
    /// # Errors
    /// The errors of [`create`](Self::create).
    pub fn create_read_only(path: &Path, magic: &[u8]) -> io::Result<Self> {
        Self::begin(path, Some(magic))
    }

    fn begin(path: &Path, magic: Option<&[u8]>) -> io::Result<Self> {
        let target = match target::resolve(path)? {
            Target::Open(file) => return Ok(Self { inner: Inner::Special(file) }),
            Target::Entry(target) => target,
        };
        let old = match fs::metadata(&target) {
            Ok(old) if old.is_dir() => return Err(ErrorKind::IsADirectory.into()),
            Ok(old) if !old.is_file() => {
                let file = File::options().write(true).open(&target)?;
                return Ok(Self { inner: Inner::Special(file) });
            }
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if old.as_ref().is_some_and(|old| old.permissions().readonly())
            && !magic.is_some_and(|magic| begins_with(&target, magic))
        {
            return Err(io::Error::new(
                ErrorKind::PermissionDenied,
                "the file is read-only, so it is not replaced: remove it, or make it writable",
            ));
        }
        let directory = directory(&target);
        remove_stale(directory);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX).suffix(SUFFIX);
        let (file, listed) = loop {
            let (listed, file) = Unfinished::begin(|| builder.make_in(directory, new_file))?;
            if unfinished::claim(file.as_file())? {
                break (file, listed);
            }
        };
        if let Some(old) = old {
            target::keep_owner_and_mode(file.as_file(), &old);
        }
        let read_only = magic.is_some();
        Ok(Self { inner: Inner::Temporary(Temporary { file, listed, target, read_only }) })
    }

    /// Moves the file to its target.
    ///
    /// # Errors
    /// If an I/O operation fails. The target is then unchanged.
    pub fn commit(self) -> io::Result<()> {
        let Inner::Temporary(Temporary { file, listed, target, read_only }) = self.inner else {
            return Ok(());
        };
        if read_only {
            let mut permissions = file.as_file().metadata()?.permissions();
            permissions.set_readonly(true);
            file.as_file().set_permissions(permissions)?;
        }
        file.as_file().sync_all()?;
        listed.end(|| file.persist(&target))?;
        // The rename is on disk only after the directory is synced, which some file systems do not support.
        if let Ok(directory) = File::open(directory(&target)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.inner {
            Inner::Temporary(temporary) => temporary.file.as_file_mut().write(bytes),
            Inner::Special(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Creates the file with the permissions that any new file gets, less the process's mask. (`Builder::tempfile_in` makes
/// it private, and its errors contain the random name instead of the system's error number.)
fn new_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).open(path)
}

/// The path of the file.
fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn begins_with(path: &Path, magic: &[u8]) -> bool {
    let mut head = Vec::with_capacity(magic.len());
    File::open(path).and_then(|file| file.take(magic.len() as u64).read_to_end(&mut head)).is_ok()
        && head == magic
}

#[cfg(test)]
mod tests;
