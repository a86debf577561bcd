//! One family of a table on a device.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fibula_accel::{
    BatchSummary, Device, DeviceError, DeviceKey, DeviceTable, Image, Offloaded, Pipeline,
};
use fibula_annotate::LookupFamily;
use fibula_core::{AnyEngine, Hop, Lookup, Memory, Route, Routes};
use fibula_engines::BoxedEngine;
use fibula_fib::{Fib, IndexedRoutes};

use super::ENGINES;
use crate::failure::Failure;

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
pub(super) struct DeviceFamily<A: DeviceKey> {
    fib: Fib,
    device: Arc<dyn Device>,
    /// `None` if the family has no routes: there is nothing to look up.
    hops: Option<Placed<A>>,
    numbers: ByNeed<A>,
    lengths: ByNeed<A>,
    pipeline: Mutex<Option<Pipeline<A>>>,
    summary: Mutex<BatchSummary>,
}

/// An engine's table on the device.
struct Placed<A: DeviceKey> {
    /// The engine, if it is not the table's.
    engine: Option<BoxedEngine<A>>,
    name: &'static str,
    table: Arc<dyn DeviceTable>,
}

/// A table for routes or lengths, compiled when it is worth it; `None` inside if no engine with a kernel takes it.
struct ByNeed<A: DeviceKey> {
    asked: AtomicU64,
    placed: OnceLock<Option<Placed<A>>>,
}

impl<A: DeviceKey> Default for ByNeed<A> {
    fn default() -> Self {
        Self { asked: AtomicU64::new(0), placed: OnceLock::new() }
    }
}

impl<A: DeviceKey> DeviceFamily<A> {
    pub(super) fn new(fib: Fib, device: &Arc<dyn Device>) -> Result<Self, Failure> {
        let family = fib.family::<A>();
        let hops = match family.routes().is_empty() {
            true => None,
            false => Some(match Image::of(family.engine()) {
                Ok(image) => {
                    let table = device.upload(image.into()).map_err(Failure::new)?;
                    Placed { engine: None, name: family.engine_name(), table }
                }
                // A table is stored with the engine that is best on a CPU.
                Err(no_kernel) => {
                    let routes = numbered(family.routes(), |_, route| route.hop);
                    compile(device, &routes).map_err(|error| {
                        Failure::new(no_kernel)
                            .hint(format_args!("{}: {error}", ENGINES.join(", ")))
                    })?
                }
            }),
        };
        // Made at once, so that a device without room for it is an error before anything is written.
        let pipeline = hops.is_some().then(|| Pipeline::new(device.clone(), SLOTS, SLOT));
        let pipeline = pipeline.transpose().map_err(Failure::new)?;
        Ok(Self {
            device: device.clone(),
            hops,
            numbers: ByNeed::default(),
            lengths: ByNeed::default(),
            pipeline: Mutex::new(pipeline),
            summary: Mutex::default(),
            fib,
        })
    }

    /// The engine on the device, the bytes of its table, and the engine that the table has if it is another one.
    pub(super) fn place(&self) -> Option<(&'static str, usize, Option<&'static str>)> {
        let Placed { engine, name, table } = self.hops.as_ref()?;
        let other = engine.as_ref().map(|_| self.fib.family::<A>().engine_name());
        Some((name, table.image().bytes().len(), other))
    }

    pub(super) fn take_summary(&self) -> BatchSummary {
        std::mem::take(&mut *self.summary.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, summary: BatchSummary) {
        *self.summary.lock().unwrap_or_else(PoisonError::into_inner) += summary;
    }

    /// Looks up on the device. Several threads take turns: each finds the device free of other work, and decodes or
    /// writes meanwhile.
    fn look_up(&self, placed: &Placed<A>, addrs: &[A], hops: &mut [Hop]) {
        let own: &dyn AnyEngine<A> = self.fib.family::<A>().engine();
        let engine = placed.engine.as_deref().unwrap_or(own);
        let mut pipeline = self.pipeline.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *pipeline {
            Some(pipeline) if addrs.len() >= AT_LEAST => {
                let offloaded = Offloaded { engine: &engine, table: placed.table.clone() };
                let summary = pipeline.look_up(&offloaded, addrs, hops);
                self.add(summary);
            }
            _ => {
                drop(pipeline);
                engine.lookup_batch(addrs, hops);
                self.add(by_cpu(addrs.len()));
            }
        }
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
        let is_worth = self.hops.is_some() && asked >= WORTH.max(routes.len() as u64 / 4);
        let placed = is_worth.then(|| {
            table.placed.get_or_init(|| match compile(&self.device, &numbered(routes, number)) {
                Ok(placed) => Some(placed),
                Err(error) => {
                    self.add(BatchSummary {
                        failures: 1,
                        error: Some(error),
                        ..BatchSummary::default()
                    });
                    None
                }
            })
        });
        match placed {
            Some(Some(placed)) => self.look_up(placed, addrs, hops),
            _ => {
                cpu(addrs, hops);
                self.add(by_cpu(addrs.len()));
            }
        }
    }
}

fn by_cpu(count: usize) -> BatchSummary {
    BatchSummary { on_cpu: count, ..BatchSummary::default() }
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
    let options = crate::engines::options(ENGINES);
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
        match &self.hops {
            Some(placed) => self.look_up(placed, addrs, hops),
            None => self.fib.family::<A>().engine().lookup_batch(addrs, hops),
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
