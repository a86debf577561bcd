//! Notifications of the system about changes in a folder.

use std::io;
use std::path::Path;
use std::time::Duration;

use mio::{Registry, Token};

/// The changes since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Files that were renamed into the folder, or closed by their writer.
    pub(super) complete: Vec<String>,
    /// Whether there was any notification.
    pub(super) any: bool,
    /// Whether the folder itself is no longer there.
    pub(super) is_gone: bool,
}

#[cfg(target_os = "linux")]
mod system {
    use std::mem::MaybeUninit;
    use std::os::fd::{AsRawFd, OwnedFd};

    use mio::Interest;
    use mio::unix::SourceFd;
    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
    use rustix::io::Errno;

    use super::*;

    /// inotify.
    pub(crate) struct Watch(OwnedFd);

    impl Watch {
        /// The folder is looked at after this time even without a notification.
        pub(crate) const BLIND: Option<Duration> = None;

        pub(crate) fn new(folder: &Path, registry: &Registry, token: Token) -> io::Result<Self> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            let flags = WatchFlags::CLOSE_WRITE
                | WatchFlags::MOVED_TO
                | WatchFlags::CREATE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            inotify::add_watch(&fd, folder, flags)?;
            registry.register(&mut SourceFd(&fd.as_raw_fd()), token, Interest::READABLE)?;
            Ok(Self(fd))
        }

        pub(crate) fn close(self, registry: &Registry) {
            // The watch ends with the descriptor at the latest.
            let _ = registry.deregister(&mut SourceFd(&self.0.as_raw_fd()));
        }

        pub(crate) fn read(&mut self) -> io::Result<Seen> {
            let mut seen = Seen::default();
            let mut buffer = [MaybeUninit::uninit(); 4096];
            let mut reader = inotify::Reader::new(&self.0, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::WOULDBLOCK) => return Ok(seen),
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                };
                seen.any = true;
                let what = event.events();
                let gone = ReadFlags::DELETE_SELF
                    | ReadFlags::MOVE_SELF
                    | ReadFlags::UNMOUNT
                    | ReadFlags::IGNORED;
                seen.is_gone |= what.intersects(gone);
                if what.intersects(ReadFlags::CLOSE_WRITE | ReadFlags::MOVED_TO)
                    && let Some(name) = event.file_name().and_then(|name| name.to_str().ok())
                {
                    seen.complete.push(name.to_owned());
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::*;

    /// Reports no changes: the folder is looked at from time to time.
    pub(crate) struct Watch;

    impl Watch {
        pub(crate) const BLIND: Option<Duration> = Some(Duration::from_secs(5));

        pub(crate) fn new(_: &Path, _: &Registry, _: Token) -> io::Result<Self> {
            Ok(Self)
        }

        pub(crate) fn close(self, _: &Registry) {}

        pub(crate) fn read(&mut self) -> io::Result<Seen> {
            Ok(Seen::default())
        }
    }
}

pub(super) use system::Watch;
