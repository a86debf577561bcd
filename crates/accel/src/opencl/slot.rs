use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use fibula_core::Family;
use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::ClError;
use opencl3::event::{CL_COMPLETE, Event};
use opencl3::kernel::Kernel;
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MEM_ALLOC_HOST_PTR, CL_MEM_READ_WRITE, ClMem,
};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_map_flags};

use super::launch::launch;
use super::table::ClTable;
use super::{Shared, failed};
use crate::device::{DeviceTable, Slot, key_bytes};
use crate::error::DeviceError;
use crate::image::Form;
use crate::launch::Arguments;

/// A slot: a queue, and buffers for keys and hops.
///
/// A device with memory of its own has both in its memory, too, and copies between them are commands of the queue; the
/// host's buffers stay mapped. They are allocated by the driver, which pins them, so that copies need no other thread.
/// A device that shares the host's memory works in the host's buffers, which are unmapped meanwhile.
pub(super) struct ClSlot {
    device: Arc<Shared>,
    family: Family,
    capacity: usize,
    queue: CommandQueue,
    keys: HostBuffer,
    hops: HostBuffer,
    /// The buffers of keys and hops in the memory of a device that has its own.
    own: Option<(Buffer<u8>, Buffer<u8>)>,
    /// The kernel of the last batch.
    kernel: Option<(&'static Form, Kernel)>,
    flight: Option<Flight>,
    /// The addresses of the last batch.
    count: usize,
    time: Option<Duration>,
}

/// A batch that was submitted.
struct Flight {
    count: usize,
    run: Event,
    last: Event,
    /// Kept until the work is done.
    _table: Arc<dyn DeviceTable>,
}

/// Memory of the host that the driver allocated.
struct HostBuffer {
    buffer: Buffer<u8>,
    bytes: usize,
    flags: cl_map_flags,
    /// Where it is mapped; null while it is not.
    at: *mut c_void,
}

// SAFETY: the mapping belongs to the buffer and is used through references to the slot only; drivers may be called from
// any thread.
unsafe impl Send for HostBuffer {}

impl HostBuffer {
    fn new(
        device: &Shared,
        queue: &CommandQueue,
        bytes: usize,
        flags: cl_map_flags,
    ) -> Result<Self, ClError> {
        let bytes = bytes.max(1);
        let kind = CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: no memory of the host is given.
        let buffer =
            unsafe { Buffer::create(&device.opened.context, kind, bytes, ptr::null_mut()) }?;
        let mut host = Self { buffer, bytes, flags, at: ptr::null_mut() };
        host.map(queue, CL_BLOCKING)?;
        Ok(host)
    }

    /// Maps it; it may be used when the event has come.
    fn map(&mut self, queue: &CommandQueue, blocking: u32) -> Result<Event, ClError> {
        let Self { buffer, bytes, flags, at } = self;
        // SAFETY: the whole of the buffer, into a pointer of ours.
        unsafe { queue.enqueue_map_buffer(buffer, blocking, *flags, 0, *bytes, at, &[]) }
    }

    fn unmap(&mut self, queue: &CommandQueue) -> Result<(), ClError> {
        let at = std::mem::replace(&mut self.at, ptr::null_mut());
        if !at.is_null() {
            // SAFETY: it is where the buffer is mapped, and nothing refers to it any more.
            unsafe { queue.enqueue_unmap_mem_object(self.buffer.get(), at, &[]) }?;
        }
        Ok(())
    }

    /// The first `len` bytes; none if it is not mapped.
    fn bytes(&self, len: usize) -> &[u8] {
        if self.at.is_null() {
            return &[];
        }
        // SAFETY: the mapping has as many bytes, which the driver initialised or the device wrote; nothing writes them
        // while the slot is not in flight.
        unsafe { slice::from_raw_parts(self.at.cast(), len.min(self.bytes)) }
    }

    fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        if self.at.is_null() {
            return &mut [];
        }
        // SAFETY: as above; the reference is the only one.
        unsafe { slice::from_raw_parts_mut(self.at.cast(), len.min(self.bytes)) }
    }
}

impl ClSlot {
    pub(super) fn new(
        device: &Arc<Shared>,
        family: Family,
        capacity: usize,
    ) -> Result<Self, DeviceError> {
        let made = || {
            let queue = device.queue()?;
            let (key_bytes, hop_bytes) = (capacity * key_bytes(family), capacity * 4);
            let mut keys = HostBuffer::new(device, &queue, key_bytes, CL_MAP_READ | CL_MAP_WRITE)?;
            let hops = HostBuffer::new(device, &queue, hop_bytes, CL_MAP_READ | CL_MAP_WRITE)?;
            // So that all of them are initialised.
            keys.bytes_mut(key_bytes).fill(0);
            let mut own = None;
            if !device.is_unified {
                let create = |bytes: usize| {
                    // SAFETY: no memory of the host is given.
                    unsafe {
                        Buffer::create(
                            &device.opened.context,
                            CL_MEM_READ_WRITE,
                            bytes.max(1),
                            ptr::null_mut(),
                        )
                    }
                };
                own = Some((create(key_bytes)?, create(hop_bytes)?));
            }
            Ok((queue, keys, hops, own))
        };
        let (queue, keys, hops, own) = made().map_err(device.failed("make a slot"))?;
        Ok(Self {
            device: device.clone(),
            family,
            capacity,
            queue,
            keys,
            hops,
            own,
            kernel: None,
            flight: None,
            count: 0,
            time: None,
        })
    }

    /// Enqueues the batch; returns the events of the kernel and of the last command.
    fn enqueue(&mut self, table: &ClTable, count: usize) -> Result<(Event, Event), ClError> {
        let (key_bytes, hop_bytes) = (count * key_bytes(self.family), count * 4);
        if let Some((own_keys, _)) = &mut self.own {
            let keys = self.keys.bytes(key_bytes);
            // SAFETY: the buffer has room for as many bytes. The host's stay as they are until the work is done:
            // nobody gets at them while the slot is in flight.
            unsafe { self.queue.enqueue_write_buffer(own_keys, CL_NON_BLOCKING, 0, keys, &[]) }?;
        } else {
            self.keys.unmap(&self.queue)?;
            self.hops.unmap(&self.queue)?;
        }
        let (keys, hops) = match &self.own {
            Some((keys, hops)) => (keys, hops),
            None => (&self.keys.buffer, &self.hops.buffer),
        };
        let (_, kernel) = self.kernel.as_ref().expect("the kernel was found");
        let group = self.device.opened.group;
        let arguments = Arguments {
            keys: keys.get(),
            hops: hops.get(),
            count: count as u32,
            is_network: 0,
            table: table.buffer.get(),
            head: *table.image().head(),
        };
        // SAFETY: the kernel is that of the table's form, and the buffers have room for as many keys and hops.
        let run = unsafe { launch(kernel, &arguments, group, &self.queue) }?;
        let last = match &self.own {
            Some((_, own_hops)) => {
                let hops = self.hops.bytes_mut(hop_bytes);
                // SAFETY: as for the keys.
                unsafe { self.queue.enqueue_read_buffer(own_hops, CL_NON_BLOCKING, 0, hops, &[]) }?
            }
            None => {
                self.keys.map(&self.queue, CL_NON_BLOCKING)?;
                self.hops.map(&self.queue, CL_NON_BLOCKING)?
            }
        };
        self.queue.flush()?;
        Ok((run, last))
    }

    /// Gives the host's buffers up, after a failure: their contents are not known any more.
    fn abandon(&mut self) {
        // Errors are those of a device that has failed already.
        let _ = self.queue.finish();
        let _ = self.keys.unmap(&self.queue);
        let _ = self.hops.unmap(&self.queue);
        let _ = self.queue.finish();
        self.count = 0;
    }
}

impl Slot for ClSlot {
    fn capacity(&self) -> usize {
        self.capacity
    }

    fn keys_mut(&mut self) -> &mut [u8] {
        assert!(self.flight.is_none(), "the slot is not in flight");
        self.keys.bytes_mut(self.capacity * key_bytes(self.family))
    }

    fn submit(&mut self, table: &Arc<dyn DeviceTable>, count: usize) -> Result<(), DeviceError> {
        assert!(count <= self.capacity, "at most as many addresses as the slot has room for");
        assert!(self.flight.is_none(), "the slot is not in flight");
        let own = ClTable::of(&self.device, table)?;
        if own.image().family() != self.family {
            return Err(DeviceError::OtherTable { device: self.device.name.clone() });
        }
        if self.keys.at.is_null() || self.hops.at.is_null() {
            return Err(failed(&self.device.name, "submit a batch", "the device failed before"));
        }
        self.count = 0;
        if count == 0 {
            return Ok(());
        }
        let form = own.image().form();
        if !self.kernel.as_ref().is_some_and(|(known, _)| ptr::eq(*known, form)) {
            self.kernel = Some((form, self.device.kernel(form)?));
        }
        match self.enqueue(own, count) {
            Ok((run, last)) => {
                self.flight = Some(Flight { count, run, last, _table: table.clone() });
                Ok(())
            }
            Err(error) => {
                self.abandon();
                Err(failed(&self.device.name, "submit a batch", error))
            }
        }
    }

    fn poll(&mut self) -> bool {
        // An event that has failed has a negative status, and an error is for `wait` to report.
        self.flight.as_ref().is_none_or(|flight| {
            flight.last.command_execution_status().is_ok_and(|status| status.0 <= CL_COMPLETE)
        })
    }

    fn wait(&mut self) -> Result<(), DeviceError> {
        let Some(flight) = self.flight.take() else { return Ok(()) };
        if let Err(error) = flight.last.wait() {
            self.abandon();
            return Err(failed(&self.device.name, "look up", error));
        }
        self.count = flight.count;
        let times = (flight.run.profiling_command_start(), flight.run.profiling_command_end());
        self.time = match times {
            (Ok(start), Ok(end)) => Some(Duration::from_nanos(end.saturating_sub(start))),
            _ => None,
        };
        Ok(())
    }

    fn hops(&self) -> &[u32] {
        assert!(self.flight.is_none(), "the slot is not in flight");
        bytemuck::cast_slice(self.hops.bytes(self.count * 4))
    }

    fn kernel_time(&self) -> Option<Duration> {
        self.time
    }
}

impl Drop for ClSlot {
    fn drop(&mut self) {
        self.abandon();
    }
}
