use std::any::Any;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::ClError;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::types::CL_BLOCKING;

use super::Shared;
use crate::device::DeviceTable;
use crate::error::DeviceError;
use crate::image::Image;

/// A table in the memory of a device. It is not written once it is made.
pub(super) struct ClTable {
    device: Arc<Shared>,
    image: Arc<Image>,
    pub(super) buffer: Buffer<u8>,
}

impl DeviceTable for ClTable {
    fn image(&self) -> &Arc<Image> {
        &self.image
    }
}

impl ClTable {
    /// The table, if it is one of this device.
    pub(super) fn of<'a>(
        device: &Arc<Shared>,
        table: &'a Arc<dyn DeviceTable>,
    ) -> Result<&'a Self, DeviceError> {
        let table = (&**table as &dyn Any).downcast_ref::<Self>();
        table
            .filter(|table| Arc::ptr_eq(&table.device.opened, &device.opened))
            .ok_or_else(|| DeviceError::OtherTable { device: device.name.clone() })
    }

    pub(super) fn upload(device: &Arc<Shared>, image: Arc<Image>) -> Result<Self, DeviceError> {
        // Compiles the kernel now, so that a first batch does not wait for it.
        device.program(image.form())?;
        let made = || {
            let queue = device.queue()?;
            let mut buffer = create(device, &image)?;
            write(&queue, &mut buffer, 0..image.bytes().len(), &image)?;
            Ok(buffer)
        };
        let buffer = made().map_err(device.failed("upload a table"))?;
        Ok(Self { device: device.clone(), image, buffer })
    }

    /// A copy of this table, made on the device, with these ranges of bytes from the image.
    pub(super) fn with_changes(
        &self,
        image: Arc<Image>,
        changes: &[Range<usize>],
    ) -> Result<Self, DeviceError> {
        let device = &self.device;
        let made = || {
            let queue = device.queue()?;
            let mut buffer = create(device, &image)?;
            let common = self.image.bytes().len().min(image.bytes().len());
            // SAFETY: both buffers have as many bytes, and are different ones. The queue is drained before they can be
            // released: by the blocking writes or by `finish`.
            unsafe { queue.enqueue_copy_buffer(&self.buffer, &mut buffer, 0, 0, common, &[]) }?;
            for range in changes {
                write(&queue, &mut buffer, range.clone(), &image)?;
            }
            queue.finish()?;
            Ok(buffer)
        };
        let buffer = made().map_err(device.failed("upload the changes of a table"))?;
        Ok(Self { device: device.clone(), image, buffer })
    }
}

fn create(device: &Shared, image: &Image) -> Result<Buffer<u8>, ClError> {
    let bytes = image.bytes().len();
    // SAFETY: no memory of the host is given.
    unsafe { Buffer::create(&device.opened.context, CL_MEM_READ_WRITE, bytes, ptr::null_mut()) }
}

/// Copies a range of bytes of the image to the same place of the buffer, and waits.
fn write(
    queue: &CommandQueue,
    buffer: &mut Buffer<u8>,
    range: Range<usize>,
    image: &Image,
) -> Result<(), ClError> {
    let bytes = &image.bytes()[range.clone()];
    // SAFETY: the call returns when the bytes were read; the buffer has as many as the image.
    unsafe { queue.enqueue_write_buffer(buffer, CL_BLOCKING, range.start, bytes, &[]) }?;
    Ok(())
}
