use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError, event, stream};
use cudarc::driver::sys::{CUdeviceptr, CUevent, CUevent_flags, CUstream};

use super::Opened;

/// Something that the driver made: a stream, an event, memory. It is freed when it is dropped.
pub(super) struct Owned<T: Copy> {
    device: Arc<Opened>,
    at: T,
    free: unsafe fn(T) -> Result<(), DriverError>,
}

// SAFETY: the driver's calls may be made from any thread, with handles that any thread made.
unsafe impl<T: Copy> Send for Owned<T> {}
// SAFETY: as above; a reference gives the handle alone.
unsafe impl<T: Copy> Sync for Owned<T> {}

impl<T: Copy> Owned<T> {
    pub(super) fn get(&self) -> T {
        self.at
    }

    pub(super) fn device(&self) -> &Arc<Opened> {
        &self.device
    }

    fn new(
        device: &Arc<Opened>,
        make: impl FnOnce() -> Result<T, DriverError>,
        free: unsafe fn(T) -> Result<(), DriverError>,
    ) -> Result<Self, DriverError> {
        let _entered = device.enter()?;
        Ok(Self { device: device.clone(), at: make()?, free })
    }
}

impl<T: Copy> Drop for Owned<T> {
    fn drop(&mut self) {
        // An error is one of a device that has failed already: what it had is lost anyway.
        if let Ok(_entered) = self.device.enter() {
            // SAFETY: it is freed once, by the function that belongs to the one that made it. Work that uses it is
            // done: slots and uploads wait for theirs before they let go.
            let _ = unsafe { (self.free)(self.at) };
        }
    }
}

/// A stream whose work is not ordered with that of other streams.
pub(super) fn new_stream(device: &Arc<Opened>) -> Result<Owned<CUstream>, DriverError> {
    Owned::new(device, || stream::create(stream::StreamKind::NonBlocking), stream::destroy)
}

/// An event that knows its time. A thread that waits for it spins: a batch takes less time than to wake a thread.
pub(super) fn new_event(device: &Arc<Opened>) -> Result<Owned<CUevent>, DriverError> {
    Owned::new(device, || event::create(CUevent_flags::CU_EVENT_DEFAULT), event::destroy)
}

/// Memory of the device.
pub(super) fn new_memory(
    device: &Arc<Opened>,
    bytes: usize,
) -> Result<Owned<CUdeviceptr>, DriverError> {
    // SAFETY: nobody reads it before it was written: kernels read what was copied in, copies what kernels wrote.
    Owned::new(device, || unsafe { result::malloc_sync(bytes.max(1)) }, result::free_sync)
}

/// Pinned memory of the host, all zeros.
pub(super) fn new_host_memory(
    device: &Arc<Opened>,
    bytes: usize,
) -> Result<Owned<*mut c_void>, DriverError> {
    let bytes = bytes.max(1);
    // SAFETY: the memory has so many bytes, which are initialised before anybody else knows of them.
    let make = || unsafe {
        let at = result::malloc_host(bytes, 0)?;
        at.cast::<u8>().write_bytes(0, bytes);
        Ok(at)
    };
    Owned::new(device, make, result::free_host)
}
