//! Finds the real target of an output name.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::directory;

/// The target of a path.
pub(super) enum Target {
    /// An entry of a directory, or where one will be.
    Entry(PathBuf),
    /// An open descriptor of this process. Its file may have a name, but the opener expects the bytes in that file and
    /// not in a new file under the name.
    Open(File),
}

/// Maximum length of a chain of links, as on Linux.
const LINKS: usize = 40;

/// Follows links. The last of them may point to a file that is not there yet.
pub(super) fn resolve(path: &Path) -> io::Result<Target> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Some(file) = descriptor(&path)? {
            return Ok(Target::Open(file));
        }
        match fs::read_link(&path) {
            // Relative to the link's folder; an absolute one replaces all of it.
            Ok(next) => path = directory(&path).join(next),
            // No link: an ordinary file, or none yet.
            Err(_) => return Ok(Target::Entry(path)),
        }
    }
    Err(io::Error::other("too many symbolic links, one after the other"))
}

/// The file behind a path such as `/dev/fd/3`.
#[cfg(unix)]
fn descriptor(path: &Path) -> io::Result<Option<File>> {
    use std::os::fd::AsFd;

    let Some(number) = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()) else {
        return Ok(None);
    };
    // On Linux `/dev/fd` is a link to `/proc/self/fd`, the directory of the process or of a thread.
    let Ok(directory) = fs::canonicalize(directory(path)) else { return Ok(None) };
    if directory != Path::new("/dev/fd")
        && !(directory.starts_with("/proc") && directory.ends_with("fd"))
    {
        return Ok(None);
    }
    let ours = directory == Path::new("/dev/fd")
        || directory.starts_with(format!("/proc/{}", std::process::id()));
    Ok(Some(match number {
        1 if ours => io::stdout().as_fd().try_clone_to_owned()?.into(),
        2 if ours => io::stderr().as_fd().try_clone_to_owned()?.into(),
        // Opened again, writing would begin at the first byte and overwrite the content.
        _ => File::options().append(true).open(path)?,
    }))
}

#[cfg(not(unix))]
fn descriptor(_: &Path) -> io::Result<Option<File>> {
    Ok(None)
}

/// Gives a file the mode and the owner of the one that it will replace. Without permission to change the owner, the
/// file keeps the user's own: this is best effort.
pub(super) fn keep_owner_and_mode(file: &File, old: &Metadata) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        if let Ok(new) = file.metadata()
            && (new.uid(), new.gid()) != (old.uid(), old.gid())
            && fchown(file, Some(old.uid()), Some(old.gid())).is_err()
        {
            let _ = fchown(file, None, Some(old.gid()));
        }
    }
    // The mode is set after the owner, because changing the owner clears some of its bits.
    let _ = file.set_permissions(old.permissions());
}
