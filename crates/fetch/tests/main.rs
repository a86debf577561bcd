//! The integration tests of the crate, as one binary: fetches from a server on this machine that behaves badly.

mod bounds;
mod cache;
mod interrupted;
mod server;

use std::path::Path;
use std::time::Duration;

use fibula_fetch::{FetchError, FetchOptions, FetchWatch, Fetched, Fetcher, SourceFile, Url};

/// Options for tests: no proxies, no hour without a question, little patience.
fn options(cache: &Path) -> FetchOptions {
    FetchOptions {
        max_age: Duration::ZERO,
        silence: Duration::from_secs(5),
        total: Duration::from_secs(20),
        proxies: false,
        attempts: 1,
        ..FetchOptions::new(cache)
    }
}

/// Counts what happens, and refuses files with the word `bad`.
#[derive(Default)]
struct Watched {
    again: usize,
    checked: usize,
    progress: Vec<(u64, Option<u64>)>,
}

impl FetchWatch for Watched {
    fn progress(&mut self, bytes: u64, of: Option<u64>) {
        self.progress.push((bytes, of));
    }

    fn again(&mut self, _: &FetchError) {
        self.again += 1;
    }

    fn check(&mut self, path: &Path) -> Result<(), String> {
        self.checked += 1;
        let text = std::fs::read(path).map_err(|error| error.to_string())?;
        match text.windows(3).any(|three| three == b"bad") {
            true => Err("it is bad".to_owned()),
            false => Ok(()),
        }
    }
}

/// Fetches one URL.
fn get(options: FetchOptions, url: &str) -> Result<Fetched, FetchError> {
    Fetcher::new(options).get(
        &SourceFile::default(),
        &[Url::parse(url).unwrap()],
        &mut Watched::default(),
    )
}

/// The content of a fetched file.
fn content(fetched: &Fetched) -> String {
    String::from_utf8(std::fs::read(&fetched.path).unwrap()).unwrap()
}
