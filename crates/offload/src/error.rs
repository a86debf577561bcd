use std::error::Error;
use std::fmt;

use fibula_accel::DeviceError;

/// Why a table cannot be placed on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OffloadError {
    /// The device is absent, failed, or refused the table.
    Device(DeviceError),
    /// The table's engine has no kernel, and no table with one could be made.
    NoTable {
        /// The engine.
        engine: &'static str,
        /// Why there is no other table.
        error: DeviceError,
    },
}

impl fmt::Display for OffloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Device(error) => error.fmt(f),
            Self::NoTable { engine, error } => write!(
                f,
                "{error}; the table's engine {engine} has no kernel, so another one of {} was needed",
                super::ENGINES.join(", ")
            ),
        }
    }
}

impl Error for OffloadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Device(error) | Self::NoTable { error, .. } => Some(error),
        }
    }
}

impl From<DeviceError> for OffloadError {
    fn from(error: DeviceError) -> Self {
        Self::Device(error)
    }
}
