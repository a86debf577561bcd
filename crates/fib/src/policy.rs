//! Chooses the engine: the same policy wherever a table is opened.

use std::borrow::Cow;

use fibula_core::{Addr, Routes};
use fibula_engines::{Isa, Registry, Stopwatch};
use fibula_rib::{Loading, Pod, StoredRoutes};

use crate::open_family::{Engine, EngineReport};
use crate::{Chosen, FibError};

/// The engine name of an [`OpenFamily`](crate::OpenFamily) without an engine: [`EngineChoice::Search`].
pub const SEARCH: &str = "search";

/// One choice of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineChoice {
    /// The engine whose tables are stored in the snapshot, used in place. If there is none, or this program does not
    /// know it or the form of its tables, the next choice of the list applies.
    Stored,
    /// The engine that [`Registry::auto`] chooses. It accepts every table.
    Auto,
    /// The engine of this name. If the family does not have it, or the table exceeds its limits, the next choice of
    /// the list applies.
    Named(String),
    /// No engine: addresses are searched in the sorted routes. Nothing is compiled or loaded, which is best for a few
    /// lookups. Batches are many times slower than with an engine.
    Search,
}

impl From<&str> for EngineChoice {
    /// Parses `stored`, `auto`, `search`, or the name of an engine.
    fn from(name: &str) -> Self {
        match name {
            "stored" => Self::Stored,
            "auto" => Self::Auto,
            SEARCH => Self::Search,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// Options for opening a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FibOptions {
    /// The choices in order of preference: each family takes the first one that it supports and that accepts its
    /// table. A family that supports none of them takes [`EngineChoice::Auto`]. If a family supports some but all
    /// refuse its table, opening fails.
    pub engines: Vec<EngineChoice>,
    /// The engines that can be chosen.
    pub registry: Registry,
    /// The best instruction set that engines may use.
    pub isa: Isa,
    /// How a snapshot file is loaded.
    pub loading: Loading,
}

impl Default for FibOptions {
    /// The stored engine, else `auto`, of the product's engines, with all instructions of this machine.
    fn default() -> Self {
        Self {
            engines: vec![EngineChoice::Stored, EngineChoice::Auto],
            registry: Registry::product(),
            isa: Isa::detect(),
            loading: Loading::Auto,
        }
    }
}

impl FibOptions {
    /// Sets the engines, in order of preference.
    ///
    /// ```
    /// use fibula_fib::{EngineChoice, FibOptions};
    /// let options = FibOptions::default().engines(["dxr18", "auto"]);
    /// assert_eq!(options.engines, [EngineChoice::Named("dxr18".into()), EngineChoice::Auto]);
    /// ```
    #[must_use]
    pub fn engines<E: Into<EngineChoice>>(self, engines: impl IntoIterator<Item = E>) -> Self {
        Self { engines: engines.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets the engines that can be chosen: the product's, extended by a program's own.
    #[must_use]
    pub fn registry(self, registry: Registry) -> Self {
        Self { registry, ..self }
    }

    /// Sets the best instruction set that engines may use.
    #[must_use]
    pub fn isa(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// Sets whether the file is mapped or read. For the conditions on a mapped file, see
    /// [`Snapshot::open_with`](fibula_rib::Snapshot::open_with).
    #[must_use]
    pub fn loading(self, loading: Loading) -> Self {
        Self { loading, ..self }
    }

    /// Checks that each name is the name of an engine of some family.
    pub(crate) fn check(&self) -> Result<(), FibError> {
        for choice in &self.engines {
            if let EngineChoice::Named(name) = choice
                && !self.registry.knows(name)
            {
                let known = self.registry.names();
                return Err(FibError::Unknown { engine: name.clone(), known });
            }
        }
        Ok(())
    }
}

impl FibOptions {
    /// Compiles the routes with the first engine of the list that the family has and that accepts them, as opening a
    /// table does. Nothing is stored, and an engine is wanted: these two choices are passed over.
    ///
    /// ```
    /// use fibula_core::{Hop, Prefix, Routes};
    /// use fibula_fib::FibOptions;
    ///
    /// let routes: Routes<u128> = [(Prefix::ALL, Hop::new(0))].into_iter().collect();
    /// let chosen = FibOptions::default().engines(["dxr18", "planb"]).compile(&routes)?;
    /// assert_eq!((chosen.name, &*chosen.reason), ("planb", "planb: requested"));
    /// # Ok::<(), fibula_fib::FibError>(())
    /// ```
    ///
    /// # Errors
    /// [`FibError::Unknown`] if no family has an engine of a name; [`FibError::Refused`] if the list names engines of
    /// the family and all refuse the routes.
    pub fn compile<A: Addr + Pod>(&self, routes: &Routes<A>) -> Result<Chosen<A>, FibError> {
        self.check()?;
        let mut options = self.clone();
        options.engines.retain(|choice| *choice != EngineChoice::Search);
        let from = Material { stored: None, routes: Some(Cow::Borrowed(routes)) };
        let (engine, EngineReport { name, isa, reason, time }) = choose(from, &options)?;
        let Engine::Compiled(engine) = engine else { unreachable!("a search is not in the list") };
        Ok(Chosen { name, isa, reason, time, engine })
    }
}

/// The input of the choice of a family's engine.
pub(crate) struct Material<'a, A: Addr + Pod> {
    /// The snapshot, if there is one.
    pub(crate) stored: Option<&'a StoredRoutes<A>>,
    /// The routes. They are copied from the snapshot only if an engine is compiled.
    pub(crate) routes: Option<Cow<'a, Routes<A>>>,
}

impl<A: Addr + Pod> Material<'_, A> {
    fn routes(&mut self) -> &Routes<A> {
        let stored = self.stored;
        self.routes.get_or_insert_with(|| {
            Cow::Owned(stored.map(|stored| stored.to_routes()).unwrap_or_default())
        })
    }
}

/// Chooses a family's engine by the policy, and gives the reason.
pub(crate) fn choose<A: Addr + Pod>(
    mut from: Material<'_, A>,
    options: &FibOptions,
) -> Result<(Engine<A>, EngineReport), FibError> {
    let started = Stopwatch::start();
    let (mut passed, mut refused) = (String::new(), Vec::new());
    for choice in &options.engines {
        let chosen = match choice {
            EngineChoice::Stored => match stored(from.stored, options)? {
                Ok(chosen) => chosen,
                Err(why) => {
                    passed += why.as_deref().unwrap_or_default();
                    continue;
                }
            },
            EngineChoice::Auto => Chosen::auto(&options.registry, from.routes(), options.isa),
            EngineChoice::Named(name) => {
                let Some(entry) = options.registry.find::<A>(name) else { continue };
                match Chosen::named(entry, from.routes(), options.isa) {
                    Ok(chosen) => chosen,
                    Err(error) => {
                        passed += &format!("; {error}");
                        refused.push(error);
                        continue;
                    }
                }
            }
            EngineChoice::Search => {
                let reason = format!("search: requested, no engine is compiled{passed}");
                let (name, time) = (SEARCH, started.elapsed());
                return Ok((Engine::Search, EngineReport { name, isa: Isa::Scalar, reason, time }));
            }
        };
        return Ok(chosen.into_engine(&passed));
    }
    if !refused.is_empty() {
        return Err(FibError::Refused { family: A::FAMILY, errors: refused });
    }
    Ok(Chosen::auto(&options.registry, from.routes(), options.isa).into_engine(&passed))
}

/// The engine stored in the snapshot, or the reason why it is not used, if it is worth reporting.
fn stored<A: Addr + Pod>(
    stored: Option<&StoredRoutes<A>>,
    options: &FibOptions,
) -> Result<Result<Chosen<A>, Option<String>>, FibError> {
    let Some(stored) = stored.filter(|stored| !stored.engine_name().is_empty()) else {
        return Ok(Err(None));
    };
    let Some(entry) = options.registry.find::<A>(stored.engine_name()) else {
        let name = stored.engine_name();
        return Ok(Err(Some(format!("; not {name}, which is stored and not known here"))));
    };
    match Chosen::load(entry, stored, options.isa) {
        Ok(chosen) => Ok(Ok(chosen)),
        Err(error) if error.is_outdated() => Ok(Err(Some(format!(
            "; not {}, whose stored tables are of an earlier version",
            entry.name
        )))),
        Err(error) => {
            let (family, engine) = (A::FAMILY, entry.name);
            Err(FibError::Stored { file: None, family, engine, error })
        }
    }
}
