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
use crate::record::{
    CachedFile, EntryRecord, FOLDER, PartRecord, VERSION, digest_of, hash_file, hex,
};
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
pub(crate) struct Locked(Option<File>);

impl Locked {
    /// Whether there is a lock, which lasts as long as the open file.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }
}

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
                // A file system without locks. Two processes may write to the same place, so what comes is read again.
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
        let folder = self.folder.join(file.folder());
        let written = File::open(self.new_file(&file.file)).and_then(|file| {
            file.sync_all()?;
            // It does not change any more: a snapshot that nobody may write is mapped.
            let mut permissions = file.metadata()?.permissions();
            permissions.set_readonly(cfg!(unix));
            file.set_permissions(permissions)
        });
        written.map_err(fail)?;
        // The folder may be there: of the current file, which has the same content and another name, or of the one
        // before. So no file in it is removed.
        create_folder(&folder).map_err(fail)?;
        fs::rename(self.new_file(&file.file), folder.join(&file.file)).map_err(fail)?;
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
        let place = |file: &CachedFile| Path::new(file.folder()).join(&file.file);
        let before = before.filter(|before| place(before) != place(&current));
        let record = EntryRecord { version: VERSION, current, before, failed: 0 };
        self.write_record("record.json", &record)?;
        let kept: Vec<_> = record.before.iter().chain([&record.current]).map(place).collect();
        for folder in entries_of(&self.folder) {
            let name = folder.file_name().unwrap_or_default().as_encoded_bytes();
            if name.len() != FOLDER || !name.iter().all(u8::is_ascii_hexdigit) {
                continue;
            }
            for file in entries_of(&folder) {
                if !kept.iter().any(|kept| file.ends_with(kept)) {
                    let _ = fs::remove_file(file);
                }
            }
            let _ = fs::remove_dir(folder); // fails while it has a file
        }
        Ok(())
    }

    /// The file before the current one.
    pub fn before(&self) -> Option<CachedFile> {
        let record: EntryRecord = read_record(&self.folder.join("record.json"))?;
        record.before
    }

    /// When the server was last asked in vain, if that was after the current file was checked: seconds since 1970,
    /// else 0.
    pub fn failed_at(&self) -> u64 {
        let record: Option<EntryRecord> = read_record(&self.folder.join("record.json"));
        record.map_or(0, |record| record.failed)
    }

    /// Notes a time at which the server was asked in vain, if that can be written.
    pub fn note_failure(&self, now: u64) {
        if let Some(record) = read_record::<EntryRecord>(&self.folder.join("record.json")) {
            let _ = self.write_record("record.json", &EntryRecord { failed: now, ..record });
        }
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

/// What is in a folder.
fn entries_of(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
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
