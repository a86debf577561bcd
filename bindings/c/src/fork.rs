//! Which process this is: a child after `fork()` has none of the library's threads, and may have its locks locked.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Outcome;

/// Number of forks between the first process with a table and this one. A counter, since asking the system for the
/// number of the process takes longer than a change of a route.
static FORKS: AtomicU32 = AtomicU32::new(0);

#[cfg(unix)]
extern "C" fn in_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The process in which something was made.
#[derive(Clone, Copy)]
pub(crate) struct Process(u32);

impl Process {
    /// This one.
    pub(crate) fn this() -> Self {
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| {
            #[cfg(unix)]
            // SAFETY: the handler is a function of this library, and only adds to a number. If there is no memory for
            // it, a child is not noticed, and no other harm is done.
            unsafe {
                libc::pthread_atfork(None, None, Some(in_child));
            }
        });
        Self(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_this(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// Refuses to wait for threads and locks that a child of `fork()` does not have.
    pub(crate) fn check(self) -> Outcome<()> {
        match self.is_this() {
            true => Ok(()),
            false => Err("this process is a child of the one that made the table; make a table of its own after \
                          fork()"
                .into()),
        }
    }
}
