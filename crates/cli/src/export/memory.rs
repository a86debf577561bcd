//! `--to memory`: an engine's tables as the memories of a pipeline, in a folder, with keys and updates to test it.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::Args;
use fibula_baselines::registry;
use fibula_core::{
    Addr, BoxedEngine, Hop, Lookup, Patched, Prefix, Route, Routes, TableRef, grouped,
};
use fibula_engines::Isa;
use fibula_export::ExportError;
use fibula_export::memory::Memories;
use fibula_rib::Pod;
use fibula_testkit::{Rng, RouteChurn, probes};

use crate::failure::Failure;
use crate::output::Output;

/// Random numbers of keys and updates start here, so equal calls write equal files.
const SEED: u64 = 1;

/// The options of `--to memory`.
#[derive(Args, Debug)]
#[command(next_help_heading = "Memories of a pipeline (--to memory)")]
pub struct MemoryArgs {
    /// The engine whose tables are written: sail-l (default), sail-b, sail-u, planb, dxr18, runmap
    #[arg(long, value_name = "NAME")]
    engine: Option<String>,
    /// Write keys.txt: both ends of every prefix with their neighbours, and so many random addresses, each with the
    /// engine's answer
    #[arg(long, value_name = "N")]
    keys: Option<u64>,
    /// Write updates.txt: so many changes of the table, each as the words that it writes (sail-l, sail-b, sail-u)
    #[arg(long, value_name = "N")]
    updates: Option<usize>,
}

impl MemoryArgs {
    /// Whether any of them was given.
    pub fn is_given(&self) -> bool {
        self.engine.is_some() || self.keys.is_some() || self.updates.is_some()
    }
}

/// Writes the folder and reports the result. `map.json` is written last.
pub fn write<A: Addr + Pod>(
    args: &MemoryArgs,
    routes: &Routes<A>,
    folder: &Path,
) -> Result<String, Failure> {
    let name = args.engine.as_deref().unwrap_or("sail-l");
    let Some(entry) = registry().find::<A>(name) else {
        let hint = match registry().knows(name) {
            true => "it is an engine of the other family: --family chooses one",
            false => "engines with a pipeline: sail-l, sail-b, sail-u, planb, dxr18, runmap",
        };
        return Err(Failure::new(format_args!("no engine is called {name:?} here")).hint(hint));
    };
    let mut engine = entry.build(routes, Isa::best())?;
    let failure = |error: ExportError| Failure::new(error);
    let memories = memories(&engine).map_err(failure)?;
    if args.updates.is_some() && !memories.scheme.starts_with("sail") {
        let scheme = memories.scheme;
        return Err(Failure::new(format_args!("--updates: {scheme} does not change word by word"))
            .hint("sail-l, sail-b and sail-u do"));
    }
    fs::create_dir_all(folder).map_err(|error| Failure::io(folder.display(), &error))?;
    for image in &memories.images {
        let mut out = Output::create(&folder.join(format!("{}.hex", image.name)))?;
        image.write_hex(&mut out)?;
        out.finish()?;
    }
    let bits: u64 = memories.images.iter().filter(|i| i.on_chip).map(|i| i.bits()).sum();
    let (count, map) = (memories.images.len(), memories.map(routes.hop_count()));
    drop(memories);
    if let Some(random) = args.keys {
        write_keys(&engine, routes, random, folder)?;
    }
    if let Some(updates) = args.updates {
        write_updates(&mut engine, routes, updates, folder)?;
    }
    let mut out = Output::create(&folder.join("map.json"))?;
    out.write_all(map.as_bytes())?;
    out.finish()?;
    Ok(format!("{count} memories of {name}, {} KiB of them on the chip", grouped(bits / 8192)))
}

fn memories<A: Addr>(engine: &BoxedEngine<A>) -> Result<Memories<'_>, ExportError> {
    match engine.persist() {
        Some((scheme, tables)) => Memories::of(scheme, A::FAMILY, &tables),
        None => {
            Err(ExportError::Scheme { scheme: "the engine", what: "has no stored form".into() })
        }
    }
}

/// A line for each key: the address and the code of its hop, in hexadecimal. The code is the hop plus one; 0 is no
/// route.
fn write_keys<A: Addr>(
    engine: &BoxedEngine<A>,
    routes: &Routes<A>,
    random: u64,
    folder: &Path,
) -> Result<(), Failure> {
    let mut out = Output::create(&folder.join("keys.txt"))?;
    for key in probes::boundary(routes).chain(probes::random(routes, random, SEED)) {
        writeln!(out, "{:x} {:x}", key.to_u128(), code(engine.lookup(key)))?;
    }
    out.finish()
}

fn code(hop: Hop) -> u32 {
    hop.to_bits().wrapping_add(1)
}

/// For each change: `u PREFIX CODE`, then `k KEY BEFORE AFTER` for keys around the prefix, then the steps.
fn write_updates<A: Addr>(
    engine: &mut BoxedEngine<A>,
    routes: &Routes<A>,
    updates: usize,
    folder: &Path,
) -> Result<(), Failure> {
    let mut out = Output::create(&folder.join("updates.txt"))?;
    let (mut routes, mut churn, mut rng) = (routes.clone(), RouteChurn::new(SEED), Rng::new(SEED));
    for _ in 0..updates {
        let change = churn.burst(&routes, 1)[0];
        let (scheme, tables) = engine.persist().expect("the engine was written before");
        let tables: Vec<_> = tables.iter().map(|t| (t.name, t.bytes.to_vec())).collect();
        let keys: Vec<A> = keys_around(change.prefix, &mut rng);
        let before: Vec<Hop> = keys.iter().map(|&key| engine.lookup(key)).collect();
        routes.apply(&[change]);
        if engine.follow(&routes, &[change.prefix])? == Patched::Rebuild {
            return Err(Failure::new(format_args!(
                "--updates: {} needs a new build",
                change.prefix
            ))
            .hint("a table with fewer hops and routes has room for updates"));
        }
        writeln!(out, "u {} {:x}", change.prefix, code(change.hop))?;
        for (key, before) in keys.iter().zip(before) {
            let after = code(engine.lookup(*key));
            writeln!(out, "k {:x} {:x} {after:x}", key.to_u128(), code(before))?;
        }
        let tables: Vec<TableRef<'_>> =
            tables.iter().map(|(name, bytes)| TableRef { name, bytes }).collect();
        let old = Memories::of(scheme, A::FAMILY, &tables).map_err(Failure::new)?;
        for step in memories(engine).map_err(Failure::new)?.updates(&old) {
            writeln!(out, "{step}")?;
        }
    }
    out.finish()
}

/// The ends of the prefix with their neighbours, and two addresses inside.
fn keys_around<A: Addr>(prefix: Prefix<A>, rng: &mut Rng) -> Vec<A> {
    let one: Routes<A> = [Route { prefix, hop: Hop::new(0) }].into_iter().collect();
    probes::boundary(&one).chain([rng.addr_in(prefix), rng.addr_in(prefix)]).collect()
}
