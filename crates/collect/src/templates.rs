//! The file that keeps what exporters announced over a restart: what each decoder has saved, with its length before it.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use fibula_flows::FlowDecoder;
use fibula_rib::AtomicFile;

use crate::CollectError;
use crate::sync::{Mutex, lock};

/// The longest file that is read.
const LONGEST: u64 = 1 << 30;

/// Gives all decoders what the file has: which exporter comes to which decoder is the system's choice.
pub(crate) fn load(path: &Path, decoders: &mut [FlowDecoder]) -> Result<(), CollectError> {
    let failed = |what: String| CollectError::Templates { path: path.to_owned(), what };
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() > LONGEST => {
            return Err(failed("no file of templates is as long as this one".to_owned()));
        }
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        _ => {}
    }
    let bytes = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let (mut rest, mut at) = (&bytes[..], 0);
    while !rest.is_empty() {
        let part = rest.split_first_chunk::<8>().and_then(|(len, after)| {
            after.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)
        });
        let Some((saved, after)) = part else {
            let what = format!("at byte {at}: the file is cut, or has no templates; remove it");
            return Err(failed(what));
        };
        for decoder in &mut *decoders {
            decoder
                .load(saved)
                .map_err(|fault| failed(format!("in the part at byte {at}: {fault}; remove it")))?;
        }
        at += 8 + saved.len();
        rest = after;
    }
    Ok(())
}

/// Writes what the decoders keep.
pub(crate) fn save<'d>(
    path: &Path,
    decoders: impl Iterator<Item = &'d Mutex<FlowDecoder>>,
) -> Result<(), CollectError> {
    // The first one has also what no exporter has used yet since the start. Parts that are loaded later count.
    let parts = decoders.enumerate().map(|(at, decoder)| match at {
        0 => lock(decoder).save(),
        _ => lock(decoder).save_used(),
    });
    let write = || {
        let mut file = AtomicFile::create(path)?;
        for part in parts {
            file.write_all(&(part.len() as u64).to_be_bytes())?;
            file.write_all(&part)?;
        }
        file.commit()
    };
    write().map_err(|error| CollectError::write(path, error))
}
