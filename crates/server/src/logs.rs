//! The log lines that clients can cause, limited by kind.

use std::time::Instant;

use fibula_feeds::LogLimit;

/// Lines of a kind that are written in a minute.
const LINES: u32 = 5;

/// One kind of line.
pub(crate) struct LineKind {
    /// Its name, for the line that counts the others.
    name: &'static str,
    limit: LogLimit,
    begin: Instant,
}

impl LineKind {
    fn new(name: &'static str) -> Self {
        Self { name, limit: LogLimit::new(LINES), begin: Instant::now() }
    }

    /// Calls `write` unless the minute has had its lines.
    pub(crate) fn line(&self, write: impl FnOnce()) {
        let Some(more) = self.limit.admit(self.begin.elapsed()) else { return };
        self.count(more);
        write();
    }

    fn count(&self, more: u64) {
        if more > 0 {
            tracing::warn!("{}: and {more} more", self.name);
        }
    }
}

/// All kinds.
pub(crate) struct Logs {
    pub(crate) refused_connection: LineKind,
    pub(crate) failed_accept: LineKind,
    pub(crate) cut_answer: LineKind,
    pub(crate) failed_copy: LineKind,
    pub(crate) failed_history: LineKind,
}

impl Default for Logs {
    fn default() -> Self {
        Self {
            refused_connection: LineKind::new("connections that were refused"),
            failed_accept: LineKind::new("connections that could not be accepted"),
            cut_answer: LineKind::new("bulk answers that were cut off"),
            failed_copy: LineKind::new("tables that could not be copied"),
            failed_history: LineKind::new("questions about the history without an answer"),
        }
    }
}

impl Logs {
    /// Writes how many lines were left out in minutes that are over.
    pub(crate) fn report(&self) {
        let Self { refused_connection, failed_accept, cut_answer, failed_copy, failed_history } =
            self;
        for kind in [refused_connection, failed_accept, cut_answer, failed_copy, failed_history] {
            kind.count(kind.limit.left_out(kind.begin.elapsed()));
        }
    }
}
