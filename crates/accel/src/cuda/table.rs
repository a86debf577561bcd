use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::result::{self, DriverError, stream};
use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::Opened;
use super::owned::{Owned, new_memory, new_stream};
use crate::device::DeviceTable;
use crate::error::DeviceError;
use crate::image::Image;

/// A table in the memory of a device. It is not written once it is made.
pub(super) struct CudaTable {
    image: Arc<Image>,
    pub(super) memory: Owned<CUdeviceptr>,
}

impl DeviceTable for CudaTable {
    fn image(&self) -> &Arc<Image> {
        &self.image
    }
}

impl CudaTable {
    /// The table, if it is one of this device.
    pub(super) fn of<'a>(
        device: &Arc<Opened>,
        table: &'a Arc<dyn DeviceTable>,
    ) -> Result<&'a Self, DeviceError> {
        let table = (&**table as &dyn Any).downcast_ref::<Self>();
        table
            .filter(|table| Arc::ptr_eq(table.memory.device(), device))
            .ok_or_else(|| DeviceError::OtherTable { device: device.name.clone() })
    }

    pub(super) fn upload(device: &Arc<Opened>, image: Arc<Image>) -> Result<Self, DeviceError> {
        // Compiles the kernel now, so that a first batch does not wait for it.
        device.function(image.form())?;
        let all = 0..image.bytes().len();
        let memory = made(device, &image, &[all], |_, _| Ok(()));
        let memory = memory.map_err(device.failed("upload a table"))?;
        Ok(Self { image, memory })
    }

    /// A copy of this table, made on the device, with these ranges of bytes from the image.
    pub(super) fn with_changes(
        &self,
        image: Arc<Image>,
        changes: &[Range<usize>],
    ) -> Result<Self, DeviceError> {
        let device = self.memory.device();
        let common = self.image.bytes().len().min(image.bytes().len());
        let memory = made(device, &image, changes, |memory, stream| {
            // SAFETY: both have as many bytes, and are different ones; `made` waits for the stream while both live.
            unsafe { result::memcpy_dtod_async(memory, self.memory.get(), common, stream) }
        });
        let memory = memory.map_err(device.failed("upload the changes of a table"))?;
        Ok(Self { image, memory })
    }
}

/// Memory for an image: after what `begin` enqueues, these ranges are copied from the host. They are there when it
/// returns. The stream is one of its own, because copies without a stream may be under way when they return, and
/// streams of slots do not wait for them.
fn made(
    device: &Arc<Opened>,
    image: &Image,
    ranges: &[Range<usize>],
    begin: impl FnOnce(CUdeviceptr, CUstream) -> Result<(), DriverError>,
) -> Result<Owned<CUdeviceptr>, DriverError> {
    let memory = new_memory(device, image.bytes().len())?;
    let stream = new_stream(device)?;
    let _entered = device.enter()?;
    let copied = begin(memory.get(), stream.get()).and_then(|()| {
        ranges.iter().try_for_each(|range| {
            let at = memory.get() + range.start as CUdeviceptr;
            // SAFETY: the memory has as many bytes as the image, which stays as it is until the stream is done.
            unsafe { result::memcpy_htod_async(at, &image.bytes()[range.clone()], stream.get()) }
        })
    });
    // SAFETY: the stream is there. It is waited for after an error, too: what was enqueued uses the memory.
    let done = unsafe { stream::synchronize(stream.get()) };
    copied.and(done).map(|()| memory)
}
