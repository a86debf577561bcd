//! Secrets in files: tokens and passwords, each the first line of its file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use fibula_ingest::bounded;

use crate::config::{ConfigError, Problem};

/// Maximum number of bytes of a secret.
const LONGEST: u64 = 4096;

/// Reads the secret in a file that the setting of this name gives.
///
/// # Errors
/// If the file cannot be read, or its first line is empty or longer than 4096 bytes.
pub fn first_line(setting: &'static str, file: &Path) -> Result<String, ConfigError> {
    let error = |problem| ConfigError::from(problem).in_file(file);
    let mut line = String::new();
    File::open(file)
        .and_then(|file| BufReader::new(bounded(file, LONGEST)).read_line(&mut line))
        .map_err(|source| error(Problem::Unreadable { setting, error: source }))?;
    match line.trim() {
        line if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(error(Problem::EmptySecret { setting })),
    }
}
