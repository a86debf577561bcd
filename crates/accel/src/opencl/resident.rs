use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::ClError;
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::types::CL_BLOCKING;

use super::launch::launch;
use super::table::ClTable;
use super::{Shared, failed};
use crate::device::DeviceTable;
use crate::device::sealed::Sealed;
use crate::error::DeviceError;
use crate::launch::Arguments;
use crate::resident::{DeviceBuffer, InFlight, KeyOrder, ResidentBatch};

/// Lookups in a queue of the caller's.
pub(super) struct ClFlight {
    device: Arc<Shared>,
    run: Option<Event>,
    /// Kept until the work is done.
    _table: Arc<dyn DeviceTable>,
}

pub(super) fn look_up(
    device: &Arc<Shared>,
    table: &Arc<dyn DeviceTable>,
    batch: &ResidentBatch,
) -> Result<ClFlight, DeviceError> {
    let own = ClTable::of(device, table)?;
    if own.image().family() != batch.family {
        return Err(DeviceError::OtherTable { device: device.name.clone() });
    }
    // A kernel object has one set of arguments: this call has its own.
    let kernel = device.kernel(own.image().form())?;
    let arguments = Arguments {
        keys: ptr::with_exposed_provenance_mut(batch.keys),
        hops: ptr::with_exposed_provenance_mut(batch.hops),
        count: batch.count,
        is_network: u32::from(batch.order == KeyOrder::Network),
        table: own.buffer.get(),
        head: *own.image().head(),
    };
    let begun = || -> Result<Option<Event>, ClError> {
        if arguments.count == 0 {
            return Ok(None);
        }
        // The caller's queue is borrowed: it is not released here. A queue of the device's is released, and works on.
        let (own, theirs);
        let queue: &CommandQueue = match batch.stream {
            Some(queue) => {
                let queue = ptr::with_exposed_provenance_mut(queue);
                theirs = ManuallyDrop::new(CommandQueue::new(queue, 1));
                &theirs
            }
            None => {
                own = device.queue()?;
                &own
            }
        };
        // SAFETY: the caller promised that the queue, the keys and the hops are there until the work is done
        // (`ResidentBatch::new`); the table is kept as long. The kernel is that of its form.
        let run = unsafe { launch(&kernel, &arguments, device.opened.group, queue) }?;
        queue.flush()?;
        Ok(Some(run))
    };
    let run = begun().map_err(device.failed("look up"))?;
    Ok(ClFlight { device: device.clone(), run, _table: table.clone() })
}

impl InFlight for ClFlight {
    fn poll(&mut self) -> bool {
        // An event that has failed has a negative status, and an error is for `wait` to report.
        self.run.as_ref().is_none_or(|run| {
            run.command_execution_status().is_ok_and(|status| status.0 <= CL_COMPLETE)
        })
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        let Some(run) = self.run.take() else { return Ok(()) };
        run.wait().map_err(self.device.failed("look up"))
    }
}

impl Drop for ClFlight {
    fn drop(&mut self) {
        // An error is one of a device that has failed: nothing of it works any more.
        let _ = self.wait();
    }
}

/// Memory of the device.
pub(super) struct ClBuffer {
    device: Arc<Shared>,
    buffer: Buffer<u8>,
    bytes: usize,
}

impl ClBuffer {
    pub(super) fn new(device: &Arc<Shared>, bytes: usize) -> Result<Self, DeviceError> {
        let (context, flags) = (&device.opened.context, CL_MEM_READ_WRITE);
        // SAFETY: no memory of the host is given.
        let buffer = unsafe { Buffer::create(context, flags, bytes.max(1), ptr::null_mut()) };
        let buffer = buffer.map_err(device.failed("make a buffer"))?;
        Ok(Self { device: device.clone(), buffer, bytes })
    }
}

impl Sealed for ClBuffer {}

impl DeviceBuffer for ClBuffer {
    fn write(&mut self, bytes: &[u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= self.bytes, "no more than there is room for");
        if bytes.is_empty() {
            return Ok(());
        }
        let buffer = &mut self.buffer;
        let written = self.device.queue().and_then(|queue| {
            // SAFETY: the buffer has as many bytes; the call returns when they were read.
            unsafe { queue.enqueue_write_buffer(buffer, CL_BLOCKING, 0, bytes, &[]) }
        });
        written.map(drop).map_err(|error| failed(&self.device.name, "copy", error))
    }

    fn read(&self, bytes: &mut [u8]) -> Result<(), DeviceError> {
        assert!(bytes.len() <= self.bytes, "no more than there is");
        if bytes.is_empty() {
            return Ok(());
        }
        let read = self.device.queue().and_then(|queue| {
            // SAFETY: the buffer has as many bytes; the call returns when they were written.
            unsafe { queue.enqueue_read_buffer(&self.buffer, CL_BLOCKING, 0, bytes, &[]) }
        });
        read.map(drop).map_err(|error| failed(&self.device.name, "copy", error))
    }

    fn place(&self) -> usize {
        self.buffer.get().expose_provenance()
    }
}
