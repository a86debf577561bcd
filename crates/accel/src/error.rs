use std::error::Error;
use std::fmt;

/// Why a device cannot do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The name is not one of a device.
    UnknownName {
        /// The name.
        name: String,
    },
    /// The driver is not installed, or it has no such device.
    Absent {
        /// The name of the device.
        device: String,
        /// What is missing, and what to do.
        reason: String,
    },
    /// There is no kernel for this engine's tables.
    NoKernel {
        /// The engine.
        engine: &'static str,
    },
    /// The driver refused a call, or the device failed.
    Failed {
        /// The name of the device.
        device: String,
        /// What was to be done.
        call: &'static str,
        /// What the driver says.
        reason: String,
    },
    /// The table lies on another device, or is one of the other family.
    OtherTable {
        /// The name of the device.
        device: String,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownName { name } => {
                write!(f, "{name:?} is no device: use opencl:0, cuda:0, .. or cpu")
            }
            Self::Absent { device, reason } => write!(f, "{device}: {reason}"),
            Self::NoKernel { engine } => write!(
                f,
                "no kernel looks up in the tables of the engine {engine}: build the table with one of {}",
                crate::schemes::ENGINES.join(", ")
            ),
            Self::Failed { device, call, reason } => write!(f, "{device}: {call}: {reason}"),
            Self::OtherTable { device } => {
                write!(f, "{device}: the table lies on another device, or is of the other family")
            }
        }
    }
}

impl Error for DeviceError {}
