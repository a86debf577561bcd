//! What the cache knows of a file.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A file of the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CachedFile {
    /// The URL that it was read from, without secrets.
    pub url: String,
    /// SHA-256 of the whole URL: validators of another URL's file are not sent.
    pub url_sha256: String,
    /// The name of the file.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: String,
    /// The server's `ETag`.
    pub etag: Option<String>,
    /// The server's `Last-Modified`.
    pub last_modified: Option<String>,
    /// When it was read: seconds since 1970.
    pub fetched: u64,
    /// When the server was last asked: seconds since 1970.
    pub checked: u64,
}

impl CachedFile {
    /// The date of its data: when the server's file changed, else when it was read. Seconds since 1970.
    pub fn date(&self) -> u64 {
        let modified =
            self.last_modified.as_deref().and_then(|date| httpdate::parse_http_date(date).ok());
        modified.map_or(self.fetched, crate::clock::seconds)
    }

    /// The folder of the file: the first digits of the digest.
    pub(crate) fn folder(&self) -> &str {
        self.sha256.get(..FOLDER).unwrap_or_default()
    }

    /// Whether the record names a file inside of its folder. The cache may have been written by anyone.
    pub(crate) fn is_plain(&self) -> bool {
        self.folder().len() == FOLDER
            && self.folder().bytes().all(|byte| byte.is_ascii_hexdigit())
            && !self.file.is_empty()
            && crate::url::plain(&self.file) == self.file
    }
}

/// Characters of a digest in the name of a folder.
pub(crate) const FOLDER: usize = 16;

/// The record of an entry: the current file, and the one before it, which readers may still use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EntryRecord {
    /// The format of the record.
    pub version: u32,
    pub current: CachedFile,
    pub before: Option<CachedFile>,
    /// When the server was asked in vain since: seconds since 1970, or 0.
    #[serde(default)]
    pub failed: u64,
}

/// The version that is written.
pub(crate) const VERSION: u32 = 1;

/// What is needed to resume a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartRecord {
    pub url_sha256: String,
    pub file: String,
    /// A strong validator.
    pub etag: String,
    /// The length of the whole file.
    pub total: u64,
}

/// SHA-256 in hexadecimal.
pub(crate) fn hex(digest: &[u8]) -> String {
    let mut text = String::with_capacity(digest.len() * 2);
    for byte in digest {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// SHA-256 of some bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Hashes a file.
pub(crate) fn hash_file(path: &Path) -> io::Result<Sha256> {
    let (mut file, mut hash) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
