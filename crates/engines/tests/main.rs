//! The integration tests of the crate, as one binary: linking takes longer than most of them run.

use fibula_baselines::registry;
use fibula_core::Addr;
use fibula_engines::Entry;

mod any_isa;
mod definitions;
mod miri;
mod narrow;
mod real;

/// The product's engines and the baselines: one suite for all.
fn engines<A: Addr>() -> &'static [Entry<A>] {
    registry().engines()
}

/// The one of this name.
fn find<A: Addr>(name: &str) -> Option<&'static Entry<A>> {
    registry().find(name)
}
