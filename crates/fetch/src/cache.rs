//! The folder of one source or URL in the cache.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use fibula_rib::AtomicFile;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Digest;

use crate::FetchError;
use crate::record::{CachedFile, EntryRecord, PartRecord, VERSION, digest_of, hash_file, hex};
use crate::url::plain;

/// Maximum length of a record.
const LONGEST_RECORD: u64 = 64 << 10;

/// The folder of a source.
#[derive(Debug)]
pub(crate) struct Entry {
    folder: PathBuf,
}

/// The right to change an entry, until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Locked(
    #[allow(dead_code, reason = "the lock lasts as long as the open file")] Option<File>,
);

impl Entry {
    /// The entry of this key, with readable parts of its name in the name of the folder. Nothing is created.
    pub fn new(cache: &Path, readable: &str, key: &str) -> Self {
        let readable: String = plain(readable).chars().take(60).collect();
        let digest = digest_of(key.as_bytes());
        let folder = cache.join(format!("{readable}-{}", digest.get(..16).unwrap_or_default()));
        Self { folder }
    }

    /// The current file, if there is one that is as long as its record says.
    pub fn current(&self) -> Option<(CachedFile, PathBuf)> {
        let EntryRecord { version, current, .. } = read_record(&self.folder.join("record.json"))?;
        let path = self.path_of(&current);
        let is_whole = || {
            let metadata = fs::symlink_metadata(&path).ok();
            metadata.is_some_and(|data| data.is_file() && data.len() == current.bytes)
        };
        (version == VERSION && current.is_plain() && is_whole()).then_some((current, path))
    }

    /// The current file, if it has the bytes that were fetched.
    pub fn intact(&self) -> Option<(CachedFile, PathBuf)> {
        let (file, path) = self.current()?;
        let is_same = hash_file(&path).is_ok_and(|hash| hex(&hash.finalize()) == file.sha256);
        is_same.then_some((file, path))
    }

    fn path_of(&self, file: &CachedFile) -> PathBuf {
        self.folder.join(file.folder()).join(&file.file)
    }

    /// Creates the folder, and locks it, waiting for other processes at most so long. `waits` is called once if it must
    /// wait.
    pub fn lock(
        &self,
        name: &str,
        longest: Duration,
        waits: &mut dyn FnMut(),
    ) -> Result<Locked, FetchError> {
        create_folder(&self.folder).map_err(|error| self.failed("creating its folder", error))?;
        let path = self.folder.join("lock");
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(|error| self.failed("opening its lock", error))?;
        let (deadline, mut has_waited) = (Instant::now() + longest, false);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Locked(Some(file))),
                // A file system without locks: two processes may both fetch, and each renames whole files.
                Err(TryLockError::Error(_)) => return Ok(Locked(None)),
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(FetchError::Locked { name: name.to_owned() });
                }
                Err(TryLockError::WouldBlock) => {
                    if !has_waited {
                        waits();
                        has_waited = true;
                    }
                    thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    /// The error of a step.
    pub fn failed(&self, step: &str, error: io::Error) -> FetchError {
        FetchError::Cache { what: format!("{}: {step}", self.folder.display()), error }
    }

    /// The file that a transfer writes.
    pub fn new_file(&self, file: &str) -> PathBuf {
        self.folder.join("new").join(file)
    }

    /// What arrived in an earlier transfer of this file, and how to go on with it.
    pub fn part(&self, url_sha256: &str, file: &str) -> Option<(PartRecord, u64)> {
        let part: PartRecord = read_record(&self.folder.join("new.json"))?;
        let bytes =
            fs::symlink_metadata(self.new_file(file)).ok().filter(fs::Metadata::is_file)?.len();
        let is_same = part.url_sha256 == url_sha256 && part.file == file;
        (is_same && (1..part.total).contains(&bytes)).then_some((part, bytes))
    }

    /// Notes how the transfer that begins can be resumed.
    pub fn begin_part(&self, part: &PartRecord) -> Result<(), FetchError> {
        self.write_record("new.json", part)
    }

    /// Removes what arrived of a file, and begins an empty folder for it.
    pub fn clear_new(&self) -> Result<(), FetchError> {
        let _ = fs::remove_file(self.folder.join("new.json"));
        let new = self.folder.join("new");
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.failed("removing what arrived", error))
            }
            _ => create_folder(&new).map_err(|error| self.failed("creating a folder", error)),
        }
    }

    /// Makes the file that arrived the current one. Readers have the old one, or the new one.
    pub fn commit(
        &self,
        file: CachedFile,
        before: Option<CachedFile>,
    ) -> Result<(CachedFile, PathBuf), FetchError> {
        let fail = |error| self.failed("keeping the file", error);
        let (new, folder) = (self.folder.join("new"), self.folder.join(file.folder()));
        let written = File::open(self.new_file(&file.file)).and_then(|file| {
            file.sync_all()?;
            // It does not change any more: a snapshot that nobody may write is mapped.
            let mut permissions = file.metadata()?.permissions();
            permissions.set_readonly(cfg!(unix));
            file.set_permissions(permissions)
        });
        written.map_err(fail)?;
        // Of an interrupted commit, or of damage: the record does not name it, or names it with another content.
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => fs::rename(&new, &folder).map_err(fail)?,
        }
        let _ = fs::remove_file(self.folder.join("new.json"));
        self.record(file.clone(), before)?;
        let path = self.path_of(&file);
        Ok((file, path))
    }

    /// Writes the record, and removes files that it does not name.
    pub fn record(
        &self,
        current: CachedFile,
        before: Option<CachedFile>,
    ) -> Result<(), FetchError> {
        let before = before.filter(|before| before.folder() != current.folder());
        let record = EntryRecord { version: VERSION, current, before };
        self.write_record("record.json", &record)?;
        let keeps = |name: &str| {
            name == record.current.folder()
                || record.before.as_ref().is_some_and(|before| before.folder() == name)
        };
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_file_folder =
                name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_file_folder && !keeps(&name) {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }

    /// The file before the current one.
    pub fn before(&self) -> Option<CachedFile> {
        let record: EntryRecord = read_record(&self.folder.join("record.json"))?;
        record.before
    }

    fn write_record(&self, name: &str, record: &impl Serialize) -> Result<(), FetchError> {
        let write = || {
            let mut file = AtomicFile::create(&self.folder.join(name))?;
            file.write_all(&serde_json::to_vec_pretty(record)?)?;
            file.commit()
        };
        write().map_err(|error| self.failed(name, error))
    }
}

/// A record; `None` if it is not there, too long, or damaged.
fn read_record<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(LONGEST_RECORD).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Creates a folder that only its owner can enter, with those around it.
fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}
