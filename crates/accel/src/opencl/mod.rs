//! The back end for OpenCL, over `opencl3`, which loads the driver's library when the first device is asked for. This
//! folder has unsafe code: the calls of the driver.
#![allow(unsafe_code)]

mod launch;
mod resident;
mod slot;
mod table;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fibula_core::Family;
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU};
use opencl3::error_codes::{ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::kernel::Kernel;
use opencl3::platform::get_platforms;
use opencl3::program::Program;

use crate::device::sealed::Sealed;
use crate::device::{Device, DeviceTable, Listing, Slot};
use crate::error::DeviceError;
use crate::image::{Form, Image};
use crate::launch::{GROUP, LANES, PRELUDE, Source};
use crate::resident::{DeviceBuffer, InFlight, ResidentBatch};
use crate::schemes;
use resident::ClBuffer;
use slot::ClSlot;
use table::ClTable;

/// What the installable client driver says if no driver is registered.
const PLATFORM_NOT_FOUND: i32 = -1001;

/// A device of an OpenCL driver.
pub(crate) struct ClDevice(Arc<Shared>);

/// What tables and slots need of it.
struct Shared {
    name: String,
    opened: Arc<Opened>,
    /// Whether the device works in the memory of the host, so that buffers are not copied.
    is_unified: bool,
}

/// A device, once in a program.
struct Opened {
    description: String,
    context: Context,
    is_unified: bool,
    /// Threads of a work group.
    group: usize,
    /// The compiled files, by name.
    programs: Mutex<HashMap<&'static str, Arc<Program>>>,
}

/// The devices that were opened, by number. A program has one context of each: PoCL 3.1 crashes if two threads are the
/// first to use it, or compile in different contexts at the same time.
static OPENED: Mutex<BTreeMap<usize, Arc<Opened>>> = Mutex::new(BTreeMap::new());

fn opened() -> MutexGuard<'static, BTreeMap<usize, Arc<Opened>>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All devices of all drivers, in the drivers' order.
fn devices() -> Result<Vec<opencl3::device::Device>, DeviceError> {
    let absent = |reason: String| DeviceError::Absent { device: "opencl".into(), reason };
    let platforms = get_platforms().map_err(|error| match error.0 {
        DLOPEN_RUNTIME_LOAD_FAILED => absent(
            "there is no OpenCL on this machine (libOpenCL.so.1): install the driver of your GPU, or \
             ocl-icd-libopencl1 and pocl-opencl-icd to compute on the CPU"
                .into(),
        ),
        PLATFORM_NOT_FOUND => {
            absent("no OpenCL driver is installed: install the one of your GPU, or pocl-opencl-icd".into())
        }
        _ => absent(format!("the drivers cannot be listed: {error}")),
    })?;
    let ids = platforms.iter().flat_map(|p| p.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default());
    Ok(ids.map(opencl3::device::Device::new).collect())
}

fn description(device: &opencl3::device::Device) -> String {
    let name = device.name().unwrap_or_else(|_| "a device without a name".into());
    let version = device.driver_version().unwrap_or_default();
    format!("{}, driver {}", name.trim(), version.trim())
}

pub(crate) fn list() -> Result<Vec<Listing>, DeviceError> {
    let _opened = opened();
    let listing = |(i, device)| Listing { name: name(i), description: description(device) };
    Ok(devices()?.iter().enumerate().map(listing).collect())
}

fn name(number: usize) -> String {
    format!("opencl:{number}")
}

/// The device of this number. With `copies` it is used as one with memory of its own.
pub(crate) fn open(number: usize, copies: bool) -> Result<ClDevice, DeviceError> {
    let mut all = opened();
    let opened = match all.get(&number) {
        Some(opened) => opened.clone(),
        None => {
            let opened = Arc::new(Opened::new(number)?);
            all.insert(number, opened.clone());
            opened
        }
    };
    let suffix = if copies { ":copies" } else { "" };
    let is_unified = opened.is_unified && !copies;
    let name = format!("{}{suffix}", name(number));
    Ok(ClDevice(Arc::new(Shared { name, opened, is_unified })))
}

impl Opened {
    fn new(number: usize) -> Result<Self, DeviceError> {
        let devices = devices()?;
        let device = devices.get(number).ok_or_else(|| DeviceError::Absent {
            device: name(number),
            reason: format!("the installed OpenCL drivers have so many devices: {}", devices.len()),
        })?;
        let made = || -> Result<Self, ClError> {
            Ok(Self {
                description: description(device),
                context: Context::from_device(device)?,
                is_unified: device.dev_type()? & CL_DEVICE_TYPE_CPU != 0,
                group: GROUP.min(device.max_work_group_size()?),
                programs: Mutex::default(),
            })
        };
        made().map_err(|error| failed(&name(number), "open the device", error))
    }
}

fn failed(device: &str, call: &'static str, error: impl ToString) -> DeviceError {
    DeviceError::Failed { device: device.into(), call, reason: error.to_string() }
}

impl Shared {
    fn failed(&self, call: &'static str) -> impl Fn(ClError) -> DeviceError + '_ {
        move |error| failed(&self.name, call, error)
    }

    /// A queue of its own, in whose order its work is done.
    fn queue(&self) -> Result<CommandQueue, ClError> {
        CommandQueue::create_default_with_properties(
            &self.opened.context,
            CL_QUEUE_PROFILING_ENABLE,
            0,
        )
    }

    /// The compiled file of a form, from the first time on.
    fn program(&self, form: &Form) -> Result<Arc<Program>, DeviceError> {
        let group = self.opened.group;
        if schemes::is_by_lanes(form) && !group.is_multiple_of(LANES) {
            let reason = format!(
                "its work groups have {group} threads, and {LANES} lanes need a multiple of them"
            );
            return Err(failed(&self.name, "start lanes", reason));
        }
        let Source { file, text, .. } = form.source;
        let mut programs = self.opened.programs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(file) {
            return Ok(program.clone());
        }
        // One text: of several, cl3 0.13 passes the lengths for pointers.
        let text = format!("{PRELUDE}{text}");
        let built =
            Program::create_and_build_from_source(&self.opened.context, &text, "-cl-std=CL1.2");
        let program = Arc::new(built.map_err(|log| failed(&self.name, "compile a kernel", log))?);
        programs.insert(file, program.clone());
        Ok(program)
    }

    fn kernel(&self, form: &Form) -> Result<Kernel, DeviceError> {
        let program = self.program(form)?;
        Kernel::create(&program, form.kernel).map_err(self.failed("find a kernel"))
    }
}

impl Sealed for ClDevice {}

impl Device for ClDevice {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn description(&self) -> &str {
        &self.0.opened.description
    }

    fn upload(&self, image: Arc<Image>) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        Ok(Arc::new(ClTable::upload(&self.0, image)?))
    }

    fn upload_changes(
        &self,
        before: &Arc<dyn DeviceTable>,
        image: Arc<Image>,
        changes: &[Range<usize>],
    ) -> Result<Arc<dyn DeviceTable>, DeviceError> {
        let before = ClTable::of(&self.0, before)?;
        Ok(Arc::new(before.with_changes(image, changes)?))
    }

    fn slot(&self, family: Family, capacity: usize) -> Result<Box<dyn Slot>, DeviceError> {
        Ok(Box::new(ClSlot::new(&self.0, family, capacity)?))
    }

    fn buffer(&self, bytes: usize) -> Result<Box<dyn DeviceBuffer>, DeviceError> {
        Ok(Box::new(ClBuffer::new(&self.0, bytes)?))
    }

    fn look_up_resident(
        &self,
        table: &Arc<dyn DeviceTable>,
        batch: &ResidentBatch,
    ) -> Result<Box<dyn InFlight>, DeviceError> {
        Ok(Box::new(resident::look_up(&self.0, table, batch)?))
    }

    fn context(&self) -> Option<usize> {
        Some(self.0.opened.context.get().expose_provenance())
    }
}
