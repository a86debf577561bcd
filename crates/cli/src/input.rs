//! Files and standard input that commands read themselves, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::Failure;

/// Opens the file, `-` for standard input, and undoes its compression.
pub fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    let fail = |error| Failure::io(path.display(), &error);
    let raw: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        Box::new(File::open(path).map_err(fail)?)
    };
    let (_, reader) = fibula_ingest::decompress(raw).map_err(fail)?;
    Ok(reader)
}

/// Everything that the reader gives.
pub fn read_all(mut input: impl Read, path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| Failure::io(path.display(), &error))?;
    Ok(bytes)
}
