//! Engines as the command line names them.

use std::time::Duration;

use fibula_baselines::registry;
use fibula_core::{Addr, BuildError, Routes};
use fibula_engines::{BoxedEngine, Entry};
use fibula_fib::{Chosen, EngineChoice, FibOptions};
use fibula_simd::Isa;

use crate::failure::Failure;

/// The chooser's name.
pub const AUTO: &str = "auto";

/// A table compiled by an engine.
pub struct Built<A: Addr> {
    /// The engine's name as it was requested.
    pub label: String,
    /// The form that runs.
    pub isa: Isa,
    /// The compiled table.
    pub engine: BoxedEngine<A>,
    /// How long compiling took.
    pub time: Duration,
    /// The choice, and its reason.
    pub reason: Option<String>,
    /// The name under which a snapshot stores it.
    pub name: &'static str,
}

/// A requested engine.
pub struct Choice<A: Addr> {
    /// Its name as it was requested.
    pub label: String,
    /// Its entry; `None` leaves the choice to the chooser.
    entry: Option<&'static Entry<A>>,
}

impl<A: Addr> Choice<A> {
    /// The instruction sets among `isas` for which the engine has its own forms.
    pub fn forms(&self, isas: &[Isa]) -> Vec<Isa> {
        let Some(entry) = self.entry else { return isas.to_vec() };
        let mut forms: Vec<Isa> = isas.iter().map(|&isa| Chosen::form(entry, isa)).collect();
        forms.dedup();
        forms
    }

    /// Compiles the table.
    pub fn build(&self, routes: &Routes<A>, isa: Isa) -> Result<Built<A>, BuildError> {
        let chosen = match self.entry {
            Some(entry) => Chosen::named(entry, routes, isa)?,
            None => Chosen::auto(registry(), routes, isa),
        };
        let Chosen { name, isa, reason, time, engine } = chosen;
        let (label, reason) = (self.label.clone(), self.entry.is_none().then_some(reason));
        Ok(Built { label, isa, engine, time, reason, name })
    }
}

/// Options for opening a table with these engines, in order of preference, among the product's and the baselines.
pub fn options<E: Into<EngineChoice>>(engines: impl IntoIterator<Item = E>) -> FibOptions {
    FibOptions::default().registry(registry().clone()).engines(engines)
}

/// The engines of this family in a list such as `planb,auto` or `all`. A name that only the other
/// family has is passed over.
pub fn choose<A: Addr>(names: &[String]) -> Result<Vec<Choice<A>>, Failure> {
    let mut choices: Vec<Choice<A>> = Vec::new();
    for name in names.iter().map(String::as_str) {
        match name {
            "all" => choices.extend(
                registry()
                    .engines::<A>()
                    .iter()
                    .map(|entry| Choice { label: entry.name.to_owned(), entry: Some(entry) }),
            ),
            AUTO => choices.push(Choice { label: AUTO.to_owned(), entry: None }),
            _ => match registry().find::<A>(name) {
                Some(entry) => choices.push(Choice { label: name.to_owned(), entry: Some(entry) }),
                None if registry().knows(name) => {}
                None => return Err(unknown(name)),
            },
        }
    }
    let mut seen = std::collections::HashSet::new();
    choices.retain(|choice| seen.insert(choice.label.clone()));
    Ok(choices)
}

fn unknown(name: &str) -> Failure {
    Failure::new(format_args!("no engine is called {name:?}"))
        .hint(format_args!("engines: {}, auto, all", registry().names().join(", ")))
}

/// The engines that `--engines` asks for, in words for `--help`.
pub fn list() -> String {
    fn family<A: Addr>(title: &str) -> String {
        let line = |entry: &Entry<A>| format!("  {:<12} {}\n", entry.name, entry.summary);
        format!("{title}\n{}", registry().engines::<A>().iter().map(line).collect::<String>())
    }
    format!("{}{}", family::<u32>("Engines for IPv4:"), family::<u128>("Engines for IPv6:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn lists() {
        let all = choose::<u128>(&names(&["all", "auto", "planb"])).unwrap();
        assert_eq!(all.len(), registry().engines::<u128>().len() + 1);
        assert!(choose::<u32>(&names(&["no-such"])).is_err());
        // An engine of the other family is no mistake.
        assert!(choose::<u128>(&names(&["dxr18"])).unwrap().is_empty());
    }

    #[test]
    fn forms_are_distinct() {
        let choice = &choose::<u128>(&names(&["radix"])).unwrap()[0];
        assert_eq!(choice.forms(&Isa::ALL), [Isa::Scalar]);
    }
}
