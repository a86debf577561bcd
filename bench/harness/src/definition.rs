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
    /// `gen:v4:2024:900000:1`, or `shared:FILE`: a file of `data/tables` in the folder with data. Empty if `sweep` has
    /// tables.
    #[serde(default)]
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
    /// What is measured again and again: tables of several sizes, or several numbers of threads.
    #[serde(default)]
    pub sweep: Sweep,
    /// The same, small: a test of the answers.
    pub small: Small,
}

/// The points of a definition that is measured at several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Its tables, as [`Definition::table`].
    #[serde(default)]
    pub tables: Vec<String>,
    /// Its numbers of threads; those beyond the number of cores are left out.
    #[serde(default)]
    pub threads: Vec<usize>,
    /// As [`Definition::answers`], by table or number of threads.
    #[serde(default)]
    pub answers: BTreeMap<String, BTreeMap<String, String>>,
}

impl Sweep {
    /// Whether there is nothing to vary.
    pub fn is_none(&self) -> bool {
        self.tables.is_empty() && self.threads.is_empty()
    }
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
        let Sweep { tables, threads, answers } = &self.sweep;
        if self.table.is_empty() == tables.is_empty() {
            return Err("either table or sweep.tables says what is looked up in".to_owned());
        }
        if !tables.is_empty() && !threads.is_empty() {
            return Err("a sweep has tables or threads, not both".to_owned());
        }
        let is_point =
            |key: &String| tables.contains(key) || threads.iter().any(|n| n.to_string() == *key);
        if let Some(other) = answers.keys().find(|key| !is_point(key)) {
            return Err(format!("sweep.answers has {other}, which is no point of the sweep"));
        }
        let all = answers.values().chain([&self.answers, &self.small.answers]);
        let all: Vec<&BTreeMap<String, String>> = all.collect();
        for traffic in &self.traffic {
            traffic.parse::<Traffic>().map_err(|error| error.to_string())?;
            for answers in &all {
                if !answers.is_empty() && !answers.contains_key(traffic) {
                    return Err(format!("answers has no checksum of {traffic}"));
                }
            }
        }
        let numbers = [self.keys, self.small.keys, self.threads, self.batch, self.rounds];
        if numbers.contains(&0) || threads.contains(&0) {
            return Err("keys, threads, batch and rounds must not be 0".to_owned());
        }
        Ok(self)
    }

    /// The small form of it: one point, of a sweep over threads the last one of up to two.
    pub fn into_small(self) -> Self {
        let Small { table, keys, answers } = self.small.clone();
        let few = self.sweep.threads.iter().copied().filter(|threads| *threads <= 2).max();
        let threads = few.unwrap_or(self.threads);
        Self { table, keys, answers, threads, sweep: Sweep::default(), rounds: 1, ..self }
    }

    /// The definitions of its points, in order: itself, if there is nothing to vary.
    pub fn points(&self, cores: usize) -> Vec<Self> {
        if self.sweep.is_none() {
            return vec![self.clone()];
        }
        let Sweep { tables, threads, answers } = &self.sweep;
        let answers = |key: &str| answers.get(key).cloned().unwrap_or_default();
        let point = |table: &String, threads: usize, answers: BTreeMap<String, String>| Self {
            table: table.clone(),
            threads,
            answers,
            sweep: Sweep::default(),
            ..self.clone()
        };
        let of_tables = tables.iter().map(|table| point(table, self.threads, answers(table)));
        let fit = threads.iter().filter(|threads| **threads <= cores.max(1));
        let of_threads =
            fit.map(|&threads| point(&self.table, threads, answers(&threads.to_string())));
        of_tables.chain(of_threads).collect()
    }

    /// What distinguishes a point from the others of its sweep, as `sweep.answers` names it.
    pub fn point_name(&self, sweep: &Sweep) -> String {
        if sweep.threads.is_empty() { self.table.clone() } else { self.threads.to_string() }
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
            for point in definition.points(usize::MAX) {
                let at = point.point_name(&definition.sweep);
                assert!(!point.answers.is_empty(), "{name}: answers of {at}");
            }
            assert!(definition.small.table.starts_with("gen:"), "{name}: a test needs no files");
        }
    }

    #[test]
    fn a_sweep_has_a_point_for_each_table_or_number_of_threads() {
        let read = |change: &str, by: &str| {
            let text = fs::read_to_string(folder().join("quick-v4.toml")).unwrap();
            let text = text.replace(change, by);
            let definition: Result<Definition, _> = toml::from_str(&text);
            definition.map_err(|error| error.to_string()).and_then(|it| it.checked("a"))
        };
        let small = "[small]\n";
        let threads = "[sweep]\nthreads = [1, 2, 8]\n[sweep.answers.2]\nRND = \"a\"\nPFX = \"b\"\n\
                       ZIPF = \"c\"\n[small]\n";
        let definition = read(small, threads).unwrap();
        let points = definition.points(4);
        let of = |point: &Definition| (point.threads, point.answers.len());
        assert_eq!(points.iter().map(of).collect::<Vec<_>>(), [(1, 0), (2, 3)]);
        assert_eq!((points[1].point_name(&definition.sweep), points.len()), ("2".to_owned(), 2));
        assert_eq!(definition.into_small().threads, 2);
        assert_eq!(read("threads = 1", "").unwrap().points(1).len(), 1);
        for (change, by, why) in [
            (small, "[sweep]\ntables = [\"gen:v4:2024:100:1\"]\n[small]\n", "either table or"),
            (small, "[sweep.answers.3]\nRND = \"a\"\n[small]\n", "no point of the sweep"),
            (small, "[sweep]\nthreads = [0]\n[small]\n", "must not be 0"),
        ] {
            let error = read(change, by).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn errors_name_the_definition() {
        let error = Definition::read(&folder(), "no-such").unwrap_err();
        assert!(error.contains("no-such.toml") && error.contains("quick-v4"), "{error}");
    }
}
