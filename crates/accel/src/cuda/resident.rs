use std::ptr;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError, event, stream};
use cudarc::driver::sys::{CUdeviceptr, CUevent, CUresult, CUstream};

use super::launch::launch;
use super::owned::{Owned, new_event, new_memory};
use super::table::CudaTable;
use super::{Opened, failed};
use crate::device::DeviceTable;
use crate::device::sealed::Sealed;
use crate::error::DeviceError;
use crate::launch::Arguments;
use crate::resident::{DeviceBuffer, InFlight, KeyOrder, ResidentBatch};

/// The legacy default stream, which most users of CUDA work in.
const DEFAULT: CUstream = ptr::null_mut();

/// Lookups in a stream of the caller's.
pub(super) struct CudaFlight {
    device: Arc<Opened>,
    /// Behind the kernel.
    done: Owned<CUevent>,
    /// `None` once the work is done.
    table: Option<Arc<dyn DeviceTable>>,
}

pub(super) fn look_up(
    device: &Arc<Opened>,
    table: &Arc<dyn DeviceTable>,
    batch: &ResidentBatch,
) -> Result<CudaFlight, DeviceError> {
    let own = CudaTable::of(device, table)?;
    if own.image().family() != batch.family {
        return Err(DeviceError::OtherTable { device: device.name.clone() });
    }
    batch.check_places(&device.name)?;
    let kernel = device.function(own.image().form())?;
    let arguments = Arguments {
        keys: batch.keys as CUdeviceptr,
        hops: batch.hops as CUdeviceptr,
        count: batch.count,
        is_network: u32::from(batch.order == KeyOrder::Network),
        table: own.memory.get(),
        head: *own.image().head(),
    };
    let at = batch.stream.map_or(DEFAULT, ptr::with_exposed_provenance_mut);
    let begun = || {
        let done = new_event(device)?;
        let _entered = device.enter()?;
        // SAFETY: the caller promised that the stream, the keys and the hops are there until the work is done
        // (`ResidentBatch::new`); the table is kept as long. The kernel is that of its form.
        unsafe {
            if arguments.count > 0 {
                launch(kernel, &arguments, at)?;
            }
            if let Err(error) = event::record(done.get(), at) {
                // The kernel may be under way, and nothing else would tell when it is done with the table.
                let _ = stream::synchronize(at);
                return Err(error);
            }
        }
        Ok(done)
    };
    let done = begun().map_err(device.failed("look up"))?;
    Ok(CudaFlight { device: device.clone(), done, table: Some(table.clone()) })
}

impl InFlight for CudaFlight {
    fn poll(&mut self) -> bool {
        let is_under_way = || {
            let _entered = self.device.enter()?;
            // SAFETY: the event is there.
            unsafe { event::query(self.done.get()) }
        };
        // Another error is for `wait` to report.
        self.table.is_none() || is_under_way() != Err(DriverError(CUresult::CUDA_ERROR_NOT_READY))
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        let Some(_table) = self.table.take() else { return Ok(()) };
        let waited = || {
            let _entered = self.device.enter()?;
            // SAFETY: the event is there, and was recorded.
            unsafe { event::synchronize(self.done.get()) }
        };
        waited().map_err(self.device.failed("look up"))
    }
}

impl Drop for CudaFlight {
    fn drop(&mut self) {
        // An error is one of a device that has failed: nothing of it works any more.
        let _ = self.wait();
    }
}

/// Memory of the device.
pub(super) struct CudaBuffer {
    memory: Owned<CUdeviceptr>,
    bytes: usize,
}

impl CudaBuffer {
    pub(super) fn new(device: &Arc<Opened>, bytes: usize) -> Result<Self, DeviceError> {
        let memory = new_memory(device, bytes).map_err(device.failed("make a buffer"))?;
        Ok(Self { memory, bytes })
    }

    /// Begins a copy in the default stream, and waits for it.
    fn copy(
        &self,
        begin: impl FnOnce(CUdeviceptr) -> Result<(), DriverError>,
    ) -> Result<(), DeviceError> {
        let device = self.memory.device();
        let copied = || {
            let _entered = device.enter()?;
            begin(self.memory.get())?;
            // SAFETY: the default stream is always there.
            unsafe { stream::synchronize(DEFAULT) }
        };
        copied().map_err(|error| failed(&device.name, "copy", error))
    }
}

impl Sealed for CudaBuffer {}

impl DeviceBuffer for CudaBuffer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= self.bytes, "no more than there is room for");
        // SAFETY: the memory has as many bytes; those of the host stay until the copy is done.
        self.copy(|at| unsafe { result::memcpy_htod_async(at, bytes, DEFAULT) })
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= self.bytes, "no more than there is");
        // SAFETY: as above.
        self.copy(|at| unsafe { result::memcpy_dtoh_async(bytes, at, DEFAULT) })
    }

    fn place(&self) -> usize {
        self.memory.get() as usize
    }
}
