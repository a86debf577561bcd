//! Real tables: the cuts of them that are always there, and whole ones for tests that run on demand.
#![allow(dead_code, reason = "each test that includes this module uses a part of it")]

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Once;

use fibula_core::{Addr, Hop, Prefix, Route, Routes};

/// The files with cuts of real tables, in order of name.
pub fn cuts() -> Vec<PathBuf> {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tables"))
}

/// A cut, by the beginning of its name.
pub fn cut<A: Addr>(begin: &str) -> Routes<A> {
    let file = cuts().into_iter().find(|file| name(file).starts_with(begin));
    read(&file.unwrap_or_else(|| panic!("no table {begin}")))
}

/// The files with whole tables, in order of name.
pub fn archives() -> Vec<PathBuf> {
    let folder = archives_folder();
    assert!(folder.is_dir(), "no real archives at {} (set FIBULA_SHARED)", folder.display());
    files(&folder)
}

/// As [`archives`], none and a note if they are not there: for examples, which have generated tables besides.
pub fn archives_if_any() -> Vec<PathBuf> {
    let folder = archives_folder();
    if folder.is_dir() {
        return files(&folder);
    }
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        eprintln!("no real tables at {} (set FIBULA_SHARED): without their rows", folder.display());
    });
    Vec::new()
}

/// `data/tables` in the folder that `FIBULA_SHARED` names, or in `shared` beside the repository.
fn archives_folder() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    env::var_os("FIBULA_SHARED").map_or(beside, PathBuf::from).join("data/tables")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files
}

/// The name of a table file up to the first dot.
pub fn name(file: &Path) -> String {
    let name = file.file_name().expect("files have names").to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The routes of one family in a table file; their values are numbered as hops.
pub fn read<A: Addr>(file: &Path) -> Routes<A> {
    let text = decompress(file);
    let mut hops = HashMap::new();
    let mut routes = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with([';', '#'])) {
        let (prefixes, value) = parse::<A>(line);
        if !prefixes.is_empty() {
            let next = hops.len() as u32;
            let hop = Hop::new(*hops.entry(value).or_insert(next));
            routes.extend(prefixes.into_iter().map(|prefix| Route { prefix, hop }));
        }
    }
    Routes::from_unsorted(routes)
}

/// `prefix value` or `first,last,value`; no prefix if it is of the other family.
fn parse<A: Addr>(line: &str) -> (Vec<Prefix<A>>, &str) {
    let ip = |text: &str| A::from_ip(text.parse::<IpAddr>().expect("an address"));
    let fields: Vec<&str> = line.split(['\t', ',']).collect();
    match fields[..] {
        [prefix, value] => {
            let (addr, len) = prefix.split_once('/').expect("a prefix has a length");
            let len = len.parse().expect("a length is a number");
            let prefix = ip(addr).map(|addr| Prefix::masked(addr, len).expect("a length fits"));
            (prefix.into_iter().collect(), value)
        }
        [first, last, value] => match (ip(first), ip(last)) {
            (Some(first), Some(last)) => (Prefix::split_range(first, last).collect(), value),
            _ => (Vec::new(), value),
        },
        _ => panic!("a line of no known form: {line:?}"),
    }
}

fn decompress(file: &Path) -> String {
    let bytes = fs::read(file).expect("the file can be read");
    let mut text = String::new();
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => lzma_rust2::XzReader::new(&bytes[..], true).read_to_string(&mut text),
        Some("gz") => flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text),
        _ => (&bytes[..]).read_to_string(&mut text),
    }
    .expect("the file decompresses to text");
    text
}
