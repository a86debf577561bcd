//! The rules of a fetch: when a server is asked, what is kept, and what replaces it.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::FetchError;
use crate::body::{Broken, Receiving};
use crate::cache::Entry;
use crate::client::{Client, Head, Transfer};
use crate::clock::now;
use crate::record::{CachedFile, PartRecord};
use crate::url::Url;

/// How long no server is asked again for a file after it could not be had, if an older one can be used.
const REST: Duration = Duration::from_secs(600);

/// How files are fetched.
#[derive(Clone, Debug)]
pub struct FetchOptions {
    /// The folder of the cache; [`cache_folder`](crate::cache_folder) is the usual one.
    pub cache: PathBuf,
    /// Ask no server.
    pub offline: bool,
    /// A file about which the server was asked less than so long ago is taken as it is.
    pub max_age: Duration,
    /// Longest time without a byte.
    pub silence: Duration,
    /// Longest time of a request, and of waiting for another process.
    pub total: Duration,
    /// Largest size of a file.
    pub max_bytes: u64,
    /// Attempts where the network or the server fails, the first one included.
    pub attempts: u32,
    /// Whether the proxies that the environment names are used.
    pub proxies: bool,
}

impl FetchOptions {
    /// The defaults: an hour, 30 seconds without a byte, an hour for a request, 4 GiB, three attempts, with proxies.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            offline: false,
            max_age: Duration::from_secs(3600),
            silence: Duration::from_secs(30),
            total: Duration::from_secs(3600),
            max_bytes: 4 << 30,
            attempts: 3,
            proxies: true,
        }
    }
}

/// Follows a fetch, and decides whether a file can be used.
pub trait FetchWatch {
    /// So many bytes came, of the number that the server announced.
    fn progress(&mut self, bytes: u64, of: Option<u64>) {
        let _ = (bytes, of);
    }

    /// Another process fetches the same file; this one waits.
    fn waits(&mut self) {}

    /// An attempt failed, and another one follows.
    fn again(&mut self, error: &FetchError) {
        let _ = error;
    }

    /// Checks a file that came whole, before it replaces the old one.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn check(&mut self, path: &Path) -> Result<(), String>;
}

/// Accepts every file that came whole.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl FetchWatch for Unwatched {
    fn check(&mut self, _: &Path) -> Result<(), String> {
        Ok(())
    }
}

/// How fresh a file is.
#[derive(Debug)]
pub enum Freshness {
    /// It was read now.
    New,
    /// The server was asked now, and has no newer one.
    Unchanged,
    /// The server was asked not long ago ([`FetchOptions::max_age`]).
    Recent,
    /// Nothing is fetched offline.
    Offline,
    /// A newer one could not be had, for this reason.
    Kept(FetchError),
}

/// A file that can be read.
#[derive(Debug)]
pub struct Fetched {
    /// Where it is.
    pub path: PathBuf,
    /// What the cache knows of it.
    pub file: CachedFile,
    /// How fresh it is.
    pub freshness: Freshness,
}

/// Whose file it is: the cache keeps one for each. By default it is that of a URL alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFile {
    /// The name of a source that keeps one file whatever its URL is at a time. Empty: the URL stands for it.
    pub name: String,
    /// From what the source makes the file's URL: if that changes, it is another file.
    pub definition: String,
}

/// Fetches files into a cache.
pub struct Fetcher {
    options: FetchOptions,
    client: Client,
}

/// The result of asking for one URL.
enum Answer {
    Unchanged(CachedFile),
    New(CachedFile),
}

impl Fetcher {
    /// A fetcher. Nothing is read or sent yet.
    pub fn new(options: FetchOptions) -> Self {
        let client = Client::new(&options);
        Self { options, client }
    }

    /// The options.
    pub fn options(&self) -> &FetchOptions {
        &self.options
    }

    /// The newest file of a source. `urls` has its possible URLs, the newest first: the first one that the server has
    /// counts.
    ///
    /// # Errors
    /// If there is neither a new file nor an old one.
    pub fn get(
        &self,
        source: &SourceFile,
        urls: &[Url],
        watch: &mut dyn FetchWatch,
    ) -> Result<Fetched, FetchError> {
        let name = &source.name;
        let Some(first) = urls.first() else {
            let what = "it has no URL".to_owned();
            return Err(FetchError::Definition { name: name.clone(), what });
        };
        let shown = if name.is_empty() { first.shown() } else { name.clone() };
        let entry = self.entry(source, first);
        if let Some(found) = self.without_network(&entry, &shown) {
            return Ok(found);
        }
        if self.options.offline {
            return Err(FetchError::Offline { name: shown });
        }
        let asked = self.locked(&entry, &shown, urls, watch);
        asked.or_else(|error| match entry.intact() {
            Some((file, path)) => Ok(Fetched { path, file, freshness: Freshness::Kept(error) }),
            None => Err(error),
        })
    }

    /// The file of the cache, if there is one. The server is not asked.
    pub fn cached(&self, source: &SourceFile, url: &Url) -> Option<CachedFile> {
        self.entry(source, url).current().map(|(file, _)| file)
    }

    fn entry(&self, source: &SourceFile, url: &Url) -> Entry {
        let SourceFile { name, definition } = source;
        let (readable, key) = match name.is_empty() {
            true => (url.host(), format!("url {}", url.whole())),
            false => (name.as_str(), format!("name {name}\n{definition}")),
        };
        Entry::new(&self.options.cache, readable, &key)
    }

    /// A file for which the server need not be asked.
    fn without_network(&self, entry: &Entry, name: &str) -> Option<Fetched> {
        let (file, _) = entry.current()?;
        let ago = |then: u64| now().checked_sub(then).map(Duration::from_secs);
        let is_recent = |then: u64, age| ago(then).is_some_and(|ago| ago < age);
        let max_age = self.options.max_age;
        let failed = entry.failed_at();
        let freshness = if self.options.offline {
            Freshness::Offline
        } else if is_recent(file.checked, max_age) {
            Freshness::Recent
        } else if is_recent(failed, max_age.min(REST)) {
            Freshness::Kept(FetchError::Failed { name: name.to_owned(), ago: ago(failed)? })
        } else {
            return None;
        };
        let (file, path) = entry.intact()?;
        Some(Fetched { path, file, freshness })
    }

    /// Asks, as the only process that does.
    fn locked(
        &self,
        entry: &Entry,
        name: &str,
        urls: &[Url],
        watch: &mut dyn FetchWatch,
    ) -> Result<Fetched, FetchError> {
        let mut has_waited = false;
        let mut waits = || {
            has_waited = true;
            watch.waits();
        };
        let lock = entry.lock(name, self.options.total, &mut waits)?;
        if has_waited
            && let Some((file, path)) = entry.intact()
            && now().saturating_sub(file.checked) < 60
        {
            // The process that this one waited for has asked.
            return Ok(Fetched { path, file, freshness: Freshness::Recent });
        }
        let current = entry.intact().map(|(file, _)| file);
        let asked = self.first_of(entry, name, urls, current.as_ref(), watch);
        let kept = asked.and_then(|answer| self.keep(entry, answer, current));
        match &kept {
            Err(_) => entry.note_failure(now()),
            // Without a lock another process may have written to the same place.
            Ok(_) if !lock.is_held() && entry.intact().is_none() => {
                let error = std::io::ErrorKind::Interrupted.into();
                return Err(entry.failed("keeping the file, which another process fetches", error));
            }
            Ok(_) => {}
        }
        kept
    }

    /// The answer for the first of these URLs that the server has.
    fn first_of(
        &self,
        entry: &Entry,
        name: &str,
        urls: &[Url],
        current: Option<&CachedFile>,
        watch: &mut dyn FetchWatch,
    ) -> Result<Answer, FetchError> {
        let mut error = None;
        for url in urls {
            match self.ask(entry, url, current, watch) {
                Err(missing @ FetchError::NotFound { .. }) => {
                    error.get_or_insert(missing);
                }
                answer => return answer,
            }
        }
        Err(error.unwrap_or_else(|| FetchError::Offline { name: name.to_owned() }))
    }

    /// Makes a new file the current one, or notes that there is no newer one.
    fn keep(
        &self,
        entry: &Entry,
        answer: Answer,
        current: Option<CachedFile>,
    ) -> Result<Fetched, FetchError> {
        match (answer, current) {
            (Answer::Unchanged(file), _) => {
                self.keep_current(entry, CachedFile { checked: now(), ..file })
            }
            (Answer::New(file), Some(old))
                if file.sha256 == old.sha256 && file.file == old.file =>
            {
                entry.clear_new()?;
                self.keep_current(entry, file)
            }
            (Answer::New(file), current) => {
                let (file, path) = entry.commit(file, current)?;
                Ok(Fetched { path, file, freshness: Freshness::New })
            }
        }
    }

    fn keep_current(&self, entry: &Entry, file: CachedFile) -> Result<Fetched, FetchError> {
        entry.record(file, entry.before())?;
        let (file, path) = entry.current().ok_or_else(|| {
            entry.failed("reading its record", std::io::ErrorKind::NotFound.into())
        })?;
        Ok(Fetched { path, file, freshness: Freshness::Unchanged })
    }

    /// Asks for one URL, several times if the network fails.
    fn ask(
        &self,
        entry: &Entry,
        url: &Url,
        current: Option<&CachedFile>,
        watch: &mut dyn FetchWatch,
    ) -> Result<Answer, FetchError> {
        let mut pause = Duration::from_millis(500);
        for _ in 1..self.options.attempts {
            match self.once(entry, url, current, watch) {
                Err(error) if error.is_passing() => {
                    watch.again(&error);
                    thread::sleep(pause);
                    pause *= 2;
                }
                done => return done,
            }
        }
        self.once(entry, url, current, watch)
    }

    fn once(
        &self,
        entry: &Entry,
        url: &Url,
        current: Option<&CachedFile>,
        watch: &mut dyn FetchWatch,
    ) -> Result<Answer, FetchError> {
        let (digest, name) = (url.digest(), url.file_name());
        let current = current.filter(|file| file.url_sha256 == digest);
        let part = entry.part(&digest, &name);
        let mut headers = Vec::new();
        match (&part, current) {
            (Some((part, bytes)), _) => {
                headers.push(("range", format!("bytes={bytes}-")));
                headers.push(("if-range", part.etag.clone()));
            }
            (None, Some(file)) => {
                headers.extend(file.etag.clone().map(|etag| ("if-none-match", etag)));
                let modified = file.last_modified.clone();
                headers.extend(modified.map(|date| ("if-modified-since", date)));
            }
            (None, None) => {}
        }
        let mut transfer = self.client.get(url, &headers)?;
        let head = transfer.head()?;
        let is_same = |part: &PartRecord| head.etag.as_ref().is_none_or(|etag| *etag == part.etag);
        match (head.status, part, current) {
            (304, None, Some(file)) => Ok(Answer::Unchanged(file.clone())),
            (206, Some((part, bytes)), _)
                if head.range == Some((bytes, part.total)) && is_same(&part) =>
            {
                let path = entry.new_file(&name);
                let head = Head { etag: Some(part.etag), ..head };
                let receiving = Receiving::resume(&path, bytes)
                    .map_err(|error| entry.failed("reading what arrived", error))?;
                self.receive(entry, url, receiving, &mut transfer, &head, watch)
            }
            (206 | 304 | 416, Some(_), _) => {
                // The server has another file now, or none of our range: the whole file is read.
                drop(transfer);
                entry.clear_new()?;
                self.once(entry, url, current, watch)
            }
            (200, ..) => {
                entry.clear_new()?;
                if let Some(part) = resumable(&digest, &name, &head) {
                    entry.begin_part(&part)?;
                }
                let receiving = Receiving::begin(&entry.new_file(&name))
                    .map_err(|error| entry.failed("creating a file", error))?;
                self.receive(entry, url, receiving, &mut transfer, &head, watch)
            }
            (404 | 410, ..) => Err(FetchError::NotFound { url: url.shown() }),
            (status, ..) => Err(FetchError::Status { url: url.shown(), status }),
        }
    }

    /// Reads the body and checks the file.
    fn receive(
        &self,
        entry: &Entry,
        url: &Url,
        receiving: Receiving,
        transfer: &mut Transfer,
        head: &Head,
        watch: &mut dyn FetchWatch,
    ) -> Result<Answer, FetchError> {
        let shown = url.shown();
        let received = receiving.all(transfer, head, &shown, self.options.max_bytes, watch);
        let received = match received {
            Ok(received) => received,
            // What arrived stays, for the next attempt, if it can be resumed.
            Err(Broken::Transfer(error)) if error.is_passing() => return Err(error),
            Err(Broken::Transfer(error @ FetchError::Late { .. })) => return Err(error),
            Err(Broken::Transfer(error)) => {
                entry.clear_new()?;
                return Err(error);
            }
            Err(Broken::Disk(error)) => {
                let error = entry.failed("writing the file", error);
                let _ = entry.clear_new();
                return Err(error);
            }
        };
        let file = url.file_name();
        if let Err(what) = watch.check(&entry.new_file(&file)) {
            entry.clear_new()?;
            return Err(FetchError::Refused { url: shown, what });
        }
        let now = now();
        Ok(Answer::New(CachedFile {
            url: shown,
            url_sha256: url.digest(),
            file,
            bytes: received.bytes,
            sha256: received.sha256,
            etag: head.etag.clone(),
            last_modified: head.last_modified.clone(),
            fetched: now,
            checked: now,
        }))
    }
}

/// How a transfer can be resumed: only with a strong validator and a known length.
fn resumable(url_sha256: &str, file: &str, head: &Head) -> Option<PartRecord> {
    let etag = head.etag.clone().filter(|etag| etag.starts_with('"'))?;
    let total = head.length?;
    Some(PartRecord { url_sha256: url_sha256.to_owned(), file: file.to_owned(), etag, total })
}
