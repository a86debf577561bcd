//! The log for operators: one line for each event, on standard error.

use std::io::IsTerminal;

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line of text an event.
    #[default]
    Text,
    /// A JSON object an event.
    Json,
}

/// Writes events to standard error from here on.
pub fn begin(format: LogFormat, level: LevelFilter) {
    // The library reports a failed write by `eprintln!`, which panics if nobody reads standard error any more. That
    // would end the thread whose event it is.
    let lines = fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
    let lines = lines.log_internal_errors(false);
    // A second subscriber in one process is a test's; the first one stays.
    let _ = match format {
        LogFormat::Text => tracing::subscriber::set_global_default(
            lines.with_ansi(std::io::stderr().is_terminal()).finish(),
        ),
        LogFormat::Json => {
            tracing::subscriber::set_global_default(lines.json().flatten_event(true).finish())
        }
    };
}
