//! Which engine answers: one policy for everything that opens a table.

use std::borrow::Cow;
use std::time::Instant;

use fibula_core::Routes;
use fibula_engines::{EngineFamily, Entry, Isa, engines, find};
use fibula_rib::{Loading, Pod, StoredRoutes};

use crate::open_family::{Engine, Report};
use crate::{Chosen, FibError};

/// What an [`OpenFamily`](crate::OpenFamily) calls its engine where there is none: [`EngineChoice::Search`].
pub const SEARCH: &str = "search";

/// A choice of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EngineChoice {
    /// The one whose tables are stored in the snapshot, used in place. A table without one, or with one
    /// that this program does not know, takes the next of the list.
    Stored,
    /// The one that [`fibula_engines::auto`] takes: it never refuses.
    Auto,
    /// The one of this name. A family that does not have it, or a table that exceeds its limits, takes
    /// the next of the list.
    Named(String),
    /// None: addresses are searched in the sorted routes. Nothing is compiled or loaded, which suits a few
    /// lookups; a batch is many times slower than with an engine.
    Search,
}

impl From<&str> for EngineChoice {
    /// `stored`, `auto`, `search`, or the name of an engine.
    fn from(name: &str) -> Self {
        match name {
            "stored" => Self::Stored,
            "auto" => Self::Auto,
            SEARCH => Self::Search,
            name => Self::Named(name.to_owned()),
        }
    }
}

/// How a table is opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FibOptions {
    /// Each family takes the first of these that it has and that takes its table. A family that has none
    /// of them takes [`EngineChoice::Auto`]; one whose engines all refuse the table is an error.
    pub engines: Vec<EngineChoice>,
    /// The best instruction set that engines may use.
    pub isa: Isa,
    /// How a snapshot file comes into memory.
    pub loading: Loading,
}

impl Default for FibOptions {
    /// The stored engine, else `auto`, for the instructions of this machine.
    fn default() -> Self {
        Self {
            engines: vec![EngineChoice::Stored, EngineChoice::Auto],
            isa: Isa::detect(),
            loading: Loading::Auto,
        }
    }
}

impl FibOptions {
    /// With these engines, in order of preference.
    ///
    /// ```
    /// use fibula_fib::{EngineChoice, FibOptions};
    /// let options = FibOptions::default().engines(["sail-l", "auto"]);
    /// assert_eq!(options.engines, [EngineChoice::Named("sail-l".into()), EngineChoice::Auto]);
    /// ```
    #[must_use]
    pub fn engines<E: Into<EngineChoice>>(self, engines: impl IntoIterator<Item = E>) -> Self {
        Self { engines: engines.into_iter().map(Into::into).collect(), ..self }
    }

    /// With this instruction set.
    #[must_use]
    pub fn isa(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    /// With the file mapped or read; of a mapped file [`Snapshot::open_with`](fibula_rib::Snapshot::open_with) says
    /// what must hold.
    #[must_use]
    pub fn loading(self, loading: Loading) -> Self {
        Self { loading, ..self }
    }

    /// Every name is that of an engine of some family.
    pub(crate) fn check(&self) -> Result<(), FibError> {
        for choice in &self.engines {
            if let EngineChoice::Named(name) = choice
                && find::<u32>(name).is_none()
                && find::<u128>(name).is_none()
            {
                let mut known: Vec<_> = engines::<u32>().iter().map(|entry| entry.name).collect();
                known.extend(engines::<u128>().iter().map(|entry| entry.name));
                known.sort_unstable();
                known.dedup();
                return Err(FibError::Unknown { engine: name.clone(), known });
            }
        }
        Ok(())
    }
}

/// What a family's engine is made from.
pub(crate) struct Material<'a, A: EngineFamily + Pod> {
    /// The snapshot's, if there is one.
    pub(crate) stored: Option<&'a StoredRoutes<A>>,
    /// The routes, copied from the snapshot only if something is compiled.
    pub(crate) routes: Option<Cow<'a, Routes<A>>>,
}

impl<A: EngineFamily + Pod> Material<'_, A> {
    fn routes(&mut self) -> &Routes<A> {
        let stored = self.stored;
        self.routes.get_or_insert_with(|| {
            Cow::Owned(stored.map(|stored| stored.to_routes()).unwrap_or_default())
        })
    }
}

/// The engine of a family by the policy, and why.
pub(crate) fn choose<A: EngineFamily + Pod>(
    mut from: Material<'_, A>,
    options: &FibOptions,
) -> Result<(Engine<A>, Report), FibError> {
    let started = Instant::now();
    let (mut passed, mut refused) = (String::new(), Vec::new());
    for choice in &options.engines {
        let chosen = match choice {
            EngineChoice::Stored => match stored(from.stored, options.isa)? {
                Ok(chosen) => chosen,
                Err(why) => {
                    passed += why.as_deref().unwrap_or_default();
                    continue;
                }
            },
            EngineChoice::Auto => Chosen::auto(from.routes(), options.isa),
            EngineChoice::Named(name) => {
                let Some(entry): Option<&'static Entry<A>> = find(name) else { continue };
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
                return Ok((Engine::Search, Report { name, isa: Isa::Scalar, reason, time }));
            }
        };
        return Ok(chosen.into_engine(&passed));
    }
    if !refused.is_empty() {
        return Err(FibError::Refused { family: A::FAMILY, errors: refused });
    }
    Ok(Chosen::auto(from.routes(), options.isa).into_engine(&passed))
}

/// The snapshot's engine; else why there is none, if that is worth a word.
fn stored<A: EngineFamily + Pod>(
    stored: Option<&StoredRoutes<A>>,
    isa: Isa,
) -> Result<Result<Chosen<A>, Option<String>>, FibError> {
    let Some(stored) = stored.filter(|stored| !stored.engine_name().is_empty()) else {
        return Ok(Err(None));
    };
    let Some(entry) = find::<A>(stored.engine_name()) else {
        let name = stored.engine_name();
        return Ok(Err(Some(format!("; not {name}, which is stored and not known here"))));
    };
    match Chosen::load(entry, stored, isa) {
        Ok(chosen) => Ok(Ok(chosen)),
        Err(error) => {
            let (family, engine) = (A::FAMILY, entry.name);
            Err(FibError::Stored { file: None, family, engine, error })
        }
    }
}
