//! Our engines: `auto`, or an engine by its name, and the instruction set that it runs on (`FIBULA_ISA` forces one).

use std::{env, io, slice};

use bench_peer::{Built, Route, Table, serve};
use fibula_core::{Addr, BoxedEngine, Hop, Prefix, Routes};
use fibula_engines::Isa;

fn main() -> io::Result<()> {
    serve("fibula", env!("CARGO_PKG_VERSION"), build::<u32>, build::<u128>)
}

struct Engine<A: Addr> {
    engine: BoxedEngine<A>,
    note: String,
}

impl<A: Addr> Table<A> for Engine<A> {
    fn look_up(&self, keys: &[A], hops: &mut [u32]) {
        // SAFETY: `Hop` is a transparent wrapper of `u32`, and any 32 bits are one.
        let hops =
            unsafe { slice::from_raw_parts_mut(hops.as_mut_ptr().cast::<Hop>(), hops.len()) };
        self.engine.lookup_batch(keys, hops);
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.engine.memory().total())
    }

    fn note(&self) -> String {
        self.note.clone()
    }
}

fn build<A: Addr>(routes: &[Route<A>]) -> Built<A> {
    let name = env::args().nth(1).unwrap_or_else(|| "auto".to_owned());
    let mut all = Vec::with_capacity(routes.len());
    for &(addr, len, hop) in routes {
        let prefix = Prefix::new(addr, len).map_err(|error| error.to_string())?;
        all.push((prefix, Hop::new(hop)));
    }
    let routes: Routes<A> = all.into_iter().collect();
    let (registry, isa) = (fibula_baselines::registry(), Isa::detect());
    if name == "auto" {
        let chosen = registry.auto(&routes, isa);
        let note = format!("{}; {}", isa.name(), chosen.reason);
        return Ok(Box::new(Engine { engine: chosen.engine, note }));
    }
    let entry = registry
        .find::<A>(&name)
        .ok_or_else(|| format!("no engine of IP{} is called {name}", A::FAMILY))?;
    let isa = isa.best_of(entry.isas);
    let engine = entry.build(&routes, isa).map_err(|error| error.to_string())?;
    Ok(Box::new(Engine { engine, note: isa.name().to_owned() }))
}
