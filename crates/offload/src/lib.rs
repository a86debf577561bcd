//! Annotation on an accelerator: [`OnDevice`] is a table for `fibula-annotate` whose lookups a device of `fibula-accel`
//! does. Annotation asks it for large batches ([`LookupTable::batch`]), and sees a table like any other.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow_array::UInt32Array;
//! use fibula_annotate::{AnnotateOptions, ColumnAnnotator};
//! use fibula_fib::{Fib, FibOptions};
//! use fibula_offload::OnDevice;
//! # use fibula_core::{Attributes, Change, Update, Value};
//! # use fibula_rib::{BuilderOptions, ColumnKind, TableBuilder};
//! # let mut builder = TableBuilder::new(BuilderOptions::default());
//! # builder.begin_source("t", "text", &[("vlan".into(), ColumnKind::Int)], false, None);
//! # let values = [Value::Int(7)];
//! # builder.apply(&Update::new("10.0.0.0/8".parse()?, Change::Announce(Attributes::Values(&values))));
//! # let table = builder.finish()?;
//!
//! // 10.0.0.0/8 has the VLAN 7.
//! let fib = Fib::of_table(table, &FibOptions::default().engines(fibula_offload::choices()))?;
//! let table = Arc::new(OnDevice::open(fib, "cpu")?);
//! let annotator = ColumnAnnotator::new(table.clone(), &AnnotateOptions::default())?;
//! let addresses: UInt32Array = (0..20_000).map(|i| 0x0a00_0000 + i).collect();
//! let found = annotator.annotate("src", &addresses)?;
//! assert_eq!((found.fields[0].name().as_str(), found.counts.matched), ("src_vlan", 20_000));
//! assert_eq!(table.take_summary().on_device, 20_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! - The answers are those of the table without a device, whatever the device does: what it fails to look up, the
//!   engine does.
//! - A device without room for the table is an error when the table is placed, before anything is looked up.
//! - Each lookup counts in the summary of one thread.
#![forbid(unsafe_code)]

mod error;
mod family;
mod rows;
mod summaries;

use std::sync::Arc;

use fibula_accel::{BatchSummary, Device, DeviceTable};
use fibula_annotate::{LookupFamily, LookupTable};
use fibula_core::Family;
use fibula_fib::{Columns, EngineChoice, Fib};

pub use self::error::OffloadError;
use self::family::DeviceFamily;
pub use self::rows::RowTable;
use self::summaries::Summaries;

/// Addresses that annotation gives at once, if the input has so many: a device needs hundreds of thousands to be busy
/// while the next ones are copied.
pub const BATCH: usize = 1 << 20;

/// The engines that a table is compiled for if its own has no kernel: those that are best on most devices, runmap for
/// IPv4, the others for IPv6.
pub const ENGINES: [&str; 3] = ["runmap", "wideleaf", "planb"];

/// The choice of engines when a table is opened for a device alone ([`FibOptions`](fibula_fib::FibOptions)): the stored
/// one, else [`ENGINES`]. A table that was opened otherwise is compiled once more if its engine has no kernel.
pub fn choices() -> Vec<EngineChoice> {
    let named = ENGINES.iter().map(|&name| EngineChoice::from(name));
    [EngineChoice::Stored].into_iter().chain(named).collect()
}

/// Where a family's addresses are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Placement {
    /// The family.
    pub family: Family,
    /// The engine whose tables are on the device.
    pub engine: &'static str,
    /// The bytes of its tables there.
    pub bytes: usize,
    /// The engine of the table, if it has no kernel and [`Placement::engine`] was compiled instead.
    pub instead_of: Option<&'static str>,
}

/// A table, with its engines' tables on a device. What the device does not look up, the CPU does: small batches, and
/// those that the device fails to.
pub struct OnDevice {
    fib: Fib,
    device: Arc<dyn Device>,
    v4: DeviceFamily<u32>,
    v6: DeviceFamily<u128>,
    summaries: Arc<Summaries>,
}

impl OnDevice {
    /// Opens the device of this name ([`fibula_accel::open`]) and copies the engines' tables to it.
    ///
    /// # Errors
    /// [`OffloadError::Device`] says which driver or device is missing; otherwise as [`OnDevice::new`].
    pub fn open(fib: Fib, name: &str) -> Result<Self, OffloadError> {
        Self::new(fib, fibula_accel::open(name)?)
    }

    /// Copies the engines' tables to the device. An engine without a kernel is replaced by one of [`ENGINES`].
    ///
    /// # Errors
    /// If the device refuses the tables, most often because its memory is short, or none of [`ENGINES`] accepts the
    /// routes of a family whose engine has no kernel.
    pub fn new(fib: Fib, device: Arc<dyn Device>) -> Result<Self, OffloadError> {
        let summaries = Arc::new(Summaries::default());
        let v4 = DeviceFamily::new(fib.clone(), &device, &summaries)?;
        let v6 = DeviceFamily::new(fib.clone(), &device, &summaries)?;
        Ok(Self { fib, device, v4, v6, summaries })
    }

    /// The table.
    pub fn fib(&self) -> &Fib {
        &self.fib
    }

    /// The device.
    pub fn device(&self) -> &Arc<dyn Device> {
        &self.device
    }

    /// Where the addresses of each family that has routes are looked up.
    pub fn placements(&self) -> impl Iterator<Item = Placement> {
        [self.v4.placement(), self.v6.placement()].into_iter().flatten()
    }

    /// The table of a family on the device, for callers whose addresses lie there
    /// ([`Device::look_up_resident`]): their hops are the numbers of rows of [`LookupTable::columns`], and [`RowTable`]
    /// has the values of these. A family without routes has a table, too.
    ///
    /// # Errors
    /// If the device refuses the table of a family without routes, most often because its memory is short.
    pub fn device_table(&self, family: Family) -> Result<Arc<dyn DeviceTable>, OffloadError> {
        match family {
            Family::V4 => self.v4.device_table(),
            Family::V6 => self.v6.device_table(),
        }
    }

    /// What looked addresses up for all threads since their summaries were last taken.
    pub fn take_summary(&self) -> BatchSummary {
        self.summaries.take_all()
    }

    /// What looked addresses up for the calling thread since its summary was last taken. A caller that shares the table
    /// with others counts its own lookups so, on each of its threads.
    pub fn take_summary_of_thread(&self) -> BatchSummary {
        self.summaries.take_own()
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
