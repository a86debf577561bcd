//! Where changes of routes are kept in files.

use std::path::PathBuf;

use serde::Deserialize;

use super::{Time, time};

/// The history of routes in files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HistoryConfig {
    /// The folder, which is made if it is not there.
    pub path: PathBuf,
    /// How long changes are kept.
    #[serde(default = "keep")]
    pub keep: Time,
    /// The most bytes of all files; the oldest files are deleted first.
    #[serde(default = "bytes")]
    pub bytes: u64,
}

fn keep() -> Time {
    time("30d")
}

fn bytes() -> u64 {
    10_000_000_000
}
