//! The engines that a program has: a list of entries, each an engine with one of its configurations.

use std::fmt;
use std::sync::{Arc, LazyLock};

use fibula_core::{
    Addr, BoxedEngine, BuildError, FamilyType, Follow, LoadError, PerFamily, Persist, Routes,
    TableSource, stored, unstored,
};
use fibula_simd::Isa;

use crate::product;

type Build<A> = dyn Fn(&Routes<A>, Isa) -> Result<BoxedEngine<A>, BuildError> + Send + Sync;
type Load<A> =
    dyn Fn(&dyn TableSource, u32, Isa) -> Result<BoxedEngine<A>, LoadError> + Send + Sync;

/// An engine that can be chosen by name. A clone shares everything with its original.
#[derive(Clone)]
pub struct Entry<A: Addr> {
    /// The name: lower case, unique in the family.
    pub name: &'static str,
    /// A description in one line.
    pub summary: Arc<str>,
    /// The instruction sets for which it has its own forms; see [`Isa::best_of`] for the others.
    pub isas: &'static [Isa],
    build: Arc<Build<A>>,
    /// `None` if its tables cannot be stored.
    load: Option<Arc<Load<A>>>,
}

impl<A: Addr> Entry<A> {
    /// The engine `E`, whose tables can be stored, with the configuration that `config` gives for an instruction set.
    pub fn of<E>(
        name: &'static str,
        summary: impl Into<Arc<str>>,
        isas: &'static [Isa],
        config: impl Fn(Isa) -> E::Config + Copy + Send + Sync + 'static,
    ) -> Self
    where
        E: Follow<A> + Persist<A> + 'static,
    {
        Self {
            name,
            summary: summary.into(),
            isas,
            build: Arc::new(move |routes, isa| Ok(stored(E::build(routes, &config(isa))?))),
            load: Some(Arc::new(move |tables, hop_count, isa| {
                Ok(stored(E::load(tables, hop_count, &config(isa))?))
            })),
        }
    }

    /// An engine whose tables cannot be stored, because they lie on a device or are a program's own. A snapshot stores
    /// its name without tables, and a program that opens the file compiles an engine again.
    ///
    /// ```
    /// use fibula_core::{Addr, BuildError, Follow, Hop, Lookup, Memory, PerFamily, Prefix, Route, Routes};
    /// use fibula_engines::{Entry, Isa, Registry};
    ///
    /// /// All routes, searched one after the other.
    /// struct Linear<A: Addr>(Vec<Route<A>>);
    ///
    /// impl<A: Addr> Lookup<A> for Linear<A> {
    ///     fn lookup(&self, addr: A) -> Hop {
    ///         let covering = self.0.iter().filter(|route| route.prefix.contains(addr));
    ///         covering.max_by_key(|route| route.prefix.len()).map_or(Hop::NONE, |route| route.hop)
    ///     }
    ///     fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
    ///         assert_eq!(addrs.len(), hops.len());
    ///         hops.iter_mut().zip(addrs).for_each(|(hop, &addr)| *hop = self.lookup(addr));
    ///     }
    ///     fn memory(&self) -> Memory {
    ///         Memory::new([("routes", size_of_val(&self.0[..]))])
    ///     }
    /// }
    /// impl<A: Addr> Follow<A> for Linear<A> {}
    ///
    /// fn linear<A: Addr>() -> Entry<A> {
    ///     let build = |routes: &Routes<A>, _| Ok::<_, BuildError>(Linear(routes.iter().collect()));
    ///     Entry::unstored("linear", "all routes, one after the other", &[Isa::Scalar], build)
    /// }
    ///
    /// let own = PerFamily { v4: vec![linear()], v6: vec![linear()] };
    /// let registry = Registry::product().with(own);
    /// let routes: Routes<u32> = [(Prefix::ALL, Hop::new(3))].into_iter().collect();
    /// let engine = registry.find("linear").expect("it was added").build(&routes, Isa::best())?;
    /// assert_eq!(engine.lookup(1), Hop::new(3));
    /// # Ok::<(), BuildError>(())
    /// ```
    pub fn unstored<E: Follow<A> + 'static>(
        name: &'static str,
        summary: impl Into<Arc<str>>,
        isas: &'static [Isa],
        build: impl Fn(&Routes<A>, Isa) -> Result<E, BuildError> + Send + Sync + 'static,
    ) -> Self {
        let summary = summary.into();
        let build: Arc<Build<A>> = Arc::new(move |routes, isa| Ok(unstored(build(routes, isa)?)));
        Self { name, summary, isas, build, load: None }
    }

    /// Compiles a table.
    ///
    /// # Errors
    /// As [`Engine::build`](fibula_core::Engine::build).
    pub fn build(&self, routes: &Routes<A>, isa: Isa) -> Result<BoxedEngine<A>, BuildError> {
        (self.build)(routes, isa)
    }

    /// Checks stored tables and uses them in place.
    ///
    /// # Errors
    /// As [`Persist::load`]; if the engine is one whose tables cannot be stored.
    pub fn load(
        &self,
        tables: &dyn TableSource,
        hop_count: u32,
        isa: Isa,
    ) -> Result<BoxedEngine<A>, LoadError> {
        match &self.load {
            Some(load) => load(tables, hop_count, isa),
            None => Err(LoadError::new(self.name, "is an engine whose tables cannot be stored")),
        }
    }

    /// Whether its tables can be stored.
    pub fn is_stored(&self) -> bool {
        self.load.is_some()
    }
}

/// Lists of entries, one for each family: `PerFamily<Entries>`.
pub struct Entries;

impl FamilyType for Entries {
    type Of<A: Addr> = Vec<Entry<A>>;
}

/// Other names under which engines are found.
const ALIASES: &[(&str, &str)] = &[("dxr", "dxr18")];

/// The engines that a program can name, for each family. A program can extend the product's registry with its own
/// engines, or with the published schemes of `fibula-baselines`, and pass it to the code that chooses engines. A clone
/// is a reference.
///
/// ```
/// use fibula_engines::Registry;
///
/// let registry = Registry::product();
/// assert_eq!(registry.find::<u128>("planb").map(|entry| entry.name), Some("planb"));
/// assert!(registry.find::<u128>("dxr18").is_none(), "DXR is a scheme for IPv4");
/// ```
#[derive(Clone)]
pub struct Registry(Arc<PerFamily<Entries>>);

impl Registry {
    /// The engines of this crate.
    pub fn product() -> Self {
        static PRODUCT: LazyLock<Registry> =
            LazyLock::new(|| Registry(Arc::new(product::entries())));
        PRODUCT.clone()
    }

    /// These engines and `entries` behind them.
    ///
    /// # Panics
    /// If two engines of a family have the same name, or an engine has no form for [`Isa::Scalar`].
    #[must_use]
    pub fn with(&self, entries: PerFamily<Entries>) -> Self {
        fn joined<A: Addr>(first: &[Entry<A>], then: Vec<Entry<A>>) -> Vec<Entry<A>> {
            let mut all = first.to_vec();
            for entry in then {
                let name = entry.name;
                assert!(
                    all.iter().all(|known| known.name != name),
                    "two engines are called {name}"
                );
                assert!(entry.isas.contains(&Isa::Scalar), "{name} has no form for every machine");
                all.push(entry);
            }
            all
        }
        let PerFamily { v4, v6 } = entries;
        Self(Arc::new(PerFamily { v4: joined(&self.0.v4, v4), v6: joined(&self.0.v6, v6) }))
    }

    /// The engines of a family, best known first.
    pub fn engines<A: Addr>(&self) -> &[Entry<A>] {
        self.0.get::<A>()
    }

    /// The engine of this name. `"dxr"` means `"dxr18"`; `"auto"` is no engine, see [`auto`](Self::auto).
    pub fn find<A: Addr>(&self, name: &str) -> Option<&Entry<A>> {
        let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
        self.engines().iter().find(|entry| entry.name == name)
    }

    /// Whether some family has an engine of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.find::<u32>(name).is_some() || self.find::<u128>(name).is_some()
    }

    /// The names of the engines of all families, sorted.
    pub fn names(&self) -> Vec<&'static str> {
        let v4 = self.engines::<u32>().iter().map(|entry| entry.name);
        let mut names: Vec<_> =
            v4.chain(self.engines::<u128>().iter().map(|entry| entry.name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl Default for Registry {
    /// [`Registry::product`].
    fn default() -> Self {
        Self::product()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_are_unique_and_found<A: Addr>() {
        let registry = Registry::product();
        for (i, entry) in registry.engines::<A>().iter().enumerate() {
            assert!(registry.engines::<A>()[..i].iter().all(|other| other.name != entry.name));
            assert!(std::ptr::eq(registry.find::<A>(entry.name).unwrap(), entry));
            assert!(entry.isas.contains(&Isa::Scalar));
        }
    }

    #[test]
    fn names() {
        names_are_unique_and_found::<u32>();
        names_are_unique_and_found::<u128>();
    }

    #[test]
    #[should_panic(expected = "two engines are called radix")]
    fn a_name_is_given_once() {
        let radix = Registry::product().find::<u32>("radix").unwrap().clone();
        let _ = Registry::product().with(PerFamily { v4: vec![radix], v6: Vec::new() });
    }
}
