//! Addresses that lie on a device already. This file has unsafe code: who gives places in a device's memory promises
//! that they are there.
#![allow(unsafe_code)]

use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::slice;
use std::sync::Arc;

use fibula_core::{Family, Hop};

use crate::device::sealed::Sealed;
use crate::device::{Device, DeviceKey, DeviceTable, key_bytes};
use crate::error::DeviceError;

/// The order of the bytes of addresses in a device's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrder {
    /// Numbers of the host, `u32` or `u128`: on all machines with a GPU the byte of the lowest value first, and the
    /// lower half of an IPv6 address before the upper one.
    #[default]
    Host,
    /// As in packets and in columns of 4 or 16 bytes: the byte of the highest value first.
    Network,
}

/// A batch whose addresses lie in a device's memory, and whose hops are written there.
///
/// | device | place of addresses and hops | stream |
/// |---|---|---|
/// | `cuda:N` | address of the device, in the primary context or managed memory | `CUstream`; 1 is the legacy default stream, 2 that of the thread |
/// | `opencl:N` | `cl_mem` of the device's context ([`Device::context`]) | `cl_command_queue` of that context |
/// | `cpu` | address in the program | none: hops are there when the call returns |
#[derive(Clone, Copy, Debug)]
pub struct ResidentBatch {
    pub(crate) family: Family,
    pub(crate) keys: usize,
    pub(crate) hops: usize,
    pub(crate) count: u32,
    pub(crate) order: KeyOrder,
    pub(crate) stream: Option<usize>,
}

impl ResidentBatch {
    /// `count` addresses of a family at `keys`, whose hops ([`Hop::to_bits`]) go to `hops`.
    ///
    /// # Safety
    /// Whenever it is given to [`Device::look_up_resident`], until that work is done: `keys` is a place, as the table
    /// above has it, with so many addresses of the family, which nobody writes; `hops` is one with room for so many
    /// `u32`, which nobody else reads or writes. Work that comes before or after it in the same stream may.
    pub unsafe fn new(family: Family, keys: usize, hops: usize, count: u32) -> Self {
        Self { family, keys, hops, count, order: KeyOrder::Host, stream: None }
    }

    /// Addresses whose bytes are in this order.
    pub fn order(self, order: KeyOrder) -> Self {
        Self { order, ..self }
    }

    /// The caller's stream, in whose order the work is done.
    ///
    /// # Safety
    /// The stream exists until the work is done, and is one of the device's context.
    pub unsafe fn on_stream(self, stream: usize) -> Self {
        Self { stream: Some(stream), ..self }
    }

    /// Refuses what a kernel cannot read: devices read whole words, at multiples of their length.
    pub(crate) fn check_places(&self, device: &str) -> Result<(), DeviceError> {
        let places = [("addresses", self.keys, key_bytes(self.family)), ("hops", self.hops, 4)];
        for (what, place, len) in places {
            if !place.is_multiple_of(len) {
                let reason = format!("the place of the {what} is no multiple of {len} bytes");
                return Err(DeviceError::Failed { device: device.into(), call: "look up", reason });
            }
        }
        Ok(())
    }

    /// Addresses and hops of a device that works in the memory of the program.
    pub(crate) fn in_the_program<'a>(self) -> (&'a [u8], &'a mut [u32]) {
        let (keys, hops) =
            (ptr::with_exposed_provenance(self.keys), ptr::with_exposed_provenance_mut(self.hops));
        if self.count == 0 {
            return (&[], &mut []);
        }
        let count = self.count as usize;
        // SAFETY: `new`'s caller promised that both are there, and that nobody else uses them meanwhile; hops were
        // found aligned, and any bytes are hops.
        unsafe {
            (
                slice::from_raw_parts(keys, count * key_bytes(self.family)),
                slice::from_raw_parts_mut(hops, count),
            )
        }
    }
}

/// Lookups that were begun in a stream. It keeps the table until they are done; dropping it waits for them.
pub trait InFlight: Send {
    /// Whether they are done. Also true if the device has failed.
    fn poll(&mut self) -> bool;

    /// Waits for them.
    ///
    /// # Errors
    /// If the device failed; the hops are then undefined.
    fn wait(&mut self) -> Result<(), DeviceError>;
}

/// Memory of a device.
pub trait DeviceBuffer: Sealed + Send + Sync {
    /// Copies these bytes to its start, and waits.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If there are more than it has room for.
    fn write(&mut self, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Copies as many bytes from its start, and waits.
    ///
    /// # Errors
    /// If the device fails.
    ///
    /// # Panics
    /// If it does not have as many.
    fn read(&self, bytes: &mut [u8]) -> Result<(), DeviceError>;

    /// Its place, for [`ResidentBatch::new`].
    fn place(&self) -> usize;
}

/// Addresses that were copied to a device once, to be looked up there many times.
///
/// ```
/// use fibula_accel::{Image, ResidentKeys, open};
/// use fibula_core::{Hop, Routes};
/// use fibula_engines::{Isa, Registry};
///
/// let routes: Routes<u32> = [("10.0.0.0/8".parse()?, Hop::new(1))].into_iter().collect();
/// let entry = Registry::product().find::<u32>("runmap").unwrap().clone();
/// let engine = entry.build(&routes, Isa::best()).unwrap();
///
/// let device = open("cpu")?;
/// let table = device.upload(Image::of(&*engine)?.into())?;
/// let mut keys = ResidentKeys::new(device, &[0x0a00_0001u32, 0x0b00_0001])?;
/// keys.look_up(&table)?;
/// assert_eq!(keys.hops()?, [Hop::new(1), Hop::NONE]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ResidentKeys<A> {
    device: Arc<dyn Device>,
    keys: Box<dyn DeviceBuffer>,
    hops: Box<dyn DeviceBuffer>,
    count: u32,
    family: PhantomData<A>,
}

impl<A: DeviceKey> ResidentKeys<A> {
    /// Copies the addresses to the device, and makes room for their hops. Before the first lookup they have none.
    ///
    /// # Errors
    /// If the driver refuses it, most often because memory is short.
    ///
    /// # Panics
    /// If there are 2^32 addresses or more.
    pub fn new(device: Arc<dyn Device>, addrs: &[A]) -> Result<Self, DeviceError> {
        let count = u32::try_from(addrs.len()).expect("less than 2^32 addresses");
        let mut keys = device.buffer(size_of_val(addrs))?;
        keys.write(bytemuck::cast_slice(addrs))?;
        let mut hops = device.buffer(addrs.len() * size_of::<u32>())?;
        hops.write(bytemuck::cast_slice(&vec![Hop::NONE.to_bits(); addrs.len()]))?;
        Ok(Self { device, keys, hops, count, family: PhantomData })
    }

    /// Looks all of them up in the table, and waits.
    ///
    /// # Errors
    /// As [`Device::look_up_resident`]; if the device failed, the hops are undefined.
    pub fn look_up(&mut self, table: &Arc<dyn DeviceTable>) -> Result<(), DeviceError> {
        let Self { keys, hops, count, .. } = self;
        // SAFETY: both are buffers of this device with so many addresses and hops. They are borrowed until the work is
        // done: it is waited for here, also if it fails.
        let batch = unsafe { ResidentBatch::new(A::FAMILY, keys.place(), hops.place(), *count) };
        self.device.look_up_resident(table, &batch)?.wait()
    }

    /// Copies the hops of the last lookup.
    ///
    /// # Errors
    /// If the device fails.
    pub fn hops(&self) -> Result<Vec<Hop>, DeviceError> {
        let mut bits = vec![0u32; self.count as usize];
        self.hops.read(bytemuck::cast_slice_mut(&mut bits))?;
        Ok(bits.into_iter().map(Hop::from_bits).collect())
    }
}

impl<A> fmt::Debug for ResidentKeys<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ResidentKeys({}, {})", self.device.name(), self.count)
    }
}
