//! The body of an answer, into a file, with its length and its SHA-256.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::FetchError;
use crate::client::{Head, Transfer};
use crate::fetcher::FetchWatch;
use crate::record::{hash_file, hex};

/// A file that is being received.
pub(crate) struct Receiving {
    file: File,
    hash: Sha256,
    bytes: u64,
}

/// The end of a transfer.
pub(crate) struct Received {
    pub bytes: u64,
    pub sha256: String,
}

/// Why a transfer ended early.
pub(crate) enum Broken {
    /// By the server or the network.
    Transfer(FetchError),
    /// By the disk.
    Disk(io::Error),
}

impl Receiving {
    /// Begins an empty file.
    pub fn begin(path: &Path) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        Ok(Self { file, hash: Sha256::new(), bytes: 0 })
    }

    /// Goes on behind the bytes of a file.
    pub fn resume(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = File::options().append(true).open(path)?;
        Ok(Self { file, hash: hash_file(path)?, bytes })
    }

    /// Takes the whole body.
    pub fn all(
        mut self,
        transfer: &mut Transfer,
        head: &Head,
        url: &str,
        largest: u64,
        watch: &mut dyn FetchWatch,
    ) -> Result<Received, Broken> {
        let announced = match head.range {
            Some((_, total)) if head.status == 206 => Some(total),
            _ => head.length,
        };
        let large = || Broken::Transfer(FetchError::Large { url: url.to_owned(), bytes: largest });
        if announced.is_some_and(|announced| announced > largest) {
            return Err(large());
        }
        let mut is_first = self.bytes == 0;
        while let Some(part) = transfer.part().map_err(Broken::Transfer)? {
            let begins_tag = part.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'<');
            if is_first && head.is_page && begins_tag {
                return Err(Broken::Transfer(FetchError::Page { url: url.to_owned() }));
            }
            is_first = false;
            self.bytes += part.len() as u64;
            if self.bytes > largest {
                return Err(large());
            }
            self.file.write_all(&part).map_err(Broken::Disk)?;
            self.hash.update(&part);
            watch.progress(self.bytes, announced);
        }
        match announced {
            Some(announced) if announced != self.bytes => {
                Err(Broken::Transfer(FetchError::Length {
                    url: url.to_owned(),
                    came: self.bytes,
                    announced,
                }))
            }
            _ => Ok(Received { bytes: self.bytes, sha256: hex(&self.hash.finalize()) }),
        }
    }
}
