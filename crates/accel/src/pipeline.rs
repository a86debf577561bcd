use std::collections::VecDeque;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Hop, Lookup};

use crate::device::{Device, DeviceKey, DeviceTable, Slot};
use crate::error::DeviceError;

/// A table on a device, with the engine that it was made of: one generation for a whole batch.
#[derive(Clone)]
pub struct Offloaded<'a, A> {
    /// The engine, which looks up what the device fails to.
    pub engine: &'a dyn Lookup<A>,
    /// Its copy on the device.
    pub table: Arc<dyn DeviceTable>,
}

/// What looked a batch up.
#[derive(Clone, Debug, Default)]
pub struct BatchSummary {
    /// Addresses that the device looked up.
    pub on_device: usize,
    /// Addresses that the CPU looked up.
    pub on_cpu: usize,
    /// Parts of the batch that the device failed to look up; the CPU did.
    pub failures: usize,
    /// The first failure.
    pub error: Option<DeviceError>,
    /// The device's time for kernels, as far as it says.
    pub kernel_time: Duration,
}

impl AddAssign for BatchSummary {
    fn add_assign(&mut self, other: Self) {
        self.on_device += other.on_device;
        self.on_cpu += other.on_cpu;
        self.failures += other.failures;
        self.error = self.error.take().or(other.error);
        self.kernel_time += other.kernel_time;
    }
}

/// Several slots of a device, which work on the parts of a batch at the same time: while one computes, the next one's
/// keys and the last one's hops are copied. Double buffering is the form with two slots.
///
/// A part that the device fails to look up goes to the engine on the CPU, and the slot is made anew. If that fails, the
/// pipeline goes on with the others, and without any of them by the CPU alone.
///
/// ```
/// use fibula_accel::{Image, Offloaded, Pipeline, open};
/// use fibula_core::{Hop, Routes};
/// use fibula_engines::{Isa, Registry};
///
/// let routes: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(1))].into_iter().collect();
/// let entry = Registry::product().find::<u32>("runmap").unwrap().clone();
/// let engine = entry.build(&routes, Isa::best()).unwrap();
///
/// let device = open("cpu")?;
/// let table = device.upload(Image::of(&*engine)?.into())?;
/// let mut pipeline = Pipeline::<u32>::new(device, 2, 1 << 16)?;
/// let addrs: Vec<u32> = (0..200_000).map(|i| i * 20_000).collect();
/// let mut hops = vec![Hop::NONE; addrs.len()];
/// let summary = pipeline.look_up(&Offloaded { engine: &*engine, table }, &addrs, &mut hops);
/// assert_eq!((summary.on_device, summary.failures), (200_000, 0));
/// // 10.3.122.0 and 11.235.194.0
/// assert_eq!((hops[8_400], hops[10_000]), (Hop::new(1), Hop::NONE));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Pipeline<A: DeviceKey> {
    device: Arc<dyn Device>,
    capacity: usize,
    pub(crate) slots: VecDeque<Box<dyn Slot>>,
    family: std::marker::PhantomData<A>,
}

impl<A: DeviceKey> Pipeline<A> {
    /// A pipeline of `slots` slots (at least 1; 2 to 4 are good) for parts of up to `capacity` addresses.
    ///
    /// # Errors
    /// As [`Device::slot`].
    pub fn new(
        device: Arc<dyn Device>,
        slots: usize,
        capacity: usize,
    ) -> Result<Self, DeviceError> {
        let capacity = capacity.max(1);
        let slots = (0..slots.max(1))
            .map(|_| device.slot(A::FAMILY, capacity))
            .collect::<Result<_, _>>()?;
        Ok(Self { device, capacity, slots, family: std::marker::PhantomData })
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// The most addresses of a part.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Looks up `addrs[i]` into `hops[i]`, with the device alone.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn look_up(
        &mut self,
        table: &Offloaded<'_, A>,
        addrs: &[A],
        hops: &mut [Hop],
    ) -> BatchSummary {
        assert_eq!(addrs.len(), hops.len(), "as many hops as addresses");
        // Not less than a part for each slot, so that they overlap, but for batches so small that a part costs more
        // than its addresses do.
        let share = addrs.len().div_ceil(self.slots.len().max(1));
        let len = share.max(SMALL).min(self.capacity);
        let parts = addrs.chunks(len).zip(hops.chunks_mut(len));
        let mut feeder = Feeder::new(self, table);
        for (addrs, hops) in parts {
            if !feeder.has_room() {
                feeder.finish_first();
            }
            feeder.submit(addrs, hops);
        }
        feeder.finish()
    }

    /// A slot in place of one that has failed.
    fn renew(&mut self) {
        self.slots.extend(self.device.slot(A::FAMILY, self.capacity).ok());
    }
}

/// Parts of a batch are not made smaller than this for the sake of the overlap.
const SMALL: usize = 1 << 14;

impl<A: DeviceKey> fmt::Debug for Pipeline<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { device, capacity, slots, .. } = self;
        write!(f, "Pipeline({}, {} slots of {capacity})", device.name(), slots.len())
    }
}

/// Gives parts of a batch to the slots of a pipeline, and takes their hops, in the order in which it gave them.
pub(crate) struct Feeder<'p, 't, A: DeviceKey> {
    pipeline: &'p mut Pipeline<A>,
    table: &'p Offloaded<'t, A>,
    in_flight: VecDeque<Part<'p, A>>,
    summary: BatchSummary,
}

/// A part in flight.
struct Part<'p, A> {
    slot: Box<dyn Slot>,
    addrs: &'p [A],
    hops: &'p mut [Hop],
}

impl<'p, 't, A: DeviceKey> Feeder<'p, 't, A> {
    pub(crate) fn new(pipeline: &'p mut Pipeline<A>, table: &'p Offloaded<'t, A>) -> Self {
        Self { pipeline, table, in_flight: VecDeque::new(), summary: BatchSummary::default() }
    }

    /// Whether a slot is free, or there is none at all.
    pub(crate) fn has_room(&self) -> bool {
        !self.pipeline.slots.is_empty() || self.in_flight.is_empty()
    }

    /// Whether the device still works.
    pub(crate) fn is_alive(&self) -> bool {
        !self.pipeline.slots.is_empty() || !self.in_flight.is_empty()
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether the first part in flight is done.
    pub(crate) fn is_first_done(&mut self) -> bool {
        self.in_flight.front_mut().is_some_and(|part| part.slot.poll())
    }

    /// Begins to look a part up, in a free slot.
    pub(crate) fn submit(&mut self, addrs: &'p [A], hops: &'p mut [Hop]) {
        let Some(mut slot) = self.pipeline.slots.pop_front() else {
            return self.by_cpu(addrs, hops);
        };
        let keys = bytemuck::cast_slice(addrs);
        let result = match slot.keys_mut().get_mut(..keys.len()) {
            Some(to) => {
                to.copy_from_slice(keys);
                slot.submit(&self.table.table, addrs.len())
            }
            None => Err(DeviceError::Failed {
                device: self.pipeline.device.name().into(),
                call: "fill a slot",
                reason: "the device failed before".into(),
            }),
        };
        match result {
            Ok(()) => self.in_flight.push_back(Part { slot, addrs, hops }),
            Err(error) => self.failed(slot, error, addrs, hops),
        }
    }

    /// Waits for the first part in flight.
    pub(crate) fn finish_first(&mut self) {
        let Some(Part { mut slot, addrs, hops }) = self.in_flight.pop_front() else { return };
        if let Err(error) = slot.wait() {
            return self.failed(slot, error, addrs, hops);
        }
        copy_hops(slot.hops(), hops);
        self.summary.on_device += addrs.len();
        self.summary.kernel_time += slot.kernel_time().unwrap_or_default();
        self.pipeline.slots.push_back(slot);
    }

    /// Waits for all parts in flight.
    pub(crate) fn finish(mut self) -> BatchSummary {
        while !self.in_flight.is_empty() {
            self.finish_first();
        }
        std::mem::take(&mut self.summary)
    }

    fn failed(&mut self, slot: Box<dyn Slot>, error: DeviceError, addrs: &[A], hops: &mut [Hop]) {
        drop(slot);
        self.pipeline.renew();
        self.summary.failures += 1;
        self.summary.error.get_or_insert(error);
        self.by_cpu(addrs, hops);
    }

    fn by_cpu(&mut self, addrs: &[A], hops: &mut [Hop]) {
        self.table.engine.lookup_batch(addrs, hops);
        self.summary.on_cpu += addrs.len();
    }
}

/// Writes hops that a slot has as numbers. A function of this crate, not of whoever uses a pipeline for its type of
/// addresses, so that it is compiled as the crate is.
fn copy_hops(bits: &[u32], hops: &mut [Hop]) {
    hops.iter_mut().zip(bits).for_each(|(hop, &bits)| *hop = Hop::from_bits(bits));
}
