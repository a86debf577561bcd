//! The `fibula` command as a program of its own; all of it is in the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(fibula_cli::run(std::env::args_os()))
}
