//! Definitions of measurements: files of `bench/definitions`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use fibula_testkit::traffic::Traffic;
use serde::Deserialize;

/// A definition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// What it measures, for headings.
    pub title: String,
    /// The family of the table's addresses.
    pub family: FamilyName,
    /// `gen:v4:2024:900000:1`, or `shared:FILE`: a file of `data/tables` in the folder with data.
    pub table: String,
    /// Kinds of traffic, as `fibula bench` names them.
    pub traffic: Vec<String>,
    /// Keys for each thread and round.
    pub keys: usize,
    /// Lookup threads of each contestant.
    #[serde(default = "one")]
    pub threads: usize,
    /// Keys that a contestant gets at a time, unless its `peer.toml` says otherwise.
    pub batch: usize,
    /// Timed rounds, in each of which every contestant has one turn.
    pub rounds: usize,
    /// The seed of the keys.
    #[serde(default = "seed")]
    pub seed: u64,
    /// The contestant whose rate the others are divided by.
    pub baseline: String,
    /// `PEER` or `PEER:VARIANT`.
    pub contestants: Vec<String>,
    /// The checksum of the right answers, by traffic.
    #[serde(default)]
    pub answers: BTreeMap<String, String>,
    /// The same, small: a test of the answers.
    pub small: Small,
}

/// What differs in a small run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Small {
    /// The table, a generated one.
    pub table: String,
    /// Keys for each thread.
    pub keys: usize,
    /// As [`Definition::answers`].
    #[serde(default)]
    pub answers: BTreeMap<String, String>,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FamilyName {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl FamilyName {
    /// `v4` or `v6`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }
}

fn one() -> usize {
    1
}

fn seed() -> u64 {
    1
}

impl Definition {
    /// Reads a definition of a folder by its name.
    pub fn read(folder: &Path, name: &str) -> Result<Self, String> {
        let path = folder.join(format!("{name}.toml"));
        let text = fs::read_to_string(&path).map_err(|error| {
            let known = names(folder).join(", ");
            format!("{}: {error}; definitions: {known}", path.display())
        })?;
        let definition = toml::from_str(&text).map_err(|error| error.to_string());
        let definition = definition.and_then(|it: Self| it.checked(name));
        definition.map_err(|error| format!("{}: {error}", path.display()))
    }

    fn checked(mut self, name: &str) -> Result<Self, String> {
        self.name = name.to_owned();
        if !self.contestants.contains(&self.baseline) {
            return Err(format!("the baseline {} is no contestant", self.baseline));
        }
        for traffic in &self.traffic {
            traffic.parse::<Traffic>().map_err(|error| error.to_string())?;
            for answers in [&self.answers, &self.small.answers] {
                if !answers.is_empty() && !answers.contains_key(traffic) {
                    return Err(format!("answers has no checksum of {traffic}"));
                }
            }
        }
        let numbers = [self.keys, self.small.keys, self.threads, self.batch, self.rounds];
        if numbers.contains(&0) {
            return Err("keys, threads, batch and rounds must not be 0".to_owned());
        }
        Ok(self)
    }

    /// The small form of it.
    pub fn into_small(self) -> Self {
        let Small { table, keys, answers } = self.small.clone();
        Self { table, keys, answers, rounds: 1, ..self }
    }
}

/// The names of all definitions of a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let definitions = files.filter(|path| path.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<String> = definitions
        .filter_map(|path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../definitions")
    }

    #[test]
    fn all_definitions_are_valid_and_say_what_is_right() {
        let names = names(&folder());
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            let definition = Definition::read(&folder(), &name).unwrap();
            assert!(!definition.small.answers.is_empty(), "{name}: small.answers");
            assert!(!definition.answers.is_empty(), "{name}: answers");
            assert!(definition.small.table.starts_with("gen:"), "{name}: a test needs no files");
        }
    }

    #[test]
    fn errors_name_the_definition() {
        let error = Definition::read(&folder(), "no-such").unwrap_err();
        assert!(error.contains("no-such.toml") && error.contains("quick-v4"), "{error}");
    }
}
