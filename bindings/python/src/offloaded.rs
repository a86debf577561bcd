//! The copies of a table on devices, and the devices of this machine.

use std::sync::{Arc, Mutex, PoisonError};

use fibula_annotate::PreparedTable;
use fibula_fib::Fib;
use fibula_offload::OnDevice;
use pyo3::prelude::*;

use crate::error;

/// A table on a device.
pub type There = Arc<PreparedTable<Arc<OnDevice>>>;

/// The copies of a table, by the name of the device. They are freed with the table.
#[derive(Default)]
pub struct Copies(Mutex<Vec<(String, There)>>);

impl Copies {
    /// The copy on this device, made or kept. A second thread that asks for it waits until it is made.
    pub fn on(&self, fib: &Fib, name: &str) -> PyResult<There> {
        // What is in the list is whole even if a thread died beside it.
        let mut copies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, there)) = copies.iter().find(|(of, _)| of == name) {
            return Ok(there.clone());
        }
        let made = OnDevice::open(fib.clone(), name).map_err(|error| error::device(&error))?;
        let made = Arc::new(PreparedTable::new(Arc::new(made)));
        copies.push((name.to_owned(), made.clone()));
        Ok(made)
    }
}

/// The devices of this machine, name and description, and why a kind of them has none.
#[pyfunction]
pub fn devices(py: Python<'_>) -> (Vec<(String, String)>, Vec<String>) {
    let (listings, absent) = py.detach(fibula_accel::list);
    let listings = listings.into_iter().map(|listing| (listing.name, listing.description));
    (listings.collect(), absent.iter().map(ToString::to_string).collect())
}
