use opencl3::command_queue::CommandQueue;
use opencl3::error_codes::ClError;
use opencl3::event::Event;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::types::cl_mem;

use crate::launch::{Arguments, Takes};

impl Takes<'_> for ExecuteKernel<'_> {
    fn take<T>(&mut self, value: &T) {
        // SAFETY: a value of so many bytes, which the driver copies. That it is what the kernel takes is for the
        // caller to see to, who starts it.
        unsafe { self.set_arg(value) };
    }
}

/// Enqueues a kernel, in work groups of so many threads.
///
/// # Safety
/// The kernel is that of the form of the table's image. Until it is done, keys and hops are buffers with as many as
/// `arguments` say, which nobody else writes.
pub(super) unsafe fn launch(
    kernel: &Kernel,
    arguments: &Arguments<cl_mem>,
    group: usize,
    queue: &CommandQueue,
) -> Result<Event, ClError> {
    let mut run = ExecuteKernel::new(kernel);
    arguments.pass_to(&mut run);
    let threads = (arguments.count as usize).next_multiple_of(group);
    run.set_global_work_size(threads).set_local_work_size(group);
    // SAFETY: the arguments are those of all kernels (`prelude.cl`). Thread `i` reads key `i`, or the last one, and
    // writes hop `i` if it is below `count`. The table is what the kernel takes it for: its image is of an engine that
    // was built, or checked when it was loaded, so every place that a lookup reads is in the table or in its padding.
    unsafe { run.enqueue_nd_range(queue) }
}
