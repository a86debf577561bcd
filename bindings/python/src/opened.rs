//! A snapshot with its engines, shared by the threads that use it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fibula_annotate::{
    AnnotateError, ColumnAnnotator, ColumnOptions, Engines, PrefixForm, TextForm,
};
use fibula_core::{Addr, Hop, LoadError, Route, Routes};
use fibula_engines::{BoxedEngine, EngineFamily};
use fibula_rib::{AlignedBytes, Snapshot, SnapshotError, StoredFamily};
use fibula_simd::Isa;

/// Why a table could not be opened.
pub enum OpenError {
    Snapshot(SnapshotError),
    /// A stored engine is not sound.
    Engine(&'static str, LoadError),
}

impl From<SnapshotError> for OpenError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
}

/// An engine, and its name.
pub struct Chosen<A: EngineFamily> {
    pub name: &'static str,
    pub engine: BoxedEngine<A>,
}

/// What lookups need.
pub struct Parts {
    pub snapshot: Snapshot,
    pub v4: Chosen<u32>,
    pub v6: Chosen<u128>,
    /// Engines that answer with routes, made when covering prefixes are first asked for.
    routes: OnceLock<(BoxedEngine<u32>, BoxedEngine<u128>)>,
    /// Engines that answer with prefix lengths, made when a prefix is first asked for.
    lengths: OnceLock<(BoxedEngine<u32>, BoxedEngine<u128>)>,
}

self_cell::self_cell!(
    /// Values of the table prepared for one set of options. It borrows what it stands on.
    pub struct Annotating {
        owner: Arc<Parts>,
        #[covariant]
        dependent: ColumnAnnotator,
    }
);

/// The options by which prepared annotators are kept.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Asked {
    add: Vec<String>,
    plain: bool,
    binary: bool,
    defaults: Vec<(String, String)>,
    strict: bool,
}

/// Annotators kept ready; each may hold some megabytes.
const KEPT: usize = 16;

/// An open table.
pub struct Opened {
    pub parts: Arc<Parts>,
    annotators: Mutex<HashMap<Asked, Arc<Annotating>>>,
}

impl Opened {
    /// Maps a snapshot file.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        Self::new(Snapshot::open(path)?)
    }

    /// Takes a snapshot in memory.
    pub fn from_bytes(bytes: AlignedBytes) -> Result<Self, OpenError> {
        Self::new(Snapshot::from_bytes(bytes)?)
    }

    fn new(snapshot: Snapshot) -> Result<Self, OpenError> {
        let (v4, v6) = (stored_or_auto(&snapshot)?, stored_or_auto(&snapshot)?);
        let parts = Parts { snapshot, v4, v6, routes: OnceLock::new(), lengths: OnceLock::new() };
        Ok(Self { parts: Arc::new(parts), annotators: Mutex::default() })
    }

    /// The annotator for these options, made or kept.
    pub fn annotator(&self, options: &ColumnOptions) -> Result<Arc<Annotating>, AnnotateError> {
        let asked = Asked {
            add: options.add.clone(),
            plain: options.text == TextForm::Plain,
            binary: options.prefix == PrefixForm::Binary,
            defaults: options.defaults.clone(),
            strict: options.strict,
        };
        // What is in the map is whole even if a thread died beside it.
        let kept = || self.annotators.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept().get(&asked) {
            return Ok(Arc::clone(found));
        }
        let made = Annotating::try_new(Arc::clone(&self.parts), |parts| {
            ColumnAnnotator::new(&parts.snapshot, parts.engines(&options.add), options)
        })?;
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.clear();
        }
        Ok(Arc::clone(kept.entry(asked).or_insert(Arc::new(made))))
    }
}

impl Parts {
    fn engines(&self, add: &[String]) -> Engines<'_> {
        let engines = Engines::new(&self.v4.engine, &self.v6.engine);
        if add.iter().any(|name| name == "covering") {
            let (v4, v6) = self
                .routes
                .get_or_init(|| (compile(&self.snapshot, number), compile(&self.snapshot, number)));
            return engines.with_routes(v4, v6);
        }
        // Without columns, the prefix is what is added.
        let prefix = add.iter().any(|name| name == "prefix")
            || (add.is_empty() && self.snapshot.columns().width() == 0);
        if prefix {
            let (v4, v6) = self
                .lengths
                .get_or_init(|| (compile(&self.snapshot, length), compile(&self.snapshot, length)));
            return engines.with_lengths(v4, v6);
        }
        engines
    }
}

/// The snapshot's engine, or one compiled from its routes if it has none that is known here.
fn stored_or_auto<A: EngineFamily + StoredFamily>(
    snapshot: &Snapshot,
) -> Result<Chosen<A>, OpenError> {
    let (routes, isa) = (snapshot.family::<A>(), Isa::detect());
    if let Some(entry) = fibula_engines::find::<A>(routes.engine_name()) {
        let engine = entry
            .load(routes.tables(), routes.hop_count(), isa)
            .map_err(|error| OpenError::Engine(entry.name, error))?;
        return Ok(Chosen { name: entry.name, engine });
    }
    let auto = fibula_engines::auto(&routes.to_routes(), isa);
    Ok(Chosen { name: auto.entry.name, engine: auto.engine })
}

/// An engine of the snapshot's routes with other hops.
fn compile<A: EngineFamily + StoredFamily>(
    snapshot: &Snapshot,
    hop: impl Fn(usize, &Route<A>) -> Hop,
) -> BoxedEngine<A> {
    let stored = snapshot.family::<A>();
    let routes = (0..stored.len()).map(|index| {
        let route = stored.get(index);
        Route { hop: hop(index, &route), ..route }
    });
    fibula_engines::auto(&routes.collect::<Routes<A>>(), Isa::detect()).engine
}

fn number<A: Addr>(index: usize, _: &Route<A>) -> Hop {
    // There are fewer routes than hops can number.
    Hop::new(index as u32)
}

fn length<A: Addr>(_: usize, route: &Route<A>) -> Hop {
    Hop::new(route.prefix.len().into())
}
