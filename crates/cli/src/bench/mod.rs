//! `fibula bench`: engines x tables x traffic x batch, checked against the oracle, then timed; or
//! engines x tables x bursts of changes. `fibula bench filter`: Bloom filters.

mod args;
mod device;
mod figures;
mod filter;
mod gather;
mod isa;
mod patches;
mod report;
mod updates;

use std::sync::Arc;

use core_affinity::CoreId;
use fibula_accel::{Device, DeviceKey};
use fibula_core::{Addr, BuildError, Family, Hop, Routes};

use fibula_rib::Pod;
use fibula_simd::Isa;
use fibula_testkit::Oracle;
use fibula_testkit::measure::{LookupMode, Stamp, TrafficInput, answers};
use fibula_testkit::traffic::Traffic;

use crate::engines::{self, Built};
use crate::failure::{Failure, Outcome};
use crate::input;
use crate::progress::note;
use crate::source::{self, Source};
use crate::table::{self, DEFAULT_HOPS};
pub use args::Args;
use args::{Other, Spread};
pub use device::open as open_device;
use figures::Figures;
pub use isa::{IsaChoice, isas, parse_isa};
use report::Row;
use updates::Updates;

/// Runs the command.
pub fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.other {
        Some(Other::Filter(args)) => return filter::run(args),
        None => {}
    }
    // Before anything is measured, which would be in the load.
    let stamp = Stamp::take();
    let mut bench = Bench {
        args,
        isas: isas(&args.isa, vec![Isa::detect()]),
        cores: fibula_testkit::measure::cores(),
        rows: Vec::new(),
        updates: Vec::new(),
        devices: Vec::new(),
        patches: Vec::new(),
        device: None,
        outcome: Outcome::Done,
    };
    let threads = args.most_threads() + usize::from(args.spread == Spread::Dispatch);
    if bench.cores.is_empty() {
        note("threads cannot be pinned to cores here: expect wider spreads");
    } else if threads > bench.cores.len() {
        let cores = bench.cores.len();
        let (dispatcher, cores) = (
            if args.spread == Spread::Dispatch { ", one of which dispatches," } else { "" },
            format!("{cores} {}", if cores == 1 { "core" } else { "cores" }),
        );
        note(format_args!(
            "{threads} threads{dispatcher} share {cores}: their rates do not add up"
        ));
    }
    if args.spread == Spread::Dispatch
        && args.traffic.contains(&TrafficInput::Pattern(Traffic::Seq))
    {
        return Err(Failure::new(
            "SEQ looks up one key after the other, so it has no batches to hand out",
        )
        .hint("leave SEQ out of --traffic, or measure it with --spread own"));
    }
    if let Some(name) = &args.device {
        if args.threads.len() > 1 {
            return Err(Failure::new(
                "beside a device, one number of threads is measured at a time",
            )
            .hint("give --threads one number"));
        }
        let device = device::open(name)?;
        note(format_args!("{name} is {}", device.description()));
        if !args.gather.is_empty() {
            return gather::run(args, &stamp, &device);
        }
        bench.device = Some(device);
    }
    // Unknown engines are better reported before minutes of work than after.
    engines::choose::<u32>(&args.engines)?;
    if !args.json {
        let keys = args.updates.is_empty().then_some(args.keys);
        report::machine(&stamp, args.runs, keys.filter(|_| args.keys_per_prefix.is_none()))?;
    }
    for source in source::tables(&args.table, &args.read)? {
        bench.table(&source)?;
    }
    // A wrong engine has been named, and has its own exit code.
    let is_empty = bench.rows.is_empty()
        && bench.updates.is_empty()
        && bench.devices.is_empty()
        && bench.patches.is_empty();
    if is_empty && bench.outcome == Outcome::Done {
        return Err(Failure::new("nothing was measured").hint(
            "engines of the other family are skipped; notes name the others that were skipped",
        ));
    }
    if args.json {
        match (&bench.device, &args.updates[..]) {
            (Some(_), []) => report::json(&stamp, &bench.devices)?,
            (Some(_), _) => report::json(&stamp, &bench.patches)?,
            (None, []) => report::json(&stamp, &bench.rows)?,
            (None, _) => report::json(&stamp, &bench.updates)?,
        }
    }
    Ok(bench.outcome)
}

struct Bench<'a> {
    args: &'a Args,
    isas: Vec<Isa>,
    cores: Vec<CoreId>,
    rows: Vec<Row>,
    updates: Vec<updates::Row>,
    devices: Vec<device::Row>,
    patches: Vec<patches::Row>,
    device: Option<Arc<dyn Device>>,
    outcome: Outcome,
}

impl Bench<'_> {
    fn table(&mut self, source: &(String, Source)) -> Result<(), Failure> {
        let mut loaded = table::load_aloud(std::slice::from_ref(source), &self.args.read)?;
        if loaded.has_no_values() {
            note(format_args!(
                "{}: all routes have the same values, measured with {DEFAULT_HOPS} (--synthetic-hops)",
                loaded.name
            ));
            loaded.replace_hops(DEFAULT_HOPS);
        }
        let families = loaded.families();
        let wanted = self.args.family;
        for family in families.iter().filter(|f| wanted.is_none_or(|w| w == **f)) {
            match family {
                Family::V4 => self.family::<u32>(&loaded)?,
                Family::V6 => self.family::<u128>(&loaded)?,
            }
        }
        if let Some(wanted) = wanted.filter(|wanted| !families.contains(wanted)) {
            note(format_args!("{}: no IP{wanted} routes", loaded.name));
        }
        Ok(())
    }

    fn family<A: DeviceKey + Pod>(&mut self, loaded: &table::Loaded) -> Result<(), Failure> {
        let routes = loaded.table.routes::<A>();
        let built = self.build(routes)?;
        if let Some(device) = self.device.clone() {
            match self.args.updates[..] {
                [] => self.on_device(&device, &loaded.name, routes, &built),
                _ => self.patches(&device, &loaded.name, routes, built),
            }
        } else if self.args.updates.is_empty() {
            self.lookups(&loaded.name, routes, &built)
        } else {
            self.updates(&loaded.name, routes, built)
        }
    }

    fn lookups<A: Addr>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        built: &[Built<A>],
    ) -> Result<(), Failure> {
        let oracle = Oracle::new(routes);
        for traffic in &self.args.traffic {
            let keys = self.keys(routes, traffic)?;
            if keys.is_empty() {
                continue;
            }
            let expected: Vec<Vec<Hop>> = keys.iter().map(|keys| answers(&oracle, keys)).collect();
            let modes: Vec<LookupMode> = match traffic {
                TrafficInput::Pattern(Traffic::Seq) => vec![LookupMode::Dependent],
                _ => {
                    self.args.batch.iter().map(|batch| LookupMode::Batch(*batch as usize)).collect()
                }
            };
            for mode in modes {
                let right = self.right(built, &keys, &expected, mode);
                for &threads in &self.args.threads {
                    let (keys, expected) =
                        (&keys[..threads as usize], &expected[..threads as usize]);
                    let group = self.measure(&right, keys, expected, mode);
                    let new = |figures| {
                        Row::new(table, routes, traffic, self.args, (mode, threads), figures)
                    };
                    let rows: Vec<Row> = group.into_iter().map(new).collect();
                    if !self.args.json {
                        report::group(&rows)?;
                    }
                    self.rows.extend(rows);
                }
            }
        }
        Ok(())
    }

    fn updates<A: Addr>(
        &mut self,
        table: &str,
        routes: &Routes<A>,
        built: Vec<Built<A>>,
    ) -> Result<(), Failure> {
        let mut updates = Updates::new(routes, built, self.args.seed)?;
        for burst in &self.args.updates {
            let rows =
                updates.measure(table, *burst as usize, self.args.runs, &mut self.outcome)?;
            if !self.args.json {
                updates::group(&rows)?;
            }
            self.updates.extend(rows);
        }
        Ok(())
    }

    fn build<A: Addr>(&self, routes: &Routes<A>) -> Result<Vec<Built<A>>, Failure> {
        let mut all = Vec::new();
        for choice in engines::choose::<A>(&self.args.engines)? {
            for isa in choice.forms(&self.isas) {
                match choice.build(routes, isa) {
                    Ok(built) => {
                        if let Some(reason) = &built.reason {
                            note(format_args!("IP{}: auto is {reason}", A::FAMILY));
                        }
                        all.push(built);
                    }
                    Err(error @ BuildError::Limit { .. }) => note(format_args!("skipped: {error}")),
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(all)
    }

    /// The keys of each thread.
    fn keys<A: Addr>(
        &self,
        routes: &Routes<A>,
        traffic: &TrafficInput,
    ) -> Result<Vec<Vec<A>>, Failure> {
        let (count, threads) = (self.args.keys_of(routes.len())?, self.args.most_threads());
        let keys = traffic.keys(routes, count, threads, self.args.seed, input::read_whole)?;
        if keys.is_empty() {
            note(format_args!("{traffic}: no IP{} addresses, skipped", A::FAMILY));
        }
        Ok(keys)
    }
}

#[cfg(test)]
mod tests;
