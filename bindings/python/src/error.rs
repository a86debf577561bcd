//! Errors as Python sees them. Their text is that of the Rust errors: what, where, what to do.

use std::io;
use std::path::Path;

use fibula_accel::DeviceError as AccelError;
use fibula_annotate::AnnotateError;
use fibula_fib::FibError;
use fibula_offload::OffloadError;
use fibula_rib::SnapshotError as RibError;
use fibula_rib::snapshot::SnapshotErrorKind;
use fibula_rpki::RpkiError;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::{PyErr, create_exception};

use crate::wording::in_python;

create_exception!(
    fibula,
    FibulaError,
    PyValueError,
    "What fibula refuses. The base of all its errors; missing files are `OSError`, wrong types `TypeError`."
);
create_exception!(
    fibula,
    SnapshotError,
    FibulaError,
    "A file is no snapshot, is damaged, or the table cannot be stored."
);
create_exception!(
    fibula,
    SourceError,
    FibulaError,
    "A table could not be made from its sources: file, record and line are in the text."
);
create_exception!(
    fibula,
    AddressError,
    FibulaError,
    "Something is not an address or not a prefix."
);
create_exception!(
    fibula,
    ColumnError,
    FibulaError,
    "A column that is not there, is asked for twice, or whose name is taken; a default that does not fit."
);
create_exception!(
    fibula,
    DeviceError,
    FibulaError,
    "An accelerator is absent, its name is none, or it cannot hold the table."
);

/// What columns of addresses may be.
pub const ACCEPTED: &str = "addresses are text, unsigned integers (IPv4), or 4 or 16 bytes; a list \
    may hold str, int, bytes, ipaddress objects and None";

/// An error of the operating system, as the subclass of `OSError` that its number stands for.
pub fn io_error(path: &Path, error: &io::Error) -> PyErr {
    let number = error.raw_os_error().or(match error.kind() {
        // What we refuse ourselves; the numbers are the same on all systems.
        io::ErrorKind::PermissionDenied => Some(13),
        io::ErrorKind::IsADirectory => Some(21),
        _ => None,
    });
    match number {
        Some(number) => {
            // "No such file or directory (os error 2)": Python adds the number itself.
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
            PyOSError::new_err((number, text, path.display().to_string()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// A source that cannot be read, or does not make a table.
pub fn source(error: impl ToString) -> PyErr {
    SourceError::new_err(in_python(&error.to_string()))
}

/// A snapshot that could not be opened or written.
pub fn snapshot(error: &RibError) -> PyErr {
    let io = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match (error.kind(), io, error.path()) {
        (SnapshotErrorKind::Io, Some(io), Some(path)) => io_error(path, io),
        (kind, ..) => SnapshotError::new_err(match kind {
            SnapshotErrorKind::NotSnapshot => format!("{error}; Table.build reads other files"),
            SnapshotErrorKind::Dated => format!(
                "{error}: Table.open(path, at=\"2024-05-01\"); DatedTable.open opens all of them"
            ),
            SnapshotErrorKind::NotDated => format!("{error}; Table.open opens this one"),
            _ => error.to_string(),
        }),
    }
}

/// A table that could not be opened, compiled or asked.
pub fn fib(error: &FibError) -> PyErr {
    match error {
        FibError::Snapshot(error) => snapshot(error),
        FibError::Stored { .. } => SnapshotError::new_err(error.to_string()),
        FibError::Unknown { .. } | FibError::NoColumn { .. } | FibError::NoNumber { .. } => {
            ColumnError::new_err(error.to_string())
        }
        FibError::Refused { .. } | FibError::Table(_) => source(error),
        _ => FibulaError::new_err(error.to_string()),
    }
}

/// A table that could not be placed on a device.
pub fn device(error: &OffloadError) -> PyErr {
    DeviceError::new_err(match error {
        OffloadError::Device(AccelError::UnknownName { .. } | AccelError::Absent { .. }) => {
            format!("{error}; fibula.devices() lists those of this machine")
        }
        _ => error.to_string(),
    })
}

/// VRPs that could not be read, and tables that they do not fit.
pub fn rpki(error: &RpkiError) -> PyErr {
    let text = match error.hint() {
        Some(hint) => in_python(&format!("{error}; {hint}")),
        None => error.to_string(),
    };
    match error {
        RpkiError::Io { file, error } => io_error(Path::new(file), error),
        RpkiError::NoColumn { .. } | RpkiError::NoOrigin { .. } => ColumnError::new_err(text),
        _ => SourceError::new_err(text),
    }
}

/// Annotation that could not begin or stopped.
pub fn annotate(error: &AnnotateError) -> PyErr {
    let text = error.to_string();
    match error {
        AnnotateError::Type { .. } => PyTypeError::new_err(format!("{text}; {ACCEPTED}")),
        AnnotateError::Cell { .. } => {
            AddressError::new_err(format!("{text}; with strict=False it becomes null"))
        }
        AnnotateError::TimeType { .. } => PyTypeError::new_err(format!(
            "{text}; times are timestamps, dates, text such as 2024-05-01T12:00:00Z, and numbers since 1970"
        )),
        AnnotateError::TimeCell { row, text, .. } => FibulaError::new_err(format!(
            "row {row}: {text:?} is not a time; with strict=False nothing is added to it"
        )),
        AnnotateError::UnknownValue { .. } => {
            ColumnError::new_err(format!("{text}; and prefix, covering"))
        }
        AnnotateError::Twice { .. }
        | AnnotateError::Default { .. }
        | AnnotateError::DefaultKind { .. }
        | AnnotateError::NameTaken { .. }
        | AnnotateError::SameName { .. } => ColumnError::new_err(text),
        _ => FibulaError::new_err(text),
    }
}
