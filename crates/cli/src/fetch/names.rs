//! Names of the network: URLs and named sources, their files, and what is checked.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use fibula_fetch::{
    Catalog, FetchOptions, Fetched, Fetcher, FileUse, FoundSource, SourceFile, Url, cache_folder,
};

use super::check::Checking;
use super::say;
use crate::config::Config;
use crate::failure::Failure;
use crate::source::{ReadArgs, Source};

/// What named sources begin with where a table is expected.
pub const PREFIX: &str = "fetch:";

/// Whether a name is a URL or that of a named source.
pub fn is_remote(name: &str) -> bool {
    name.starts_with(PREFIX) || Url::is_one(name)
}

/// The configuration as far as fetching needs it.
pub struct Names {
    pub catalog: Catalog,
    pub options: FetchOptions,
}

/// For what a file is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// For itself: checked as this, or else as its source says.
    Fetched(Option<FileUse>),
    /// As a table or as VRPs.
    Used(FileUse),
}

impl Names {
    /// Reads the configuration. Nothing is fetched.
    pub fn open() -> Result<Self, Failure> {
        let config = Config::read()?;
        let cache = config.cache.or_else(cache_folder).ok_or_else(|| {
            Failure::new("there is no folder for the cache: the environment names no home")
                .hint("set XDG_CACHE_HOME, or cache in the configuration")
        })?;
        let mut options = FetchOptions::new(cache);
        let is_set = |value: String| !matches!(&*value, "" | "0");
        options.offline = config.offline || env::var("FIBULA_OFFLINE").is_ok_and(is_set);
        options.max_age = config.max_age.unwrap_or(options.max_age);
        options.silence = config.timeout.unwrap_or(options.silence);
        options.max_bytes = config.max_size.unwrap_or(options.max_bytes);
        let mut catalog = Catalog::builtin();
        catalog.add(config.sources)?;
        Ok(Self { catalog, options })
    }

    /// The files of a URL or of a named source, without the prefix, and the names of their columns.
    pub fn get(
        &self,
        name: &str,
        wanted: Wanted,
        read: &ReadArgs,
    ) -> Result<(Vec<Fetched>, Vec<String>), Failure> {
        let fetcher = Fetcher::new(self.options.clone());
        if Url::is_one(name) {
            let url = Url::parse(name)?;
            let file_use = match wanted {
                Wanted::Fetched(file_use) => file_use.unwrap_or_default(),
                Wanted::Used(file_use) => file_use,
            };
            let shown = url.shown();
            let mut checking = Checking::new(&shown, file_use, read);
            let fetched = fetcher.get(&SourceFile::default(), &[url], &mut checking)?;
            return Ok((vec![fetched], Vec::new()));
        }
        let source = self.catalog.find(name)?;
        let file_use = use_of(name, &source, wanted)?;
        let mut read = read.clone();
        if read.names.is_empty() {
            read.names.clone_from(&source.names);
        }
        let mut files = Vec::new();
        for number in 0..source.len() {
            let urls = source.candidates(number)?;
            let mut checking = Checking::new(name, file_use, &read);
            files.push(fetcher.get(&source.file(number), &urls, &mut checking)?);
        }
        Ok((files, source.names))
    }
}

/// What a source's files are checked as. VRPs are no table, and a table is no VRPs.
fn use_of(name: &str, source: &FoundSource, wanted: Wanted) -> Result<FileUse, Failure> {
    match (wanted, source.file_use) {
        (Wanted::Fetched(file_use), of_source) => Ok(file_use.unwrap_or(of_source)),
        (Wanted::Used(FileUse::Table), FileUse::Vrps) => {
            Err(Failure::new(format_args!("{PREFIX}{name} has VRPs, and no routes"))
                .hint(format_args!("--rpki {PREFIX}{name} validates the routes of a table")))
        }
        (Wanted::Used(FileUse::Vrps), FileUse::Table) => {
            Err(Failure::new(format_args!("{PREFIX}{name} is a table, and has no VRPs"))
                .hint("fetch:vrps has some"))
        }
        (Wanted::Used(file_use), _) => Ok(file_use),
    }
}

/// A file that this process got.
#[derive(Clone)]
struct Found {
    /// What messages and reports call it: its URL without secrets, and the source if that names its columns, since
    /// URLs that differ in a query only are shown alike.
    shown: String,
    path: PathBuf,
    /// The names of its columns, if its source has some.
    names: Vec<String>,
}

/// The files that this process got, by the names that were given: a command that opens a table twice opens the same
/// one.
static FOUND: Mutex<BTreeMap<String, Vec<Found>>> = Mutex::new(BTreeMap::new());

/// The names of the columns of files that this process got, by their shown names and their paths.
pub fn column_names() -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    if let Ok(found) = FOUND.lock() {
        for Found { shown, path, names } in found.values().flatten().filter(|f| !f.names.is_empty())
        {
            all.insert(shown.clone(), names.clone());
            all.insert(path.display().to_string(), names.clone());
        }
    }
    all
}

/// The files of a name.
fn files(name: &str, file_use: FileUse, read: &ReadArgs) -> Result<Vec<Found>, Failure> {
    if let Some(files) = FOUND.lock().ok().and_then(|found| found.get(name).cloned()) {
        return Ok(files);
    }
    let inner = name.strip_prefix(PREFIX).unwrap_or(name);
    let (fetched, names) = Names::open()?.get(inner, Wanted::Used(file_use), read)?;
    fetched.iter().for_each(|file| say(name, file, false));
    let found = |Fetched { path, file, .. }: Fetched| {
        let shown = match names.is_empty() {
            true => file.url,
            false => format!("{name} ({})", file.url),
        };
        Found { shown, path, names: names.clone() }
    };
    let files: Vec<_> = fetched.into_iter().map(found).collect();
    if let Ok(mut found) = FOUND.lock() {
        found.insert(name.to_owned(), files.clone());
    }
    Ok(files)
}

/// The tables of a URL or of a named source, with the names that reports call them.
pub fn tables(name: &str, read: &ReadArgs) -> Result<Vec<(String, Source)>, Failure> {
    let files = files(name, FileUse::Table, read)?;
    files.into_iter().map(|file| Ok((file.shown, Source::parse(text(&file.path)?)?))).collect()
}

/// Files of VRPs: those of the network are replaced by the files that were fetched.
pub fn vrps(paths: Vec<PathBuf>) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        match path.to_str().filter(|name| is_remote(name)) {
            Some(name) => {
                let files = files(name, FileUse::Vrps, &ReadArgs::automatic())?;
                found.extend(files.into_iter().map(|file| file.path));
            }
            None => found.push(path),
        }
    }
    Ok(found)
}

/// Names of tables with dates, `DATE=NAME` or `NAME`: those of the network are replaced by the files that were fetched.
pub fn dated(names: &[String], read: &ReadArgs) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for name in names {
        let (date, list) = match name.split_once('=') {
            Some((date, list)) if !is_remote(name) => (Some(date), list),
            _ => (None, name.as_str()),
        };
        if !list.split(',').any(is_remote) {
            found.push(name.clone());
            continue;
        }
        let mut paths = Vec::new();
        for part in list.split(',') {
            match is_remote(part) {
                true => {
                    for file in files(part, FileUse::Table, read)? {
                        paths.push(text(&file.path)?.to_owned());
                    }
                }
                false => paths.push(part.to_owned()),
            }
        }
        match date {
            Some(date) => found.push(format!("{date}={}", paths.join(","))),
            None => found.extend(paths),
        }
    }
    Ok(found)
}

fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| {
        Failure::new(format_args!("{}: the folder of the cache is not UTF-8", path.display()))
            .hint("set XDG_CACHE_HOME to another one")
    })
}
