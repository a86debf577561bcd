//! Secrets in files: the server and those who ask it read them in the same way.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// The secret in a file that this setting names.
pub fn first_line(setting: &str, file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::io(format_args!("{setting} {}", file.display()), &error))?;
    match text.lines().next().map(str::trim) {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => {
            Err(Failure::new(format_args!("{setting} {}: its first line is empty", file.display())))
        }
    }
}
