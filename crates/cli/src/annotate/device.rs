//! `fibula annotate --device`: opens the device, and says where addresses were looked up.

use std::sync::Arc;

use fibula_accel::{BatchSummary, Device};
use fibula_core::grouped;
use fibula_offload::{OnDevice, Placement};

use crate::bench::open_device;
use crate::failure::Failure;
use crate::output::size;
use crate::progress::note;

/// The device of this name. It is opened before the table is read, which may take long.
pub fn open(name: &str) -> Result<Arc<dyn Device>, Failure> {
    open_device(name)
}

/// Says where addresses are looked up.
pub fn print(table: &OnDevice) {
    for Placement { family, engine, bytes, instead_of, .. } in table.placements() {
        let instead = match instead_of {
            Some(stored) => {
                format!(", compiled for the device: {stored}, which the table has, has no kernel")
            }
            None => String::new(),
        };
        note(format_args!(
            "{}: IP{family} by {engine}, {}{instead}",
            table.device().name(),
            size(bytes as u64)
        ));
    }
}

/// Says what looked addresses up.
pub fn print_summary(table: &OnDevice, summary: &BatchSummary) {
    let BatchSummary { on_device, on_cpu, failures, error, .. } = summary;
    let name = table.device().name();
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
