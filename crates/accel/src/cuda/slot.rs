use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::result::{self, DriverError, event, stream};
use cudarc::driver::sys::{CUdeviceptr, CUevent, CUresult, CUstream};
use fibula_core::Family;

use super::launch::launch;
use super::owned::{Owned, new_event, new_host_memory, new_memory, new_stream};
use super::table::CudaTable;
use super::{Function, Opened, failed};
use crate::device::{DeviceTable, Slot, key_bytes};
use crate::error::DeviceError;
use crate::image::Form;
use crate::launch::Arguments;

/// A slot: a stream, pinned keys and hops, and memory for both on the device.
pub(super) struct CudaSlot {
    device: Arc<Opened>,
    family: Family,
    capacity: usize,
    stream: Owned<CUstream>,
    /// Before and after the kernel, and when the hops were copied.
    begun: Owned<CUevent>,
    ended: Owned<CUevent>,
    copied: Owned<CUevent>,
    host_keys: Owned<*mut c_void>,
    host_hops: Owned<*mut c_void>,
    keys: Owned<CUdeviceptr>,
    hops: Owned<CUdeviceptr>,
    /// The kernel of the last batch.
    kernel: Option<(&'static Form, Function)>,
    flight: Option<Flight>,
    /// The addresses of the last batch.
    count: usize,
    time: Option<Duration>,
    has_failed: bool,
}

/// A batch that was submitted.
struct Flight {
    count: usize,
    /// Kept until the work is done.
    _table: Arc<dyn DeviceTable>,
}

impl CudaSlot {
    pub(super) fn new(
        device: &Arc<Opened>,
        family: Family,
        capacity: usize,
    ) -> Result<Self, DeviceError> {
        let (key_bytes, hop_bytes) = (capacity * key_bytes(family), capacity * size_of::<u32>());
        let made = || {
            Ok(Self {
                device: device.clone(),
                family,
                capacity,
                stream: new_stream(device)?,
                begun: new_event(device)?,
                ended: new_event(device)?,
                copied: new_event(device)?,
                host_keys: new_host_memory(device, key_bytes)?,
                host_hops: new_host_memory(device, hop_bytes)?,
                keys: new_memory(device, key_bytes)?,
                hops: new_memory(device, hop_bytes)?,
                kernel: None,
                flight: None,
                count: 0,
                time: None,
                has_failed: false,
            })
        };
        made().map_err(device.failed("make a slot"))
    }

    /// Enqueues the batch.
    fn enqueue(
        &self,
        table: &CudaTable,
        kernel: Function,
        count: usize,
    ) -> Result<(), DriverError> {
        let _entered = self.device.enter()?;
        let stream = self.stream.get();
        let arguments = Arguments {
            keys: self.keys.get(),
            hops: self.hops.get(),
            count: count as u32,
            is_network: 0,
            table: table.memory.get(),
            head: *table.image().head(),
        };
        // SAFETY: copies and kernel are done in this order. Host and device have room for as many keys and hops, and
        // nobody gets at the host's while the slot is in flight. The kernel is that of the table's form.
        unsafe {
            let keys = slice::from_raw_parts(
                self.host_keys.get().cast::<u8>(),
                count * key_bytes(self.family),
            );
            result::memcpy_htod_async(self.keys.get(), keys, stream)?;
            event::record(self.begun.get(), stream)?;
            launch(kernel, &arguments, stream)?;
            event::record(self.ended.get(), stream)?;
            let hops = slice::from_raw_parts_mut(self.host_hops.get().cast::<u32>(), count);
            result::memcpy_dtoh_async(hops, self.hops.get(), stream)?;
            event::record(self.copied.get(), stream)
        }
    }

    /// Waits for the batch in flight.
    fn finish(&self) -> Result<Duration, DriverError> {
        let _entered = self.device.enter()?;
        // SAFETY: the events are there, and were recorded.
        let milliseconds = unsafe {
            event::synchronize(self.copied.get())?;
            event::elapsed(self.begun.get(), self.ended.get())?
        };
        Ok(Duration::from_secs_f32(milliseconds.max(0.0) / 1000.0))
    }

    /// Gives the slot up after a failure, once its work is done: what its memory has is not known any more.
    fn abandon(&mut self) {
        self.drain();
        self.has_failed = true;
        self.count = 0;
    }

    fn drain(&self) {
        // An error is one of a device that has failed already.
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: the stream is there.
            let _ = unsafe { stream::synchronize(self.stream.get()) };
        }
    }
}

impl Slot for CudaSlot {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn keys_mut(&mut self) -> &mut [u8] {
        assert!(self.flight.is_none(), "the slot is not in flight");
        if self.has_failed {
            return &mut [];
        }
        let bytes = self.capacity * key_bytes(self.family);
        // SAFETY: there are as many bytes, all initialised, and no work uses them; the reference is the only one.
        unsafe { slice::from_raw_parts_mut(self.host_keys.get().cast(), bytes) }
    }

    fn submit(&mut self, table: &Arc<dyn DeviceTable>, count: usize) -> Result<(), DeviceError> {
        assert!(count <= self.capacity, "at most as many addresses as the slot has room for");
        assert!(self.flight.is_none(), "the slot is not in flight");
        let own = CudaTable::of(&self.device, table)?;
        if own.image().family() != self.family {
            return Err(DeviceError::OtherTable { device: self.device.name.clone() });
        }
        if self.has_failed {
            return Err(failed(&self.device.name, "submit a batch", "the device failed before"));
        }
        self.count = 0;
        if count == 0 {
            return Ok(());
        }
        let form = own.image().form();
        let kernel = match self.kernel {
            Some((known, kernel)) if ptr::eq(known, form) => kernel,
            _ => self.device.function(form)?,
        };
        self.kernel = Some((form, kernel));
        if let Err(error) = self.enqueue(own, kernel, count) {
            self.abandon();
            return Err(failed(&self.device.name, "submit a batch", error));
        }
        self.flight = Some(Flight { count, _table: table.clone() });
        Ok(())
    }

    fn poll(&mut self) -> bool {
        let is_under_way = || {
            let _entered = self.device.enter()?;
            // SAFETY: the event is there.
            unsafe { event::query(self.copied.get()) }
        };
        // Another error is for `wait` to report.
        self.flight.is_none() || is_under_way() != Err(DriverError(CUresult::CUDA_ERROR_NOT_READY))
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        let Some(flight) = self.flight.take() else { return Ok(()) };
        match self.finish() {
            Ok(time) => {
                self.time = Some(time);
                self.count = flight.count;
                Ok(())
            }
            Err(error) => {
                self.abandon();
                Err(failed(&self.device.name, "look up", error))
            }
        }
    }

    fn hops(&self) -> &[u32] {
        assert!(self.flight.is_none(), "the slot is not in flight");
        // SAFETY: there are as many hops, all initialised; no work writes them, and no other reference does.
        unsafe { slice::from_raw_parts(self.host_hops.get().cast(), self.count) }
    }

    fn kernel_time(&self) -> Option<Duration> {
        self.time
    }
}

impl Drop for CudaSlot {
    fn drop(&mut self) {
        self.drain();
    }
}
