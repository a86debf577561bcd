//! Tables by the names of their sources, with the time and the damage.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibula_core::Family;
use fibula_rib::{AnySnapshot, Snapshot, SourceRecord, Table};
use fibula_testkit::fib::{HopModel, synthetic_hops};

use crate::sources::{
    Merge, Settings, Source, SourceError, Watch, embedded, generated, merge::table_of,
};

/// A table in memory, with details of how it was read.
pub struct Loaded {
    /// The names of the sources.
    pub name: String,
    /// The table.
    pub table: Table,
    /// The stages of the work, with their durations.
    pub stages: Vec<(&'static str, Duration)>,
    /// Number of damaged records, which were skipped.
    pub damaged: u64,
    /// The snapshot that the table comes from, if it comes from one.
    pub snapshot: Option<Arc<Snapshot>>,
}

/// Reads the sources, and merges them in order. A single snapshot, generated table or embedded table is used unchanged.
///
/// # Errors
/// If a source cannot be read, or the sources cannot be merged.
///
/// ```
/// use fibula::sources::{Settings, Silent, Source, load};
///
/// let sources = Source::parse_list(&["gen:v4:2014:1000:1".to_owned()])?;
/// let loaded = load(&sources, &Settings::default(), &mut Silent)?;
/// assert_eq!((&*loaded.name, loaded.table.v4.len()), ("gen:v4:2014:1000:1", 1000));
/// # Ok::<(), fibula::sources::SourceError>(())
/// ```
pub fn load(
    sources: &[(String, Source)],
    settings: &Settings,
    watch: &mut dyn Watch,
) -> Result<Loaded, SourceError> {
    let name = sources.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(",");
    let mut loaded = match sources {
        [(_, Source::Snapshot(path))] if settings.takes_all() => {
            from_snapshot(path, settings, watch)?
        }
        [(_, Source::Embedded)] if settings.takes_all() => {
            let started = Instant::now();
            let table = embedded(None)?;
            Loaded::new(table, vec![("unpack", started.elapsed())])
        }
        [(name, Source::Generated(spec))] if settings.takes_all() => {
            let started = Instant::now();
            let table = generated(*spec);
            let mut loaded = Loaded::new(table, vec![("generate", started.elapsed())]);
            loaded.table.provenance.sources.push(SourceRecord {
                name: name.clone(),
                format: "generated".to_owned(),
                announced: spec.prefixes as u64,
                ..Default::default()
            });
            loaded
        }
        sources => merge(sources, settings, watch)?,
    };
    loaded.name = name;
    Ok(loaded)
}

fn from_snapshot(
    path: &Path,
    settings: &Settings,
    watch: &mut dyn Watch,
) -> Result<Loaded, SourceError> {
    let started = Instant::now();
    let file = AnySnapshot::open_with(path, settings.loading)?;
    let opened = started.elapsed();
    let table = table_of(&file, path, settings.at, watch)?;
    Ok(match file {
        AnySnapshot::Table(snapshot) => {
            let stages = vec![("open", opened), ("copy routes", started.elapsed() - opened)];
            Loaded { snapshot: Some(Arc::new(snapshot)), ..Loaded::new(table, stages) }
        }
        AnySnapshot::Dated(_) => Loaded::new(table, vec![("open", started.elapsed())]),
    })
}

fn merge(
    sources: &[(String, Source)],
    settings: &Settings,
    watch: &mut dyn Watch,
) -> Result<Loaded, SourceError> {
    let started = Instant::now();
    let mut merge = Merge::new(settings.clone());
    for (name, source) in sources {
        merge.add(name, source, watch)?;
    }
    let (read_time, damaged) = (started.elapsed(), merge.damaged());
    let table = merge.finish()?;
    watch.merged(&table);
    let stages = vec![("read", read_time), ("merge", started.elapsed() - read_time)];
    Ok(Loaded { damaged, ..Loaded::new(table, stages) })
}

/// The seed of synthetic hops. Any value works, as long as it stays the same.
const HOP_SEED: u64 = 1;

impl Loaded {
    fn new(table: Table, stages: Vec<(&'static str, Duration)>) -> Self {
        Self { name: String::new(), table, stages, damaged: 0, snapshot: None }
    }

    /// Replaces the table's hops by synthetic ones. A snapshot's stored engines hold the old hops, so the snapshot is
    /// dropped.
    pub fn replace_hops(&mut self, model: HopModel) {
        let provenance = std::mem::take(&mut self.table.provenance);
        self.table = Table::from_routes(
            synthetic_hops(&self.table.v4, model, HOP_SEED),
            synthetic_hops(&self.table.v6, model, HOP_SEED),
        );
        self.table.provenance = provenance;
        self.snapshot = None;
    }

    /// Whether all routes have the same values, so that an engine would have nothing to distinguish.
    pub fn has_no_values(&self) -> bool {
        self.table.columns.width() == 0 || self.table.columns.len() <= 1
    }

    /// The families that have routes.
    pub fn families(&self) -> Vec<Family> {
        let (v4, v6) = (!self.table.v4.is_empty(), !self.table.v6.is_empty());
        [(v4, Family::V4), (v6, Family::V6)]
            .into_iter()
            .filter_map(|(has, f)| has.then_some(f))
            .collect()
    }
}
