//! A table on a device, for addresses that lie there. This file has unsafe code: places in a device's memory are what
//! Python code says that they are.
#![allow(unsafe_code)]

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, UInt32Array};
use fibula_accel::{InFlight, KeyOrder, ResidentBatch};
use fibula_annotate::PreparedTable;
use fibula_core::Family;
use fibula_fib::Fib;
use fibula_offload::{OffloadError, RowTable};
use pyo3::prelude::*;

use crate::offloaded::There;
use crate::result::PyColumns;
use crate::table::AddOptions;
use crate::{bulk, error};

/// A table on a device. `fibula.DeviceTable` wraps it.
#[pyclass(name = "DeviceTable", module = "fibula._fibula", frozen)]
pub struct PyDeviceTable {
    /// Lookups that may be under way. They are waited for before anything else is dropped.
    in_flight: Mutex<Vec<Box<dyn InFlight>>>,
    there: There,
    rows: PreparedTable<RowTable>,
}

/// Places in a device's memory.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Places {
    is_v6: bool,
    addresses: usize,
    out: usize,
    count: u32,
    is_network: bool,
    stream: Option<usize>,
}

impl PyDeviceTable {
    pub fn new(there: There) -> Self {
        let rows = PreparedTable::new(RowTable(there.fib.fib().clone()));
        Self { in_flight: Mutex::default(), there, rows }
    }

    fn begin(&self, places: &Places) -> Result<(), OffloadError> {
        let &Places { is_v6, addresses, out, count, is_network, stream } = places;
        let family = if is_v6 { Family::V6 } else { Family::V4 };
        let table = self.there.fib.device_table(family)?;
        // SAFETY: the caller promises it in Python, in the words of `fibula.DeviceTable`.
        let mut batch = unsafe { ResidentBatch::new(family, addresses, out, count) };
        if is_network {
            batch = batch.order(KeyOrder::Network);
        }
        if let Some(stream) = stream {
            // SAFETY: as above.
            batch = unsafe { batch.on_stream(stream) };
        }
        // What is in the list is whole even if a thread died beside it.
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        in_flight.retain_mut(|flight| !flight.poll());
        in_flight.push(self.there.fib.device().look_up_resident(&table, &batch)?);
        Ok(())
    }
}

#[pymethods]
impl PyDeviceTable {
    /// The device's name and description.
    fn device(&self) -> (String, String) {
        let device = self.there.fib.device();
        (device.name().to_owned(), device.description().to_owned())
    }

    /// The driver's context.
    fn context(&self) -> Option<usize> {
        self.there.fib.device().context()
    }

    /// Begins to write the rows of addresses.
    fn rows_at(&self, py: Python<'_>, places: Places) -> PyResult<()> {
        py.detach(|| self.begin(&places)).map_err(|error| error::device(&error))
    }

    /// Waits for all lookups that were begun.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let waited = py.detach(|| {
            let begun =
                std::mem::take(&mut *self.in_flight.lock().unwrap_or_else(PoisonError::into_inner));
            begun.into_iter().try_for_each(|mut flight| flight.wait())
        });
        waited.map_err(|error| error::device(&error.into()))
    }

    /// The values of all rows, and at the end those of no row.
    fn values(&self, py: Python<'_>, requested: AddOptions) -> PyResult<PyColumns> {
        let options = requested.options();
        let added = py.detach(|| {
            let fib: &Fib = self.there.fib.fib();
            let rows: ArrayRef = Arc::new((0..=fib.columns().len()).collect::<UInt32Array>());
            let annotator = self.rows.annotator(&options)?;
            bulk::annotate(&annotator, None, &[rows], None, options.threads, None)
        });
        Ok(PyColumns { added: added.map_err(|error| error::annotate(&error))?, index: None })
    }
}
