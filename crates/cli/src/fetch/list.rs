//! `fibula fetch --list`: the sources that have names.

use std::io::Write;

use fibula_fetch::{CachedFile, Fetcher, FileUse, NamedSource, shown_name};
use serde_json::json;

use super::date;
use super::names::Names;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Grid};

/// Prints the sources, with the dates of those in the cache.
pub fn run(names: &Names, as_json: bool) -> Result<Outcome, Failure> {
    let fetcher = Fetcher::new(names.options.clone());
    let mut objects = Vec::new();
    let mut grid = Grid::new(&["name", "what", "new", "in the cache"]);
    for (name, source) in names.catalog.sources() {
        let cached = cached(names, &fetcher, name);
        let NamedSource { about, every, terms, .. } = source;
        if as_json {
            objects.push(json!({
                "name": name, "about": about, "every": every, "terms": terms,
                "use": match source.file_use {
                    FileUse::Table => "table",
                    FileUse::Vrps => "vrps",
                    FileUse::Any => "any",
                },
                "urls": source.url.iter().map(|url| shown_name(url)).collect::<Vec<_>>(),
                "cached": cached.map(|file| json!({ "date": file.date(), "bytes": file.bytes })),
            }));
            continue;
        }
        let every = every.clone().map_or(String::new(), |every| format!("each {every}"));
        let cached = cached.as_ref().map_or(String::new(), date);
        grid.row([name.to_owned(), about.clone(), every, cached]);
    }
    if as_json {
        output::json(&objects)?;
    } else {
        let mut out = output::stdout();
        grid.write_aligned(&mut out)?;
        out.flush()?;
    }
    Ok(Outcome::Done)
}

/// The first file of a source whose name has no part that the user gives.
fn cached(names: &Names, fetcher: &Fetcher, name: &str) -> Option<CachedFile> {
    let source = names.catalog.find(name).ok()?;
    let urls = source.candidates(0).ok()?;
    fetcher.cached(&source.file(0), urls.first()?)
}
