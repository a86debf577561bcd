//! The back end for CUDA, over `cudarc`'s calls of the driver, which it loads when the first device is asked for. The
//! kernels are those of OpenCL, compiled to PTX (`kernels/ptx`), which the driver compiles for its device. This folder
//! has unsafe code: the calls of the driver.
#![allow(unsafe_code)]

mod launch;
mod owned;
mod resident;
mod slot;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUcontext, CUfunction, CUmodule};
use fibula_core::Family;

use crate::device::sealed::Sealed;
use crate::device::{Device, DeviceTable, Listing, Slot};
use crate::error::DeviceError;
use crate::image::{Form, Image};
use crate::resident::{DeviceBuffer, InFlight, ResidentBatch};
use resident::CudaBuffer;
use slot::CudaSlot;
use table::CudaTable;

/// A device of the CUDA driver.
pub(crate) struct CudaDevice(Arc<Opened>);

/// A device, once in a program.
struct Opened {
    name: String,
    description: String,
    /// The device's primary context, which other users of CUDA in the program share. It is kept to the end.
    context: Context,
    /// The loaded files, by name; they are kept to the end, too.
    modules: Mutex<HashMap<&'static str, Module>>,
}

#[derive(Clone, Copy)]
struct Context(CUcontext);
#[derive(Clone, Copy)]
struct Module(CUmodule);
/// A kernel.
#[derive(Clone, Copy)]
struct Function(CUfunction);

// SAFETY: the driver's calls may be made from any thread, with handles that any thread made.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Send for Function {}

/// While it lives, the device's context is the thread's current one; then the one before is, so that a caller that uses
/// CUDA itself notices nothing.
struct Entered;

impl Drop for Entered {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // SAFETY: a place for the context, which `Opened::enter` pushed.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&mut popped) };
    }
}

/// The devices that were opened, by number.
static OPENED: Mutex<BTreeMap<usize, Arc<Opened>>> = Mutex::new(BTreeMap::new());

fn opened() -> MutexGuard<'static, BTreeMap<usize, Arc<Opened>>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(number: usize) -> String {
    format!("cuda:{number}")
}

fn failed(device: &str, call: &'static str, error: impl ToString) -> DeviceError {
    DeviceError::Failed { device: device.into(), call, reason: error.to_string() }
}

/// How many devices the driver has. Without a driver no other of its functions may be called: `cudarc` would panic.
fn count() -> Result<usize, DeviceError> {
    static PRESENT: OnceLock<bool> = OnceLock::new();
    let absent = |reason: String| DeviceError::Absent { device: "cuda".into(), reason };
    // SAFETY: the driver's library, whose code for loading may run at any time.
    if !*PRESENT.get_or_init(|| unsafe { sys::is_culib_present() }) {
        return Err(absent(
            "there is no CUDA driver on this machine (libcuda.so.1): install the one of your GPU, or use opencl:0".into(),
        ));
    }
    let count = result::init().and_then(|()| result::device::get_count());
    count
        .map(|count| count as usize)
        .map_err(|error| absent(format!("the driver does not start: {error}")))
}

fn description(number: usize) -> Result<String, DriverError> {
    let device = result::device::get(number as i32)?;
    let mut version = 0;
    // SAFETY: a place for the number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result()?;
    let name = result::device::get_name(device)?;
    Ok(format!("{}, driver for CUDA {}.{}", name.trim(), version / 1000, version % 1000 / 10))
}

pub(crate) fn list() -> Result<Vec<Listing>, DeviceError> {
    let listing = |number| {
        let error = |error: DriverError| error.to_string();
        Listing { name: name(number), description: description(number).unwrap_or_else(error) }
    };
    Ok((0..count()?).map(listing).collect())
}

/// The device of this number.
pub(crate) fn open(number: usize) -> Result<CudaDevice, DeviceError> {
    let mut all = opened();
    if let Some(opened) = all.get(&number) {
        return Ok(CudaDevice(opened.clone()));
    }
    let count = count()?;
    if number >= count {
        let reason = format!("the installed CUDA driver has so many devices: {count}");
        return Err(DeviceError::Absent { device: name(number), reason });
    }
    let made =
        Opened::new(number).map_err(|error| failed(&name(number), "open the device", error))?;
    let opened = Arc::new(made);
    all.insert(number, opened.clone());
    Ok(CudaDevice(opened))
}

impl Opened {
    fn new(number: usize) -> Result<Self, DriverError> {
        let device = result::device::get(number as i32)?;
        // SAFETY: the device is one of the driver's.
        let context = Context(unsafe { result::primary_ctx::retain(device) }?);
        let description = description(number)?;
        Ok(Self { name: name(number), description, context, modules: Mutex::default() })
    }

    fn failed(&self, call: &'static str) -> impl Fn(DriverError) -> DeviceError + '_ {
        move |error| failed(&self.name, call, error)
    }

    /// Makes its context the thread's current one, as every call needs it.
    fn enter(&self) -> Result<Entered, DriverError> {
        // SAFETY: the context is kept to the end of the program.
        unsafe { sys::cuCtxPushCurrent_v2(self.context.0) }.result()?;
        Ok(Entered)
    }

    /// The kernel of a form. Its file is loaded, and compiled by the driver, the first time.
    fn function(&self, form: &Form) -> Result<Function, DeviceError> {
        let found = || {
            let _entered = self.enter()?;
            let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            let module = match modules.get(form.source.file) {
                Some(&module) => module,
                None => {
                    // SAFETY: PTX that ends with a zero byte.
                    let module =
                        unsafe { result::module::load_data(form.source.ptx.as_ptr().cast()) }?;
                    modules.insert(form.source.file, Module(module));
                    Module(module)
                }
            };
            let name = CString::new(form.kernel).expect("names of kernels have no zero byte");
            // SAFETY: the module was loaded, and is kept.
            Ok(Function(unsafe { result::module::get_function(module.0, name) }?))
        };
        found().map_err(self.failed("load a kernel"))
    }
}

impl Sealed for CudaDevice {}

impl Device for CudaDevice {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn description(&self) -> &str {
        &self.0.description
    }

    fn upload(&self, image: Arc<Image>) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        Ok(Arc::new(CudaTable::upload(&self.0, image)?))
    }

    fn upload_changes(
        &self,
        before: &Arc<dyn DeviceTable>,
        image: Arc<Image>,
        changes: &[Range<usize>],
    ) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        let before = CudaTable::of(&self.0, before)?;
        Ok(Arc::new(before.with_changes(image, changes)?))
    }

    fn slot(&self, family: Family, capacity: usize) -> Result<Box<dyn Slot>, DeviceError> {
        Ok(Box::new(CudaSlot::new(&self.0, family, capacity)?))
    }

    fn buffer(&self, bytes: usize) -> Result<Box<dyn DeviceBuffer>, DeviceError> {
        Ok(Box::new(CudaBuffer::new(&self.0, bytes)?))
    }

    fn look_up_resident(
        &self,
        table: &Arc<dyn DeviceTable>,
        batch: &ResidentBatch,
    ) -> Result<Box<dyn InFlight>, DeviceError> {
        Ok(Box::new(resident::look_up(&self.0, table, batch)?))
    }

    fn context(&self) -> Option<usize> {
        Some(self.0.context.0.expose_provenance())
    }
}
