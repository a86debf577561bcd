use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::{Addr, Family};

use crate::cpu::{CpuDevice, Faults};
use crate::error::DeviceError;
use crate::image::Image;
use crate::resident::{DeviceBuffer, InFlight, ResidentBatch};
use crate::{cuda, opencl};
use sealed::Sealed;

/// What only this crate implements.
pub(crate) mod sealed {
    pub trait Sealed {}
}

/// An accelerator: memory of its own for tables, and slots in which batches of keys are looked up.
///
/// [`open`] finds one by its name. Every call may fail, at any time; a caller then looks its keys up with the engine
/// that the table was made of.
///
/// The devices are this crate's: its unsafe code relies on what they say of their memory.
pub trait Device: Sealed + Send + Sync {
    /// The name by which it was opened, for example `"opencl:0"`.
    fn name(&self) -> &str;

    /// What it is, in the words of its driver.
    fn description(&self) -> &str;

    /// Copies a table to the device. The copy is freed with the last reference to it; a slot holds one while it works.
    ///
    /// # Errors
    /// If the driver refuses it, most often because memory is short, or its compiler refuses the kernel.
    fn upload(&self, image: Arc<Image>) -> Result<Arc<dyn DeviceTable>, DeviceError>;

    /// Makes the copy of a table that differs from another one on the device in these ranges of bytes, which
    /// [`Image::changes`] gives. The other one stays as it is.
    ///
    /// # Errors
    /// As [`Device::upload`].
    fn upload_changes(
        &self,
        before: &Arc<dyn DeviceTable>,
        image: Arc<Image>,
        changes: &[Range<usize>],
    ) -> Result<Arc<dyn DeviceTable>, DeviceError>;

    /// A slot for batches of up to so many addresses of a family.
    ///
    /// # Errors
    /// If the driver refuses it, most often because memory is short.
    fn slot(&self, family: Family, capacity: usize) -> Result<Box<dyn Slot>, DeviceError>;

    /// Memory for addresses or hops that stay on the device ([`ResidentKeys`](crate::ResidentKeys)).
    ///
    /// # Errors
    /// If the driver refuses it, most often because memory is short.
    fn buffer(&self, bytes: usize) -> Result<Box<dyn DeviceBuffer>, DeviceError>;

    /// Begins to look up addresses that lie on the device. Nothing is copied. With a stream of the caller's the work is
    /// done in its order, and the call does not wait for it.
    ///
    /// # Errors
    /// If the table is not one of this device and of the batch's family, an address or a hop lies at a place that is no
    /// multiple of its length, or the driver refuses the work.
    fn look_up_resident(
        &self,
        table: &Arc<dyn DeviceTable>,
        batch: &ResidentBatch,
    ) -> Result<Box<dyn InFlight>, DeviceError>;

    /// The driver's name for the context in which the device works, `CUcontext` or `cl_context`: memory and streams
    /// for [`Device::look_up_resident`] are made in it. `None` if there is no such thing.
    fn context(&self) -> Option<usize>;
}

/// A table on a device.
pub trait DeviceTable: Any + Send + Sync {
    /// The table as it was uploaded.
    fn image(&self) -> &Arc<Image>;
}

/// Room for one batch on a device, with its own order of work: copy in, look up, copy out. The work of several slots
/// overlaps.
///
/// ```text
///   keys_mut() ── submit() ──► in flight ── wait(), or poll() until true ──► hops() ── keys_mut() ..
/// ```
///
/// `keys_mut` and `submit` panic while the slot is in flight. A slot whose device has failed has no keys, and
/// refuses batches with an error.
pub trait Slot: Send {
    /// The most addresses of a batch.
    fn capacity(&self) -> usize;

    /// Where the addresses are put, in host byte order: `u32` or `u128` by the slot's family.
    fn keys_mut(&mut self) -> &mut [u8];

    /// Begins to look up the first `count` addresses in the table.
    ///
    /// # Errors
    /// If the table is not one of this device and family, or the device fails.
    ///
    /// # Panics
    /// If `count` exceeds the capacity, or the slot is in flight.
    fn submit(&mut self, table: &Arc<dyn DeviceTable>, count: usize) -> Result<(), DeviceError>;

    /// Whether the batch is done, so that [`Slot::wait`] returns at once. True if there is none.
    fn poll(&mut self) -> bool;

    /// Waits for the batch.
    ///
    /// # Errors
    /// If the device failed; the hops are then undefined.
    fn wait(&mut self) -> Result<(), DeviceError>;

    /// The hops of the last batch ([`Hop::to_bits`](fibula_core::Hop::to_bits)), as many as it had addresses.
    fn hops(&self) -> &[u32];

    /// How long the device computed for the last batch, copies not counted; `None` if it does not say.
    fn kernel_time(&self) -> Option<Duration>;
}

/// An address as devices read it.
pub trait DeviceKey: Addr + bytemuck::Pod {}

impl DeviceKey for u32 {}
impl DeviceKey for u128 {}

/// A device that can be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Its name for [`open`].
    pub name: String,
    /// What it is, in the words of its driver.
    pub description: String,
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.description)
    }
}

/// The device of this name: `"opencl:N"`, the `N`th device of the installed OpenCL drivers, counted from 0;
/// `"cuda:N"`, that of NVIDIA's CUDA driver; or `"cpu"`, threads of this program that walk the same tables, for tests.
/// `"opencl:N:copies"` is the same device used as if it had memory of its own, whatever it has, so that a driver for
/// the CPU shows what copies do.
///
/// ```
/// use fibula_accel::{DeviceError, open};
///
/// assert!(open("cpu").is_ok());
/// assert!(matches!(open("gpu"), Err(DeviceError::UnknownName { .. })));
/// ```
///
/// # Errors
/// [`DeviceError::Absent`] says which driver or device is missing.
pub fn open(name: &str) -> Result<Arc<dyn Device>, DeviceError> {
    if name == "cpu" {
        return Ok(Arc::new(CpuDevice::new(Faults::default())));
    }
    if let Some(number) = name.strip_prefix("opencl:") {
        let (number, copies) = match number.strip_suffix(":copies") {
            Some(number) => (number, true),
            None => (number, false),
        };
        if let Ok(number) = number.parse() {
            return Ok(Arc::new(opencl::open(number, copies)?));
        }
    }
    if let Some(Ok(number)) = name.strip_prefix("cuda:").map(str::parse) {
        return Ok(Arc::new(cuda::open(number)?));
    }
    Err(DeviceError::UnknownName { name: name.into() })
}

/// The devices of this machine, and why a kind of them has none.
pub fn list() -> (Vec<Listing>, Vec<DeviceError>) {
    let (mut listings, mut absent) = (Vec::new(), Vec::new());
    for kind in [opencl::list(), cuda::list()] {
        match kind {
            Ok(devices) => listings.extend(devices),
            Err(error) => absent.push(error),
        }
    }
    (listings, absent)
}

/// Bytes of an address in a slot.
pub(crate) fn key_bytes(family: Family) -> usize {
    match family {
        Family::V4 => size_of::<u32>(),
        Family::V6 => size_of::<u128>(),
    }
}
