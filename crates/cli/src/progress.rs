//! Progress of a command: a progress bar for people, notes on standard error.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fibula_core::grouped;
use fibula_ingest::ReadProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::failure::eprint_line;
use crate::input::Position;

/// A progress bar, drawn only if standard error is a terminal.
pub struct Bar {
    bar: ProgressBar,
}

impl Bar {
    /// A bar for the source of this name.
    pub fn new(name: &str) -> Self {
        let bar = ProgressBar::no_length();
        if !io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.set_prefix(name.to_owned());
        Self { bar }
    }

    /// Shows how far reading has come.
    pub fn show(&self, progress: ReadProgress) {
        self.moved(
            progress.bytes_read,
            progress.bytes_total,
            "{prefix} {wide_bar} {bytes}/{total_bytes} {msg} {eta}",
            "{prefix} {spinner} {bytes} {msg} {elapsed}",
        );
        self.bar.set_message(format!("{} records", grouped(progress.records)));
    }

    /// Shows how many of something are done.
    pub fn show_count(&self, done: usize, of: usize) {
        let known = "{prefix} {wide_bar} {pos}/{len} {eta}";
        self.moved(done as u64, Some(of as u64), known, known);
    }

    /// Shows how far the rows of a file have come.
    pub fn show_rows(&self, progress: fibula_annotate::Progress) {
        self.moved(
            progress.rows,
            progress.total,
            "{prefix} {wide_bar} {human_pos}/{human_len} rows {per_sec} {eta}",
            "{prefix} {spinner} {human_pos} rows {per_sec} {elapsed}",
        );
    }

    /// Shows how far a transfer has come.
    pub fn show_transfer(&self, bytes: u64, of: Option<u64>) {
        self.moved(
            bytes,
            of,
            "{prefix} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}",
            "{prefix} {spinner} {bytes} {bytes_per_sec} {elapsed}",
        );
    }

    /// A bar for the rows of a file, unless they go to the same terminal.
    pub fn of_rows(name: &str, output: &Path) -> Self {
        let bar = Self::new(name);
        if output.as_os_str() == "-" && io::stdout().is_terminal() {
            bar.bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar
    }

    /// Shows how many rows there were, and by the bytes of the file how much time is left.
    pub fn show_bytes(&self, rows: u64, position: &Position) {
        if self.bar.is_hidden() {
            return;
        }
        self.moved(
            position.read(),
            position.total,
            "{prefix} {wide_bar} {bytes}/{total_bytes} {msg} {eta}",
            "{prefix} {spinner} {bytes} {msg} {elapsed}",
        );
        self.bar.set_message(format!("{} rows", grouped(rows)));
    }

    /// The first call decides the template, by whether the total is known.
    fn moved(&self, position: u64, total: Option<u64>, known: &str, unknown: &str) {
        if self.bar.is_hidden() {
            return;
        }
        if self.bar.position() == 0 {
            if let Some(total) = total {
                self.bar.set_length(total);
            }
            let template = if total.is_some() { known } else { unknown };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
        }
        self.bar.set_position(position);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Whether remarks are left out.
static SILENT: AtomicBool = AtomicBool::new(false);

/// Leaves all later remarks out: another program would take them for answers. Errors that end the command are printed.
pub fn silence() {
    SILENT.store(true, Ordering::Relaxed);
}

/// A remark on standard error about a choice, a skipped part or damage.
pub fn note(text: impl std::fmt::Display) {
    if !SILENT.load(Ordering::Relaxed) {
        eprint_line(text);
    }
}

/// A duration as milliseconds with sensible precision.
pub fn ms(time: Duration) -> String {
    let ms = time.as_secs_f64() * 1000.0;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{} ms", grouped(ms.round() as u64)) }
}
