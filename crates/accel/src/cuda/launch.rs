use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::Function;
use crate::launch::{Arguments, GROUP, Takes};

/// Threads of a block.
const BLOCK: u32 = GROUP as u32;

/// Where the arguments are: the driver copies them when the kernel is enqueued.
struct Places<'a>(Vec<*mut c_void>, PhantomData<&'a ()>);

impl<'a> Takes<'a> for Places<'a> {
    fn take<T>(&mut self, value: &'a T) {
        self.0.push(ptr::from_ref(value).cast_mut().cast());
    }
}

/// Enqueues a kernel.
///
/// # Safety
/// The kernel is that of the form of the table's image. Until it is done the table stays, and keys and hops are places
/// of the device with as many as `arguments` say, which nobody else writes.
pub(super) unsafe fn launch(
    kernel: Function,
    arguments: &Arguments<CUdeviceptr>,
    stream: CUstream,
) -> Result<(), DriverError> {
    let mut places = Places(Vec::new(), PhantomData);
    arguments.pass_to(&mut places);
    let (grid, block) = ((arguments.count.div_ceil(BLOCK), 1, 1), (BLOCK, 1, 1));
    // SAFETY: the arguments are those of all kernels (`prelude.cl`), in their order and with their types. Thread `i`
    // reads key `i`, or the last one, and writes hop `i` if it is below `count`. The table is what the kernel takes it
    // for: its image is of an engine that was built, or checked when it was loaded, so every place that a lookup reads
    // is in the table or in its padding.
    unsafe { result::launch_kernel(kernel.0, grid, block, 0, stream, &mut places.0) }
}
