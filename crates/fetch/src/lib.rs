//! Files from the network: a cache of fetched files, and the names of sources that publish tables.
//!
//! [`Fetcher::get`] gives the file of a URL. It asks the server whether the cached file is still the newest one, and
//! reads the new one otherwise. The old file stays until the new one is complete and has passed the caller's check
//! ([`FetchWatch::check`]). If the server cannot be reached, the old file is given, with the reason
//! ([`Freshness::Kept`]).
//!
//! ```
//! use fibula_fetch::{FetchOptions, Fetcher, SourceFile, Unwatched, Url};
//!
//! # let folder = tempfile::tempdir()?;
//! let options = FetchOptions { offline: true, ..FetchOptions::new(folder.path()) };
//! let url = Url::parse("https://data.example/networks.csv")?;
//! let error = Fetcher::new(options).get(&SourceFile::default(), &[url], &mut Unwatched).err();
//! assert!(error.is_some_and(|error| error.to_string().contains("nothing is fetched offline")));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Catalog`] has the named sources: their URLs, some of which contain the time of the table, and their terms.
//!
//! # The cache
//!
//! A folder for each URL or source. Everything but the lock is replaced by renaming.
//!
//! | file | contents |
//! |---|---|
//! | `record.json` | the current file, its validators, SHA-256, times ([`CachedFile`]); the file before it |
//! | `0123456789abcdef/NAME` | a file, in a folder named by the first 16 digits of its SHA-256 |
//! | `new/NAME`, `new.json` | what arrived of the next file, and the ETag with which it is resumed |
//! | `lock` | locked by the process that fetches |
//!
//! Because a file's path contains its digest, a path that was given to a reader is not changed by the next fetch. The
//! file before the current one stays until the fetch after that.
#![forbid(unsafe_code)]

mod body;
mod cache;
mod catalog;
mod client;
mod clock;
mod error;
mod fetcher;
mod folders;
mod record;
mod url;

pub use catalog::{Catalog, FileUse, FoundSource, NamedSource, one_or_several};
pub use clock::parse_duration;
pub use error::FetchError;
pub use fetcher::{FetchOptions, FetchWatch, Fetched, Fetcher, Freshness, SourceFile, Unwatched};
pub use folders::{cache_folder, config_file};
pub use record::CachedFile;
pub use url::{Url, shown_name};

/// The program in the README compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
