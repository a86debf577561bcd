//! The history against plain lists of changes, in damaged files, and bounded.

mod bounds;
mod damage;
mod oracle;
mod together;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use fibula_core::{Attributes, BgpAttributes};
use fibula_history::{HistoryOptions, RouteKey};
use fibula_rib::{AttributeSet, Peer};

/// Numbers that look random, the same for the same seed.
pub(crate) struct Dice(u64);

impl Dice {
    /// A number below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }
}

pub(crate) fn key(table: &str, prefix: &str) -> RouteKey {
    RouteKey { table: table.into(), prefix: prefix.parse().unwrap() }
}

pub(crate) fn set(number: u32) -> AttributeSet {
    let path = format!("64500 {number}");
    let bgp = BgpAttributes { origin_as: Some(number), as_path: &path, ..Default::default() };
    AttributeSet::new(&Attributes::Bgp(&bgp))
}

pub(crate) fn peer(number: u32) -> Option<Arc<Peer>> {
    Some(Arc::new(Peer::new(Some([192, 0, 2, number as u8].into()), 64500 + number)))
}

/// Small logs and few files, so that all kinds of files are made.
pub(crate) fn small() -> HistoryOptions {
    let mut options = HistoryOptions::default();
    (options.log_records, options.files) = (12, 3);
    options
}

/// Copies the files of a folder, as they are at this moment.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        // A file that is being merged may be removed meanwhile.
        let _ = fs::copy(&path, to.join(path.file_name().unwrap()));
    }
}

/// The files of a folder with these extensions, by name.
pub(crate) fn files(folder: &Path, extensions: &[&str]) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| {
        let extension = path.extension().map(|e| e.to_string_lossy().into_owned());
        extension.is_some_and(|e| extensions.contains(&&*e))
    });
    all.sort();
    all
}
