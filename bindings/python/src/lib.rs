//! The compiled part of the Python package `fibula`: tables, lookups and columns. What Python code
//! says better (frames of pandas and Polars, pickling, defaults) is in `python/fibula`.
//!
//! Nothing here holds the interpreter while it looks up, reads or compiles.
#![deny(unsafe_code)]

mod added;
mod address;
mod build;
mod bulk;
mod cells;
mod column;
mod command;
mod dated;
mod error;
mod export;
mod offloaded;
mod records;
mod requested;
mod resident;
mod result;
mod rows;
mod rules;
mod table;
mod values;
mod wording;

use pyo3::prelude::*;

#[pymodule]
mod _fibula {
    #[pymodule_export]
    use crate::added::PyColumn;
    #[pymodule_export]
    use crate::address::is_address;
    #[pymodule_export]
    use crate::command::run_command;
    #[pymodule_export]
    use crate::dated::PyDatedTable;
    #[pymodule_export]
    use crate::error::{
        AddressError, ColumnError, DeviceError, FibulaError, SnapshotError, SourceError,
    };
    #[pymodule_export]
    use crate::offloaded::devices;
    #[pymodule_export]
    use crate::resident::PyDeviceTable;
    #[pymodule_export]
    use crate::result::PyColumns;
    #[pymodule_export]
    use crate::rules::PyRules;
    #[pymodule_export]
    use crate::table::PyTable;

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
