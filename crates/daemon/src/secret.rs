//! Secrets in files: tokens and passwords, each the first line of its file.

use std::fs;
use std::path::Path;

use crate::config::{ConfigError, Problem};

/// Reads the secret in a file that the setting of this name gives.
///
/// # Errors
/// If the file cannot be read, or its first line is empty.
pub fn first_line(setting: &'static str, file: &Path) -> Result<String, ConfigError> {
    let error = |problem| ConfigError::from(problem).in_file(file);
    let text = fs::read_to_string(file)
        .map_err(|source| error(Problem::Unreadable { setting, error: source }))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(error(Problem::EmptySecret { setting })),
    }
}
