//! The engine policy for a live table.

use fibula_core::{Addr, Routes};
use fibula_engines::Entry;
use fibula_rib::{EngineSource, Maker};

use crate::{EngineChoice, FibOptions};

/// Fallback engines for a table that is already in service. The last of them accepts any table.
const OTHERS: [&str; 4] = ["runmap", "dxr18", "planb", "radix"];

/// The engines of a live table: the engines of the list, or the engines that suit the table, which are chosen again
/// as it changes. The engines that accept any table follow, because a table in service must not stop. A live table
/// has no stored engine and cannot be searched, so these two choices also select the engines that suit the table.
///
/// ```
/// use fibula_core::{Hop, Prefix, Routes};
/// use fibula_fib::FibOptions;
/// use fibula_rib::EngineSource;
///
/// let names = |options: FibOptions, routes: &Routes<u32>| -> Vec<&str> {
///     options.candidates(routes).iter().map(|maker| maker.name()).collect()
/// };
/// let hosts: Routes<u32> = (0..9).map(|i| (Prefix::host(i), Hop::new(0))).collect();
/// assert_eq!(names(FibOptions::default(), &Routes::default())[0], "runmap");
/// assert_eq!(names(FibOptions::default(), &hosts)[..2], ["runmap", "dxr18"]);
/// let poptrie = FibOptions::default().engines(["poptrie18"]);
/// assert_eq!(names(poptrie, &hosts)[..3], ["poptrie18", "runmap", "dxr18"]);
/// ```
impl<A: Addr> EngineSource<A> for FibOptions {
    fn candidates(&self, routes: &Routes<A>) -> Vec<Maker<A>> {
        let best = || self.registry.suited(routes).into_iter().take(1);
        let mut entries: Vec<Entry<A>> = Vec::new();
        for choice in &self.engines {
            match choice {
                EngineChoice::Named(name) => entries.extend(self.registry.find(name).cloned()),
                EngineChoice::Auto | EngineChoice::Stored | EngineChoice::Search => {
                    entries.extend(best());
                }
            }
        }
        if entries.is_empty() {
            entries.extend(best());
        }
        entries.extend(OTHERS.iter().filter_map(|name| self.registry.find(name).cloned()));
        let mut seen = Vec::new();
        entries.retain(|entry| {
            let is_new = !seen.contains(&entry.name);
            seen.push(entry.name);
            is_new
        });
        let isa = self.isa;
        let maker = |entry: Entry<A>| {
            Maker::new(entry.name, move |routes: &Routes<A>| entry.build(routes, isa))
        };
        entries.into_iter().map(maker).collect()
    }
}
