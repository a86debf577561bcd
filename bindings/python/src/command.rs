//! The command `fibula` inside of Python.

use std::ffi::OsString;
use std::panic::catch_unwind;

use pyo3::prelude::*;

/// The exit code of a program that ended by a panic, as Rust's own `main` has it.
const PANICKED: u8 = 101;

/// Runs the command with these arguments, of which the first is the program's name, and returns its exit code. It is
/// for `python -m fibula` alone: the command takes the process's signals and its panic hook, and prints to its streams.
#[pyfunction]
pub fn run_command(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    // A panic has printed its message by then; as an exception it would end with 1, which is the answer "no".
    py.detach(|| catch_unwind(|| fibula_cli::run(arguments)).unwrap_or(PANICKED))
}
