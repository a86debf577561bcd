//! A table on an accelerator: `fibula annotate --device`. Annotation asks it for large batches, and sees a table.

mod family;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use fibula_accel::{BatchSummary, Device};
use fibula_annotate::{LookupFamily, LookupTable};
use fibula_core::grouped;
use fibula_fib::{Columns, EngineChoice, Fib};

use self::family::DeviceFamily;
use crate::bench::open_device;
use crate::failure::Failure;
use crate::output::size;
use crate::progress::note;

/// Addresses that annotation gives at once, if the input has so many: a device needs hundreds of thousands to be busy
/// while the next ones are copied.
const BATCH: usize = 1 << 20;

/// The engines that a table is compiled for if it has none stored: those with a kernel that are best on most devices,
/// runmap for IPv4, the others for IPv6.
pub const ENGINES: [&str; 3] = ["runmap", "wideleaf", "planb"];

/// The choice of engines for a table on a device.
pub fn choices() -> Vec<EngineChoice> {
    let named = ENGINES.iter().map(|&name| EngineChoice::from(name));
    [EngineChoice::Stored].into_iter().chain(named).collect()
}

/// A table, with its engines' tables on a device. What the device does not look up, the CPU does.
pub struct OnDevice {
    fib: Fib,
    device: Arc<dyn Device>,
    v4: DeviceFamily<u32>,
    v6: DeviceFamily<u128>,
}

impl OnDevice {
    /// The device of this name. It is opened before the table is read, which may take long.
    pub fn open(name: &str) -> Result<Arc<dyn Device>, Failure> {
        open_device(name)
    }

    /// Copies the engines' tables to the device.
    pub fn new(fib: Fib, device: Arc<dyn Device>) -> Result<Self, Failure> {
        let v4 = DeviceFamily::new(fib.clone(), &device)?;
        let v6 = DeviceFamily::new(fib.clone(), &device)?;
        Ok(Self { fib, device, v4, v6 })
    }

    /// The table.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }

    /// Says where addresses are looked up.
    pub fn print(&self) {
        let families = [("IPv4", self.v4.place()), ("IPv6", self.v6.place())];
        let families = families.into_iter().filter_map(|(family, place)| Some((family, place?)));
        for (family, (engine, bytes, instead_of)) in families {
            let instead = match instead_of {
                Some(stored) => {
                    format!(
                        ", compiled for the device: {stored}, which the table has, has no kernel"
                    )
                }
                None => String::new(),
            };
            note(format_args!(
                "{}: {family} by {engine}, {}{instead}",
                self.device.name(),
                size(bytes as u64)
            ));
        }
    }

    /// What looked addresses up since the last call.
    pub fn take_summary(&self) -> BatchSummary {
        let mut summary = self.v4.take_summary();
        summary += self.v6.take_summary();
        summary
    }

    /// Prints a summary.
    pub fn print_summary(&self, summary: &BatchSummary) {
        let BatchSummary { on_device, on_cpu, failures, error, .. } = summary;
        let name = self.device.name();
        note(format_args!(
            "{name}: {} lookups, {} on the CPU",
            grouped(*on_device as u64),
            grouped(*on_cpu as u64)
        ));
        if let Some(error) = error {
            note(format_args!(
                "{name}: {} parts failed, and the CPU looked them up: {error}",
                grouped(*failures as u64)
            ));
        }
    }
}

impl LookupTable for OnDevice {
    fn columns(&self) -> &Columns {
        self.fib.columns()
    }

    fn v4(&self) -> &dyn LookupFamily<u32> {
        &self.v4
    }

    fn v6(&self) -> &dyn LookupFamily<u128> {
        &self.v6
    }

    fn has_columns(&self) -> bool {
        !self.fib.is_live()
    }

    fn batch(&self) -> Option<usize> {
        Some(BATCH)
    }
}
