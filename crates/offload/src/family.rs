//! One family of a table on a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fibula_accel::{
    BatchSummary, Device, DeviceError, DeviceKey, DeviceTable, Image, Offloaded, Pipeline,
};
use fibula_annotate::LookupFamily;
use fibula_core::{AnyEngine, Hop, Lookup, Memory, Route, Routes};
use fibula_engines::BoxedEngine;
use fibula_fib::{Fib, FibOptions, IndexedRoutes};

use crate::summaries::Summaries;
use crate::{ENGINES, OffloadError, Placement};

/// Slots of a pipeline: one is filled, one computes, one is read.
const SLOTS: usize = 3;
/// Addresses of a slot: a quarter of a batch, so that its parts overlap.
const SLOT: usize = 1 << 18;
/// Smaller batches go to the CPU, which is done with them before a device has begun.
const AT_LEAST: usize = 1 << 13;
/// Before so many addresses were asked for, tables for routes and lengths are not compiled for the device. The same
/// policy as that of the table's own engines for them, for half as many addresses: those of a batch come at once.
const WORTH: u64 = 1 << 15;

/// One family of the table.
pub(crate) struct DeviceFamily<A: DeviceKey> {
    fib: Fib,
    device: Arc<dyn Device>,
    /// `None` if the family has no routes: there is nothing to look up.
    there: Option<There<A>>,
    /// The table without routes, for callers that look up there themselves.
    empty: OnceLock<Result<Placed<A>, DeviceError>>,
    numbers: ByNeed<A>,
    lengths: ByNeed<A>,
    summaries: Arc<Summaries>,
}

/// What a family with routes has on the device.
struct There<A: DeviceKey> {
    hops: Placed<A>,
    slots: Mutex<Slots<A>>,
}

/// The slots of the device. Several threads take turns: each finds the device free of other work, and decodes or writes
/// meanwhile.
struct Slots<A: DeviceKey> {
    pipeline: Pipeline<A>,
    /// The last failure. A pipeline asks a device that has failed for good no more, and does not say so again.
    error: Option<DeviceError>,
}

impl<A: DeviceKey> Slots<A> {
    fn look_up(&mut self, table: &Offloaded<'_, A>, addrs: &[A], hops: &mut [Hop]) -> BatchSummary {
        let mut summary = self.pipeline.look_up(table, addrs, hops);
        match &summary.error {
            Some(error) => self.error = Some(error.clone()),
            None if summary.on_device == 0 => {
                summary.failures += 1;
                summary.error = self.error.clone();
            }
            None => {}
        }
        summary
    }
}

/// An engine's table on the device.
struct Placed<A: DeviceKey> {
    /// The engine, if it is not the table's.
    engine: Option<BoxedEngine<A>>,
    name: &'static str,
    table: Arc<dyn DeviceTable>,
}

/// A table for routes or lengths, compiled when it is worth it.
struct ByNeed<A: DeviceKey> {
    asked: AtomicU64,
    placed: OnceLock<Result<Placed<A>, DeviceError>>,
}

impl<A: DeviceKey> Default for ByNeed<A> {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), placed: OnceLock::new() }
    }
}

impl<A: DeviceKey> DeviceFamily<A> {
    pub(crate) fn new(
        fib: Fib,
        device: &Arc<dyn Device>,
        summaries: &Arc<Summaries>,
    ) -> Result<Self, OffloadError> {
        let there = match fib.family::<A>().routes().is_empty() {
            true => None,
            false => {
                let hops = place(&fib, device)?;
                // Made at once, so that a device without room for it is an error before anything is written.
                let pipeline = Pipeline::new(device.clone(), SLOTS, SLOT)?;
                Some(There { hops, slots: Mutex::new(Slots { pipeline, error: None }) })
            }
        };
        Ok(Self {
            fib,
            device: device.clone(),
            there,
            empty: OnceLock::new(),
            numbers: ByNeed::default(),
            lengths: ByNeed::default(),
            summaries: summaries.clone(),
        })
    }

    pub(crate) fn placement(&self) -> Option<Placement> {
        let Placed { engine, name, table } = &self.there.as_ref()?.hops;
        let instead_of = engine.as_ref().map(|_| self.fib.family::<A>().engine_name());
        let bytes = table.image().bytes().len();
        Some(Placement { family: A::FAMILY, engine: name, bytes, instead_of })
    }

    /// The table with the hops.
    pub(crate) fn device_table(&self) -> Result<Arc<dyn DeviceTable>, OffloadError> {
        let placed = match &self.there {
            Some(there) => Ok(&there.hops),
            None => self.empty.get_or_init(|| compile(&self.device, &Routes::default())).as_ref(),
        };
        Ok(placed.map_err(Clone::clone)?.table.clone())
    }

    /// Looks up on the device.
    fn look_up(&self, slots: &Mutex<Slots<A>>, placed: &Placed<A>, addrs: &[A], hops: &mut [Hop]) {
        let own: &dyn AnyEngine<A> = self.fib.family::<A>().engine();
        let engine = placed.engine.as_deref().unwrap_or(own);
        // A small batch does not wait for the large ones of other threads.
        let summary = match addrs.len() >= AT_LEAST {
            true => {
                let offloaded = Offloaded { engine: &engine, table: placed.table.clone() };
                let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
                slots.look_up(&offloaded, addrs, hops)
            }
            false => {
                engine.lookup_batch(addrs, hops);
                by_cpu(addrs)
            }
        };
        self.summaries.add(summary);
    }

    /// Looks up by the table for routes or lengths; by the CPU's way until it is worth compiling it.
    fn by_need(
        &self,
        table: &ByNeed<A>,
        number: fn(usize, &Route<A>) -> Hop,
        cpu: impl Fn(&[A], &mut [Hop]),
        addrs: &[A],
        hops: &mut [Hop],
    ) {
        let routes = self.fib.family::<A>().routes();
        let asked =
            table.asked.fetch_add(addrs.len() as u64, Ordering::Relaxed) + addrs.len() as u64;
        let is_worth = asked >= WORTH.max(routes.len() as u64 / 4);
        let there = self.there.as_ref().filter(|_| is_worth);
        let compiled = || compile(&self.device, &numbered(routes, number));
        match there.map(|there| (&there.slots, table.placed.get_or_init(compiled))) {
            Some((slots, Ok(placed))) => self.look_up(slots, placed, addrs, hops),
            other => {
                cpu(addrs, hops);
                let mut summary = by_cpu(addrs);
                if let Some((_, Err(error))) = other {
                    summary.failures = 1;
                    summary.error = Some(error.clone());
                }
                self.summaries.add(summary);
            }
        }
    }
}

fn by_cpu<A>(addrs: &[A]) -> BatchSummary {
    BatchSummary { on_cpu: addrs.len(), ..BatchSummary::default() }
}

/// The table of the family's engine, or, because a table is stored with the engine that is best on a CPU, one compiled
/// for an engine with a kernel.
fn place<A: DeviceKey>(fib: &Fib, device: &Arc<dyn Device>) -> Result<Placed<A>, OffloadError> {
    let family = fib.family::<A>();
    let name = family.engine_name();
    match Image::of(family.engine()) {
        Ok(image) => Ok(Placed { engine: None, name, table: device.upload(image.into())? }),
        Err(_) => {
            let routes = numbered(family.routes(), |_, route| route.hop);
            let placed = compile(device, &routes);
            placed.map_err(|error| OffloadError::NoTable { engine: name, error })
        }
    }
}

/// The routes with other hops.
fn numbered<A: DeviceKey>(
    routes: &IndexedRoutes<A>,
    number: impl Fn(usize, &Route<A>) -> Hop,
) -> Routes<A> {
    let routes = (0..routes.len()).map(|index| {
        let route = routes.get(index);
        Route { hop: number(index, &route), ..route }
    });
    routes.collect()
}

/// Compiles the routes for the first engine with a kernel that takes them.
fn compile<A: DeviceKey>(
    device: &Arc<dyn Device>,
    routes: &Routes<A>,
) -> Result<Placed<A>, DeviceError> {
    let options = FibOptions::default().engines(ENGINES);
    let failed = |reason: String| DeviceError::Failed {
        device: device.name().into(),
        call: "compile a table for it",
        reason,
    };
    let chosen = options.compile(routes).map_err(|error| failed(error.to_string()))?;
    let table = device.upload(Image::of(&*chosen.engine)?.into())?;
    Ok(Placed { engine: Some(chosen.engine), name: chosen.name, table })
}

impl<A: DeviceKey> Lookup<A> for DeviceFamily<A> {
    fn lookup(&self, addr: A) -> Hop {
        self.fib.family::<A>().engine().lookup(addr)
    }

    fn lookup_batch(&self, addrs: &[A], hops: &mut [Hop]) {
        match &self.there {
            Some(There { hops: placed, slots }) => self.look_up(slots, placed, addrs, hops),
            None => {
                self.fib.family::<A>().engine().lookup_batch(addrs, hops);
                self.summaries.add(by_cpu(addrs));
            }
        }
    }

    fn memory(&self) -> Memory {
        self.fib.family::<A>().memory()
    }
}

impl<A: DeviceKey> LookupFamily<A> for DeviceFamily<A> {
    fn engine(&self) -> &dyn Lookup<A> {
        self
    }

    fn routes(&self) -> &IndexedRoutes<A> {
        self.fib.family::<A>().routes()
    }

    fn numbers(&self, addrs: &[A], numbers: &mut [Hop]) {
        let number = |index: usize, _: &Route<A>| Hop::new(index as u32);
        let cpu = |addrs: &[A], hops: &mut [Hop]| self.fib.family::<A>().numbers(addrs, hops);
        self.by_need(&self.numbers, number, cpu, addrs, numbers);
    }

    fn lengths(&self, addrs: &[A], lengths: &mut [Hop]) {
        let length = |_: usize, route: &Route<A>| Hop::new(route.prefix.len().into());
        let cpu = |addrs: &[A], hops: &mut [Hop]| self.fib.family::<A>().lengths(addrs, hops);
        self.by_need(&self.lengths, length, cpu, addrs, lengths);
    }
}
