use fibula_core::Routes;
use fibula_engines::{EngineFamily, Entry, Isa, find, suited};
use fibula_rib::{EngineSource, Maker};

/// The name that stands for the engine that suits the table.
pub const AUTO: &str = "auto";

/// What takes over where the engines that were asked for refuse a table: the last takes any.
const OTHERS: [&str; 3] = ["dxr18", "planb", "radix"];

/// The engines of live tables: those that were asked for by name, or what suits the table, which is
/// decided anew as it changes; and behind them those that take any table.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_feeds::Engines;
/// use fibula_rib::EngineSource;
///
/// let names = |engines: Engines, routes: &Routes<u32>| -> Vec<&str> {
///     engines.candidates(routes).iter().map(|maker| maker.name()).collect()
/// };
/// let hosts: Routes<u32> = (0..9).map(|i| (Prefix::host(i), Hop::new(0))).collect();
/// assert_eq!(names(Engines::auto(), &Routes::default())[0], "runmap");
/// assert_eq!(names(Engines::auto(), &hosts)[0], "dxr18");
/// assert_eq!(names(Engines::named(["poptrie18"]), &hosts)[..2], ["poptrie18", "dxr18"]);
/// ```
#[derive(Clone, Debug)]
pub struct Engines {
    names: Vec<String>,
    isa: Isa,
}

impl Engines {
    /// What suits the table.
    pub fn auto() -> Self {
        Self::named([AUTO])
    }

    /// The engines of these names, the most preferred first; [`AUTO`] may be among them. Each family
    /// takes those that it has, and what suits the table if that is none.
    pub fn named(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { names: names.into_iter().map(Into::into).collect(), isa: Isa::detect() }
    }
}

impl<A: EngineFamily> EngineSource<A> for Engines {
    fn candidates(&self, routes: &Routes<A>) -> Vec<Maker<A>> {
        let best = || suited(routes).into_iter().take(1);
        let mut entries: Vec<&'static Entry<A>> = Vec::new();
        for name in &self.names {
            match name.as_str() {
                AUTO => entries.extend(best()),
                name => entries.extend(find::<A>(name)),
            }
        }
        if entries.is_empty() {
            entries.extend(best());
        }
        entries.extend(OTHERS.iter().filter_map(|name| find::<A>(name)));
        let mut seen = Vec::new();
        entries.retain(|entry| {
            let is_new = !seen.contains(&entry.name);
            seen.push(entry.name);
            is_new
        });
        let isa = self.isa;
        let maker = |entry: &'static Entry<A>| {
            Maker::new(entry.name, move |routes: &Routes<A>| Ok(entry.build(routes, isa)?))
        };
        entries.into_iter().map(maker).collect()
    }
}
