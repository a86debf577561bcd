//! Reads files of VRPs and ASPAs. The rest of the crate does no I/O.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use fibula_rib::SourceRecord;

use crate::{Aspas, Decoded, DecodedAspas, RpkiError, Vrp, Vrps, decode, decode_aspas};

/// A file of VRPs that was read.
#[derive(Clone, Debug)]
pub struct VrpFile {
    /// The file's name.
    pub name: String,
    /// Its VRPs and metadata.
    pub decoded: Decoded,
}

impl VrpFile {
    /// Number of VRPs that had expired at this time, in seconds since 1970. VRPs without an expiry in the file are
    /// not counted.
    pub fn expired(&self, now: u64) -> usize {
        self.decoded.expiries.iter().filter(|&&expiry| expiry < now).count()
    }

    /// The record for the provenance of a table.
    pub fn record(&self) -> SourceRecord {
        SourceRecord {
            name: self.name.clone(),
            format: format!("vrps, {}", self.decoded.format),
            date: self.decoded.generated,
            announced: self.decoded.vrps.len() as u64,
            ..SourceRecord::default()
        }
    }
}

/// Reads files of VRPs into one set, with their records for the provenance of a table. `each` gets every file.
///
/// # Errors
/// As [`read`].
pub fn read_all(
    paths: &[PathBuf],
    allow_empty: bool,
    mut each: impl FnMut(&VrpFile),
) -> Result<(Vrps, Vec<SourceRecord>), RpkiError> {
    let (mut vrps, mut records) = (Vec::new(), Vec::new());
    for path in paths {
        let file = read(path, allow_empty)?;
        each(&file);
        records.push(file.record());
        vrps.extend(file);
    }
    Ok((Vrps::new(vrps), records))
}

/// Reads a file of VRPs, `-` for standard input. gz, bz2, xz and zstd are decompressed.
///
/// # Errors
/// If it cannot be read or has more than [`fibula_ingest::LONGEST_WHOLE`] bytes, or any entry is not a VRP;
/// [`RpkiError::Empty`] if there is no VRP, unless `allow_empty`.
pub fn read(path: &Path, allow_empty: bool) -> Result<VrpFile, RpkiError> {
    let (name, bytes) = contents(path)?;
    let decoded = decode(&bytes);
    let decoded = decoded.map_err(|error| RpkiError::Bad { file: name.clone(), error })?;
    if decoded.vrps.is_empty() && !allow_empty {
        return Err(RpkiError::Empty { file: name });
    }
    Ok(VrpFile { name, decoded })
}

/// The file's name, and what is in it.
pub(crate) fn contents(path: &Path) -> Result<(String, Vec<u8>), RpkiError> {
    let name = path.display().to_string();
    let fail = |error| RpkiError::Io { file: name.clone(), error };
    let raw: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(path).map_err(fail)?),
    };
    let bytes = fibula_ingest::read_whole(raw).map_err(fail)?;
    Ok((name, bytes))
}

/// A file whose ASPAs were read.
#[derive(Clone, Debug)]
pub struct AspaFile {
    /// The file's name.
    pub name: String,
    /// Its ASPAs and metadata.
    pub decoded: DecodedAspas,
}

impl AspaFile {
    /// Number of ASPAs that had expired at this time, in seconds since 1970. ASPAs without an expiry in the file are
    /// not counted.
    pub fn expired(&self, now: u64) -> usize {
        self.decoded.expiries.iter().filter(|&&expiry| expiry < now).count()
    }

    /// The record for the provenance of a table.
    pub fn record(&self) -> SourceRecord {
        SourceRecord {
            name: self.name.clone(),
            format: "aspas, json".to_owned(),
            date: self.decoded.generated,
            announced: self.decoded.aspas.len() as u64,
            ..SourceRecord::default()
        }
    }
}

/// Reads the ASPAs of a file of a validator, `-` for standard input. gz, bz2, xz and zstd are decompressed.
///
/// # Errors
/// If it cannot be read or has more than [`fibula_ingest::LONGEST_WHOLE`] bytes, has no list of ASPAs, or any entry is
/// not an ASPA; [`RpkiError::NoAspas`] if the list is empty, unless `allow_empty`.
pub fn read_aspas(path: &Path, allow_empty: bool) -> Result<AspaFile, RpkiError> {
    let (name, bytes) = contents(path)?;
    let decoded = decode_aspas(&bytes);
    let decoded = decoded.map_err(|error| RpkiError::BadAspas { file: name.clone(), error })?;
    if decoded.aspas.is_empty() && !allow_empty {
        return Err(RpkiError::NoAspas { file: name });
    }
    Ok(AspaFile { name, decoded })
}

/// Reads the ASPAs of files into one set, with their records for the provenance of a table. `each` gets every file.
///
/// # Errors
/// As [`read_aspas`].
pub fn read_all_aspas(
    paths: &[PathBuf],
    allow_empty: bool,
    mut each: impl FnMut(&AspaFile),
) -> Result<(Aspas, Vec<SourceRecord>), RpkiError> {
    let (mut aspas, mut records) = (Vec::new(), Vec::new());
    for path in paths {
        let file = read_aspas(path, allow_empty)?;
        each(&file);
        records.push(file.record());
        aspas.extend(file.decoded.aspas);
    }
    Ok((aspas.into_iter().collect(), records))
}

impl IntoIterator for VrpFile {
    type Item = Vrp;
    type IntoIter = std::vec::IntoIter<Vrp>;

    fn into_iter(self) -> Self::IntoIter {
        self.decoded.vrps.into_iter()
    }
}
